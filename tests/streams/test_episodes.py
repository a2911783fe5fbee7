import random
from datetime import timedelta

from lamina.streams.episodes import MOST_CHARACTERS, episode_of, merged_episode
from lamina.streams.records import Unit

from .turns_kit import SAID_AT, a_turn, turns_of

CAKE = turns_of(
    "I need to order a birthday cake for my sister Mia from SweetLeaf. She is allergic to peanuts.",
    "Hi!",
    "Does SweetLeaf bake cakes without nuts?",
    "I ordered the chocolate cake at SweetLeaf yesterday, with Mia's name on it.",
    "The cake must be ready for the party on Friday.",
    "I washed my dark jeans at thirty degrees.",
)


def head_of(draft, topic=None):
    return Unit(
        **a_turn("").model_dump(exclude={"kind", "text", "topic", "evidence"}),
        kind="episode",
        text=draft.text,
        topic=topic or draft.topic,
        evidence=draft.evidence,
    )


def test_episode_quotes_central_sentences_with_date_and_speaker_in_time_order():
    episode = episode_of(CAKE)
    lines = episode.text.splitlines()
    assert lines[0].startswith("[2026-05-04] Nora: I need to order a birthday cake")
    assert any("ordered the chocolate cake" in line for line in lines)
    order = [CAKE.index(next(t for t in CAKE if line.split(": ", 1)[1][:20] in t.text)) for line in lines]
    assert order == sorted(order)


def test_date_phrases_are_kept_with_their_meaning():
    assert "yesterday, with Mia's name on it. (yesterday = 2026-05-03)" in episode_of(CAKE).text


def test_topic_and_keywords_are_the_clusters_own_words():
    episode = episode_of(CAKE)
    assert 3 <= len(episode.keywords) <= 5
    assert episode.topic == episode.keywords[0]
    assert {"cake", "sweetleaf"} <= set(episode.keywords)
    assert "sweetleaf" in episode.entities
    assert "mia" in episode.entities


def test_speakers_names_and_small_talk_are_no_keywords():
    episode = episode_of(
        turns_of("Hey Mel, great to see you!", "Thanks Mel, wow!", "Mel, the kiln fired.", speaker="Melanie")
    )
    assert set(episode.keywords) == {"kiln", "fired"}


def test_evidence_is_every_turn_in_time_order_whatever_the_order_given():
    shuffled = CAKE.copy()
    random.Random(1).shuffle(shuffled)
    assert episode_of(shuffled) == episode_of(CAKE)
    assert episode_of(CAKE).evidence == tuple(turn.id for turn in CAKE)


def test_episode_occurred_when_its_sentences_say():
    episode = episode_of(turns_of("I ran the river race yesterday with Tom."))
    assert episode.occurred_from == SAID_AT.replace(hour=0) - timedelta(days=1)
    assert episode.occurred_to == SAID_AT.replace(hour=0)
    plain = a_turn("I ran the river race with Tom.")
    assert episode_of([plain]).occurred_from == episode_of([plain]).occurred_to == plain.said_at


def test_near_repetitions_are_quoted_once():
    episode = episode_of(turns_of(*["The printer on floor two is jammed again today."] * 6))
    assert len(episode.text.splitlines()) == 1


def test_text_is_bounded_even_for_one_endless_sentence():
    assert len(episode_of([a_turn("printer " * 30_000)]).text) <= MOST_CHARACTERS
    many = turns_of(*(f"The printer number {n} near room {n * 7} jams on {n} pages." for n in range(80)))
    assert len(episode_of(many).text) <= MOST_CHARACTERS


def test_turns_without_a_sentence_give_no_episode():
    assert episode_of(turns_of("…", "!!!", "😊")) is None
    assert episode_of([]) is None
    assert merged_episode([], [], []) is None


def test_merge_covers_old_and_new_turns_once_each_in_time_order():
    head = head_of(episode_of(CAKE[:4]))
    merged = merged_episode([head], CAKE[:4], CAKE[3:])
    assert merged.evidence == tuple(turn.id for turn in CAKE)
    assert "party" in merged.text


def test_merge_keeps_the_threads_topic_while_it_is_a_keyword():
    first = episode_of(CAKE[:4])
    assert merged_episode([head_of(first, "sweetleaf")], CAKE[:4], CAKE[4:]).topic == "sweetleaf"
    assert merged_episode([head_of(first, "submarines")], CAKE[:4], CAKE[4:]).topic != "submarines"


def test_merge_of_hundreds_reads_a_sample_but_keeps_all_evidence():
    old = [a_turn(f"The server room {n} alarm rang at gate {n}.", number=n) for n in range(1, 900)]
    new = [a_turn("The alarm company replaced the whole alarm system in every server room.", number=950)]
    merged = merged_episode([], old, new)
    assert len(merged.evidence) == 900
    assert "replaced the whole alarm system" in merged.text
    assert merged == merged_episode([], list(reversed(old)), new)
