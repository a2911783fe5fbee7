"""C_q and the depth it gives (SimpleMem eq. 8)."""

import pytest

from lamina.streams.recall.complexity import complexity, depth


@pytest.mark.parametrize(
    ("question", "value", "signs"),
    [
        ("Where does Ada keep her spare key?", 0.0, ()),
        ("What is her address?", 0.0, ()),
        ("Who is my doctor?", 0.0, ()),
        ("What was the dress that he bought?", 0.15, ()),
        ("What activities does Melanie partake in?", 0.4, ("aggregates",)),
        ("How many times did I run?", 0.4, ("aggregates",)),
        ("What happened before Nora moved?", 0.4, ("compares",)),
        ("Why did she leave?", 0.4, ("abstracts",)),
        # seven content words: 3 · .05; two clauses: .3; and the reason
        ("Why did Nora leave Bonn, her old house, job, friends?", 0.85, ("abstracts",)),
        ("What happened before Nora moved to Bonn and why did she leave?", 1.0, ("compares", "abstracts")),
        ("我的钥匙在哪里？", 0.1, ()),
        ("", 0.0, ()),
    ],
)
def test_the_signs_of_a_question_make_its_complexity(question, value, signs):
    assert (complexity(question).value, complexity(question).signs) == (value, signs)
    assert complexity(question).low == (value < 0.3)


@pytest.mark.parametrize(
    ("value", "base", "delta", "expected"),
    [
        (0.0, 3, 17 / 3, 3),
        (0.4, 3, 17 / 3, 9),  # 3 + 17·.4 = 9.8
        (0.5, 3, 17 / 3, 11),  # 11.5
        (1.0, 3, 17 / 3, 20),
        (1.0, 10, 17 / 3, 20),  # 66, held
        (0.0, 1, 17 / 3, 3),  # 1, held
        (1.0, 5, 0, 5),
    ],
)
def test_the_depth_grows_with_it_within_its_bounds(value, base, delta, expected):
    assert depth(value, base, delta, 3, 20) == expected
