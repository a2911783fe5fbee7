"""What a turn's text is like, said on Sunday 15 October 2023."""

import pytest

from lamina.streams.recall.auto.traits import TRAITS, Traits, traits_of

from .pool_kit import NOON


@pytest.mark.parametrize(
    ("text", "traits"),
    [
        ("", Traits()),
        ("Fine, thanks.", Traits()),
        ("How are you?", Traits(ends_asking=1, asks=1)),
        ("How are you? I'm fine.", Traits(asks=1)),
        ("Really?  ", Traits(ends_asking=1, asks=1)),
        ("你好吗？", Traits(ends_asking=1, asks=1)),
        ("I ran yesterday", Traits(time_word=1, date=1)),
        ("It took us weeks", Traits(time_word=1)),
        ("We met in May 2022", Traits(date=1, capitals=1)),
        ("May I?", Traits(ends_asking=1, asks=1)),
        ("Nora lives here", Traits()),
        ("I met Nora, Zoë and Éva, and Nora again, in Oslo", Traits(capitals=3)),
        ('I read "Emma"', Traits(quote=1)),
        ("I read “Emma”", Traits(quote=1)),
    ],
)
def test_traits_of_a_text(text, traits):
    assert traits_of(text, NOON) == traits


def test_every_trait_fits_the_pool():
    told = traits_of("I saw Ann, Ben, Cem, Dan and Eve " * 20 + '"yesterday"?', NOON)
    assert len(told) == len(TRAITS)
    assert all(0 <= value <= 255 for value in told)
