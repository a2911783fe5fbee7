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
from lamina.streams.sentences import sentences
from lamina.streams.words import STOP_WORDS, normalise, stem, stems, tokens

ECHO_NEW_WORDS = 1
"""New content words that a sentence of commentary may add and still only echo what was said."""

QUESTION_NEW_WORDS = 2
"""The same for an open question: it states nothing, and its answer is a turn of its own."""

_COURTESY = frozenset(
    """
    thanks thank thankyou thx ty cheers welcome pleasure please pls sorry apologies hello hi hey hiya howdy
    greetings bye goodbye goodnight good morning afternoon evening night congrats congratulations kudos bravo
    farewell later soon wow woah whoa yay aw aww awww awwww oh ooh ah aha haha hahaha ha hehe heh lol hmm hm
    ugh phew ouch oops woohoo yum yikes omg gosh man dude buddy folks guys guy dear pal mate hurray hooray
    see talk
    hallo danke dankeschön bitte guten gute morgen tag abend nacht tschüss moin servus merci beaucoup bonjour
    bonsoir salut hola gracias adiós buenos buenas días tardes noches obrigado obrigada olá bom boa dia tarde
    noite tchau ciao grazie buongiorno buonasera prego arrivederci dank dag hej tack namaste
    你好 您好 谢谢 多谢 再见 早安 晚安 早上 上好 晚上 こん んに にち ちは あり りが がと とう さよ よう うな なら
    """.split()
)

_EVALUATION = frozenset(
    """
    good great nice cool awesome amazing wonderful fantastic fabulous excellent brilliant superb incredible
    lovely beautiful gorgeous stunning cute adorable sweet perfect impressive impressed inspiring inspirational
    inspired motivating motivated rewarding fulfilling satisfying meaningful special unique important valuable
    vital crucial essential key interesting fascinating intriguing exciting excited thrilling thrilled fun funny
    hilarious enjoyable delightful delicious delish tasty scrumptious yummy tough hard rough difficult
    challenging sad awful terrible horrible frustrating scary stressful overwhelming crazy insane unbelievable
    unreal wild dope neat epic rad admirable commendable remarkable outstanding extraordinary exceptional
    phenomenal marvelous marvellous spectacular magical memorable unforgettable priceless heartwarming touching
    moving powerful uplifting refreshing calming soothing relaxing peaceful tranquil serene cozy cosy comfy
    breathtaking mesmerizing captivating vivid best better wise smart clever thoughtful kind generous caring
    doable relief honor honour privilege helpful useful handy worthwhile worthy worth encouraging supportive reassuring promising positive optimistic
    impactful fine decent solid bad worst worse easy proud glad happy pleased stoked pumped hyped delighted
    grateful thankful blessed honored honoured lucky fortunate passionate determined dedicated resilient
    courageous brave strong stronger confident talented gifted skilled love loved loving adore
    """.split()
)

_ENCOURAGEMENT = frozenset(
    """
    pride joy joyful happiness gratitude appreciate appreciated appreciates appreciation luck like likes liked
    enjoy enjoyed enjoying admire admiration respect hope hoping hopefully wish wishing feel feels feeling
    feelings felt excitement enthusiasm passion determination dedication resilience perseverance courage
    bravery strength confidence belief believe believing trust faith talent talents potential effort efforts
    positivity optimism energy spirit attitude vibe vibes smile smiles heart mind inspire inspires inspiration
    motivate motivates motivation kindness encouragement encourage support supported supporting supports advice
    keep keeping keeps go goes going give giving never forget remember reminder remind reminds reminding step
    steps forward ahead continue stay staying focus focused possible impossible obstacle obstacles challenge
    challenges overcome push pushing shine shining rock rocks rocking chase chasing dream dreams goal goals
    reach achieve achieving succeed success journey path deserve deserves earned off hit get gets getting sky
    limit grow growing growth learn learning progress accomplish accomplished accomplishment accomplishments
    achievement achievements milestone acts act crush nailed rooting cheering cheer cheers paid paying pays quit gives guts power ability abilities tackle cherish
    cherishing spread spreading adventure blast spirits mood
    """.split()
)

_EVERYDAY = frozenset(
    """
    yes yeah yep yup ya ok okay sure definitely absolutely totally exactly indeed right true truly agreed agree
    course understood noted gotcha certainly surely nope nah precisely alright fair completely honestly
    obviously clearly worries worry problem problems doubt really so quite kinda pretty much super big huge
    little small real genuinely incredibly amazingly beautifully extremely enough especially seriously simply
    extra deeply highly insanely come comes coming take takes taking make makes making made see seeing know
    knowing knows think thinking say saying tell telling talking chat chatting hear hearing let look looks
    looking looked sound sounds sounded seem seems mean means meant try trying tried help helps helping helped
    want wants need needs do done happen happens happened happening bet guess wait waiting imagine picture
    sharing shared find finding bring brings bringing show shows showing put putting turn turns turned gonna
    wanna gotta able ask keeps matter matters must might may thing things something anything everything nothing
    way ways lot lots ton tons bunch bit bits time times day days moment moments memory memories life lives
    world people person someone somebody anyone anybody everyone everybody others one ones friend friends
    friendship word words idea ideas thought thoughts point difference impact effect influence example stuff
    kind type sort reason purpose sense chance experience experiences connection connections pic pics picture
    pictures photo photos result outcome bond together togetherness teamwork peace beauty creativity now still
    always ever forever already yet lately today's meanwhile first next last long longer while ago since
    sometimes finally almost even though although plus also maybe perhaps either else instead without along
    around across towards whatever whenever wherever however another every many new besides actually basically
    y'know anymore back well well-deserved huh too btw anyway up short closer till how've story stories got share safe
    surprise often prob eventually letting known
    """.split()
)

_GENERIC = _COURTESY | _EVALUATION | _ENCOURAGEMENT | _EVERYDAY

# Fixed phrases whose nouns would carry something elsewhere ("I got the job").
_PHRASES = re.compile(
    r"\b(?:great|good|nice|awesome|amazing|incredible|excellent|fantastic|wonderful|brilliant|solid|smart|well)"
    r" (?:job|work|call|choice|plan|news|thinking|question|taste|catch|start|effort|decision)\b"
    r"|\bhard work\b|\bworks? for me\b|\b(?:hang in|been|be|always) there\b|\bin advance\b|\bon track\b"
    r"|\bwork(?:ed|ing|s)? (?:so |really |very )?hard\b|\bkeep (?:on )?working\b|\bget to work\b"
    r"|\b(?:got|have|has|gotten) my back\b|\bmy (?:dreams?|goals?|best|heart|day|thoughts)\b"
    r"|\bsince (?:we|our) (?:last )?(?:caught up|chat(?:ted)?|talk(?:ed)?|spoke|met)\b"
    r"|\bkeep(?:ing)? (?:you|me|ya|us) (?:posted|updated)\b|\bcatch (?:you|ya|up)\b|\bfeel free\b"
    r"|\bin (?:my|your) corner\b|\bcheck (?:it|them|that) out\b|\bwork(?:s|ed|ing)? (?:out|for you|(?:well )?together)\b"
    r"|\bstop (?:you|me|us)\b|\bhold (?:you|me|us) back\b|\bspending time\b|\bsounds like a plan\b"
    r"|\bover the moon\b|\bsleep well\b|\bsafe travels\b|\btake care\b|\bfingers crossed\b|\bno rush\b"
    r"|\bwork (?:it|this) out\b|\bway to go\b|\ba pic(?:ture)? of health\b|\bmy (?:friend|pleasure|goodness|god"
    r"|gosh|bad|dear|man)\b|\bmade my day\b|\bgo get (?:'?em|it)\b",
    re.IGNORECASE,
)

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
    re.compile(r"(?:(?<=\byou)|(?<=\bya)|(?<=\bbye)|(?<=\bup)|(?<=\blater)|(?<=\bsoon))\s+[A-Z][\w'-]+(?=\s*[!.?]|$)"),
    re.compile(r",\s*[A-Z][\w'-]+(?=\s*(?:[!.?,;:)]|\s[-–—]|$))"),
)

_OWN = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|mine)\b", re.IGNORECASE)
_SHARED = re.compile(r"\b(?:we|we're|we've|we'd|we'll|us|our|ours)\b", re.IGNORECASE)
_THIRD = re.compile(
    r"\b(?:he|she|they|him|her|his|hers|them|their|theirs|(?:he|she|they)'(?:s|re|ve|d|ll))\b", re.IGNORECASE
)
# Statements in the first person that speak of the other: "I'm proud of you", "I can imagine".
_ABOUT_OTHER = re.compile(
    r"\b(?:i'm (?:so |really |very |super |truly |just |always |also |sure |\w+ly )*(?:proud|glad|happy (?:for|to hear"
    r"|that|you)|excited (?:for|to)|impressed|sorry|sure|here|around|rooting|inspired|grateful for y|thankful for y"
    r"|stoked|jealous|good|fine|okay|ok|all ears|with you|so lucky to have you)"
    r"|i am\b|i will\b|i do\b|i did\b|i know\b|i see\b|i get (?:it|that|you)|i hear you|i feel you|i guess"
    r"|i (?:really |totally |completely |definitely |truly |so |do )*(?:bet|agree|hope|wish you|appreciate"
    r"|believe|love (?:that|how|it|your|the|this|hearing|seeing)|get (?:it|that)|think (?:you|that|it|so)"
    r"|admire|respect|understand|value|like (?:that|how|it|your|the|this))"
    r"|i (?:can|can't|could|couldn't|can only) (?:imagine|see|tell|wait|agree|only imagine|relate)"
    r"|i'll (?:definitely |totally |surely |always )*(?:be (?:here|there)|let you|try|keep|do (?:that|my best)"
    r"|never|remember)|we'll let you"
    r"|i (?:won't|will not|will never|'ll never)"
    r"|let (?:me|us) know)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\?[\s!?)\"'”]*\Z")
_OPEN_QUESTION = re.compile(r"\b(?:what|what's|how|how's|why|where|when|which|who|who's|whose|any\w*)\b", re.IGNORECASE)
# "Did you see that band?": a bare yes to it would carry the band, so the question is part of the answer.
_POLAR_QUESTION = re.compile(
    rf"^{_LEAD}*(?:do|does|did|are|is|was|were|have|has|had|will|would|should|can|could|don't|isn't|aren't"
    r"|didn't|haven't|won't)\b(?!.*\b(?:any|anything|anyone|tell me|share more)\b)",
    re.IGNORECASE,
)
_PREDICATE = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|looks?|looked|sounds?|sounded|seems?|feels?|such|what)|'s|'re)\s+"
    r"(?:(?:a|an|the|so|really|very|such|truly|absolutely|pretty|super|just|all|too|totally|definitely|like|quite"
    r"|always|even|also|been|be|one|doing|\w+ly)\s+){0,4}([\w'-]+)",
    re.IGNORECASE,
)
_MEANS_MUCH = re.compile(r"\bmeans? (?:so much|a (?:lot|ton)|the world|everything)\b", re.IGNORECASE)
_OPENING = re.compile(
    rf"^{_LEAD}*(?:(?:so|how|what|such|a|an|very|super|really|just|you|you're|did|are|always|the)\s+)*([\w'-]+)",
    re.IGNORECASE,
)
# What opens a comment on the other's matter, whatever follows: "You never shy away", "Thanks for the offer".
_COMMENT = re.compile(
    rf"^{_LEAD}*(?:(?:you|your|you're|you've|you'll|have (?:a|an|fun|the)|enjoy|good luck|best of luck|thanks"
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
    return lowered in _GENERIC or lowered in STOP_WORDS


def _may_answer(sentence: str) -> bool:
    said = _without_vocatives(sentence)
    if _QUESTION.search(said) or _COMMENT.match(said):
        return False
    words = tokens(said)
    courtesy = all(word in _COURTESY or word in STOP_WORDS - {"no", "not"} for word in words)
    return not courtesy and not {"you", "your", "you're", "you've"} & set(words)


def _empty(sentence: str, seen: Collection[str] | None) -> bool:
    """Return whether a sentence carries nothing; `seen` are the stems said before, None to ignore them."""
    said = _without_vocatives(sentence)
    plain = _PHRASES.sub(" ", said)
    extra = [word for word in map(_bare, tokens(plain)) if word not in STOP_WORDS and word not in _GENERIC]
    new = [word for word in extra if seen is None or stem(word) not in seen]
    # The cheap test first: most turns carry something by their first words.
    if (seen is None and extra) or len(new) > QUESTION_NEW_WORDS or entities(_TODAY.sub(" ", plain)):
        return False
    if _QUESTION.search(said):
        return _asks_nothing(plain, extra, new, echo=seen is not None)
    about_other = _ABOUT_OTHER.search(plain) is not None
    own = _OWN.search(_ABOUT_OTHER.sub(" ", plain)) is not None
    if own or (_THIRD.search(said) and not _is_evaluative(said)):
        return False
    if not extra:
        return True
    elided = _ELIDED.match(said)
    if elided and (elided.group("activity") or "").casefold() not in _EVALUATION:
        return False
    if _SHARED.search(said):
        return False
    if about_other or _THIRD.search(said):
        return not new
    comments = _is_evaluative(said) or bool(_COMMENT.match(said))
    return comments and len(new) <= ECHO_NEW_WORDS


def _asks_nothing(said: str, extra: Sequence[str], new: Sequence[str], *, echo: bool) -> bool:
    if not extra:
        return True
    if not echo or _OWN.search(said) or _SHARED.search(said) or _POLAR_QUESTION.match(said) or not _OPEN_QUESTION.search(said):
        return False
    return len(new) <= QUESTION_NEW_WORDS


def _is_evaluative(said: str) -> bool:
    """Return whether the sentence opens with, or predicates, an evaluation: "… sounds amazing"."""
    if _opens_with_evaluation(said) or _MEANS_MUCH.search(said):
        return True
    return any(found.group(1).casefold() in _EVALUATION for found in _PREDICATE.finditer(said))


def _opens_with_evaluation(said: str) -> bool:
    opening = _OPENING.match(said)
    return opening is not None and opening.group(1).casefold() in _EVALUATION


def _bare(word: str) -> str:
    return word.removesuffix("'s") if word not in STOP_WORDS else word
