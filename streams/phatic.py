"""What carries nothing: turns that greet, thank, praise, acknowledge or ask how it was (SimpleMem app. A.1).

SimpleMem asks an LLM to "discard social filler, acknowledgements, and conversational routines that introduce
no new factual or semantic information". Ours does it by rules, sentence by sentence: a turn carries nothing
when none of its sentences does. A sentence carries something as soon as it holds a name, number, time or
address, speaks of the speaker's own matters or of a third person, or holds a content word outside a list of
everyday words of politeness, praise and encouragement. Two readings share these rules:

- `is_phatic` knows the text alone and allows everyday words only;
- `echoes` also knows the turns before, and allows commentary ("That race sounds amazing!") and open
  questions to the other ("What got you into running?") that add almost no word to what was just said.

The lists are general English, with greetings and thanks of some other languages; other text is kept.
"""

import re
from collections.abc import Collection, Sequence

from lamina.streams.entities import entities
from lamina.streams.phatic_words import COURTESY, EVALUATION, GENERIC, PHRASES
from lamina.streams.sentences import sentences
from lamina.streams.words import STOP_WORDS, normalise, stem, stems, tokens

ECHO_NEW_WORDS = 1
"""New content words that a sentence of commentary may add and still only echo what was said."""

QUESTION_NEW_WORDS = 2
"""The same for an open question: it states nothing, and its answer is a turn of its own."""

_LEAD_WORDS = (
    "hey|hi|hello|thanks|thank you|wow|whoa|woah|yeah|yep|yup|yes|congrats|congratulations|sure|sure thing"
    "|definitely|absolutely|totally|agreed|exactly|bye|oh|aw+|ok|okay|sorry|cool|nice|great|good|no|so|well"
    "|haha|cheers|for sure|of course|you're welcome|no problem|no worries|right|true|good morning"
    "|good evening|good night|welcome|man|gosh|and|but|awesome|amazing|way to go|nice one|perfect"
)
_LEAD = rf"(?:(?:{_LEAD_WORDS})\b[,!]*\s+)"
_VOCATIVES = (
    re.compile(rf"^(?P<lead>(?i:{_LEAD}){{1,4}})[A-Z][\w'-]+(?=\s*(?:[,!.?]|\s[-–—]|$)|\s+[a-z])"),
    re.compile(r"^[A-Z][\w'-]+,\s+"),
    re.compile(
        r"(?:(?<=\byou)|(?<=\bya)|(?<=\bbye)|(?<=\bup)|(?<=\blater)"
        r"|(?<=\bsoon))\s+[A-Z][\w'-]+(?=\s*[!.?]|$)"
    ),
    re.compile(r",\s*[A-Z][\w'-]+(?=\s*(?:[!.?,;:)]|\s[-–—]|$))"),
)

_OWN = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|mine)\b", re.IGNORECASE)
_SHARED = re.compile(r"\b(?:we|we're|we've|we'd|we'll|us|our|ours)\b", re.IGNORECASE)
_THIRD = re.compile(
    r"\b(?:he|she|they|him|her|his|hers|them|their|theirs|(?:he|she|they)'(?:s|re|ve|d"
    r"|ll))\b",
    re.IGNORECASE,
)
# Statements in the first person that speak of the other: "I'm proud of you", "I can imagine".
_ABOUT_OTHER = re.compile(
    r"\b(?:i'm (?:so |really |very |super |truly |just |always |also |sure |\w+ly )*(?:proud|glad"
    r"|happy (?:for|to hear"
    r"|that|you)|excited (?:for|to)|impressed|sorry|sure|here|around|rooting|inspired|grateful for y"
    r"|thankful for y"
    r"|stoked|jealous|good|fine|okay|ok|all ears|with you|so lucky to have you)"
    r"|i (?:am|will|do|did|know|see)(?=\s*(?:[.!,]|\Z)|\s+(?:too|so|right|what|how)\b)|i get (?:it"
    r"|that|you)|i hear you|i feel you|i guess"
    r"|i (?:really |totally |completely |definitely |truly |so |do )*(?:bet|agree|hope|wish you|appreciate"
    r"|believe|love (?:that|how|it|your|the|this|hearing|seeing)|get (?:it|that)|think (?:you|that|it|so)"
    r"|admire|respect|understand|value|like (?:that|how|it|your|the|this))"
    r"|i (?:can|can only|could) (?:imagine|see (?:that|how|why|it|you)|tell|only imagine|relate)"
    r"|i (?:can't|couldn't) (?:imagine|wait|agree)"
    r"|i'll (?:definitely |totally |surely |always )*(?:be (?:here|there)|let you|try|keep|do (?:that"
    r"|my best)"
    r"|never|remember)|we'll let you"
    r"|i (?:won't|will not|will never) (?:let|give up|stop|quit|forget)"
    r"|let (?:me|us) know)\b",
    re.IGNORECASE,
)
# What "we" did or need is news of its own, unlike "we can do it" and "we got this".
_WE_DID = re.compile(
    r"\bwe(?:'ve)? (?:got(?! this\b)|came|gave|took|brought|found|felt|need|want|lost|met)\b", re.IGNORECASE
)
_QUESTION = re.compile(r"\?[\s!?)\"'”]*\Z")
_OPEN_QUESTION = re.compile(
    r"\b(?:what|what's|how|how's|why|where|when|which|who|who's|whose|any\w*)\b", re.IGNORECASE
)
# "Did you see that band?": a bare yes to it would carry the band, so the question is part of the answer.
_POLAR_QUESTION = re.compile(
    rf"^{_LEAD}*(?:do|does|did|are|is|was|were|have|has|had|will|would|should|can|could|don't|isn't|aren't"
    r"|didn't|haven't|won't)\b(?!.*\b(?:any|anything|anyone|tell me|share more)\b)",
    re.IGNORECASE,
)
_PREDICATE = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|looks?|looked|sounds?|sounded|seems?|feels?|such|what)|'s|'re)\s+"
    r"(?:(?:a|an|the|so|really|very|such|truly|absolutely|pretty|super|just|all|too|totally|definitely"
    r"|like|quite"
    r"|always|even|also|been|be|one|doing|\w+ly)\s+){0,4}([\w'-]+)",
    re.IGNORECASE,
)
_MEANS_MUCH = re.compile(r"\bmeans? (?:so much|a (?:lot|ton)|the world|everything)\b", re.IGNORECASE)
_OPENING = re.compile(
    rf"^{_LEAD}*(?:(?:so|how|what|such|a|an|very|super|really|just|you|you're|did|are|always"
    rf"|the)\s+)*([\w'-]+)",
    re.IGNORECASE,
)
# What opens a comment on the other's matter, whatever follows: "You never shy away", "Thanks for the offer".
_COMMENT = re.compile(
    rf"^{_LEAD}*(?:(?:you|your|you're|you've|you'll|have (?:a|an|fun|the)|enjoy|good luck|best of luck"
    rf"|thanks"
    r"|thank you|congrats|congratulations|way to|kudos|glad|so glad)\b|(?:sounds|looks|seems) like you\b)",
    re.IGNORECASE,
)
# "Been busy", "Glad to be part of it", "Researching agencies": the first person is only left out.
_ELIDED = re.compile(
    rf"^{_LEAD}*(?:been|just|still|never been|not|had|got|went|did|took|(?P<activity>\w+ing)"
    r"|(?:so |really |very )?(?:glad|happy|excited|proud|honou?red|thrilled|pumped|lucky) to)\b",
    re.IGNORECASE,
)
_TODAY = re.compile(r"\b(?:today|tonight)\b", re.IGNORECASE)
_CAPTION = "[photo:"


def is_phatic(text: str) -> bool:
    """Return whether the text, taken alone, carries nothing one would want recalled.

    A photo's caption, any entity (`lamina.streams.entities`), any content word that is not everyday
    politeness, and any statement of one's own carry something. Empty text carries nothing.
    """
    return _CAPTION not in text and all(_empty(sentence, None) for sentence in _sentences(text))


def echoes(text: str, previous: Sequence[str]) -> bool:
    """Return whether the text carries nothing beyond the turns before it.

    As `is_phatic`, and commentary or open questions to the other may use the words of the previous turns and
    one new content word a sentence. Right after a question, anything that may be its answer carries.

    Args:
        text: the turn.
        previous: the turns before it in its session, oldest first.
    """
    if _CAPTION in text:
        return False
    seen = frozenset(word for turn in previous for word in stems(turn))
    return all(_empty(sentence, seen) for sentence in _sentences(text))


def answers(text: str, previous: Sequence[str]) -> bool:
    """Return whether the turn may answer a question of the turn before it ("Yes, I did").

    It may unless each of its sentences is a question, a courtesy, or speaks to the other.
    """
    if not previous or "?" not in previous[-1]:
        return False
    return any(_may_answer(sentence) for sentence in _sentences(text))


def _sentences(text: str) -> list[str]:
    return sentences(normalise(text))


def _without_vocatives(sentence: str) -> str:
    opening, leading, closing, inner = _VOCATIVES
    found = opening.match(sentence)
    if found and not _common(sentence[found.end("lead") : found.end()]):
        sentence = found.group("lead") + sentence[found.end() :].lstrip(" ,")
    lead = leading.match(sentence)
    if lead and not _common(lead.group().rstrip(", ")):
        sentence = sentence[lead.end() :]
    return inner.sub("", closing.sub("", sentence))


def _common(word: str) -> bool:
    lowered = word.casefold()
    return lowered in GENERIC or lowered in STOP_WORDS


def _may_answer(sentence: str) -> bool:
    said = _without_vocatives(sentence)
    if _QUESTION.search(said) or _COMMENT.match(said):
        return False
    words = tokens(said)
    courtesy = all(word in COURTESY or word in STOP_WORDS - {"no", "not"} for word in words)
    return not courtesy and not {"you", "your", "you're", "you've"} & set(words)


def _empty(sentence: str, seen: Collection[str] | None) -> bool:
    """Return whether a sentence carries nothing; `seen` are the stems said before, None to ignore them."""
    said = _without_vocatives(sentence)
    plain = PHRASES.sub(" ", said)
    extra = [word for word in map(_bare, tokens(plain)) if word not in STOP_WORDS and word not in GENERIC]
    new = [word for word in extra if seen is None or stem(word) not in seen]
    # The cheap test first: most turns carry something by their first words.
    if (seen is None and extra) or len(new) > QUESTION_NEW_WORDS or entities(_TODAY.sub(" ", plain)):
        return False
    if _QUESTION.search(said):
        return not extra or (_asks_openly(plain) and len(new) <= QUESTION_NEW_WORDS)
    if _tells(said, plain):
        return False
    return not extra or _comments(said, plain, new)


def _tells(said: str, plain: str) -> bool:
    """Return whether a statement speaks of the speaker's own matters, of "us", or of a third person."""
    own = _OWN.search(_ABOUT_OTHER.sub(" ", plain)) or _WE_DID.search(plain)
    return bool(own) or (_THIRD.search(said) is not None and not _is_evaluative(said))


def _comments(said: str, plain: str, new: Sequence[str]) -> bool:
    """Return whether a statement with content words only comments on what the other said."""
    elided = _ELIDED.match(said)
    activity = (elided.group("activity") or "").casefold() if elided else ""
    if (elided and activity not in EVALUATION) or _SHARED.search(said):
        return False
    if _ABOUT_OTHER.search(plain) or _THIRD.search(said):
        return not new
    return (_is_evaluative(said) or _COMMENT.match(said) is not None) and len(new) <= ECHO_NEW_WORDS


def _asks_openly(said: str) -> bool:
    """Return whether a question asks the other something open, and nothing of the speaker."""
    of_speaker = _OWN.search(said) or _SHARED.search(said)
    return not of_speaker and not _POLAR_QUESTION.match(said) and _OPEN_QUESTION.search(said) is not None


def _is_evaluative(said: str) -> bool:
    """Return whether the sentence opens with, or predicates, an evaluation: "… sounds amazing"."""
    if _opens_with_evaluation(said) or _MEANS_MUCH.search(said):
        return True
    return any(found.group(1).casefold() in EVALUATION for found in _PREDICATE.finditer(said))


def _opens_with_evaluation(said: str) -> bool:
    opening = _OPENING.match(said)
    return opening is not None and opening.group(1).casefold() in EVALUATION


def _bare(word: str) -> str:
    return word.removesuffix("'s") if word not in STOP_WORDS else word
