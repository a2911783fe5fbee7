"""diagnose: edits for the neighbourhood of one unit (All-Mem §3.3, app. C.2).

Data: `target` (the number of the unit that is new) and `units` (`material.node_entry`: the target first, then
its anchors, without their evidence: a neighbourhood is shown for each diagnosis, and their texts say it).
"""

from lamina.streams.engine import Neighbourhood
from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, node_entry
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 500


class Split(Reply):
    """One unit that holds unrelated things."""

    unit: int
    reason: str
    confidence: float


class Merge(Reply):
    """Two to four units that say the same."""

    units: list[int]
    reason: str
    confidence: float


class Update(Reply):
    """A newer unit that ends what an older one says."""

    current: int
    superseded: int
    reason: str
    confidence: float


class Diagnosis(Reply):
    """The edits that are needed; most often none."""

    splits: list[Split]
    merges: list[Merge]
    updates: list[Update]


SYSTEM = (
    QUOTED + "You check a memory for three faults around the unit `target`. `units` are the target and its "
    "nearest neighbours; `at` is when each was said. A wrong edit does more harm than a late one: propose "
    "only what is certain, and most often nothing.\n"
    "splits: a unit that holds things from unrelated fields of life, so that looking for one finds the "
    "other. Not a story, a sequence in time, a cause and its effect, or a question with its answer.\n"
    "merges: two to four units that state the same about the same person, thing or event, in other words. "
    "Not states of different times, not things that only resemble each other; more than four are several "
    "merges.\n"
    "updates: current says outright that what superseded says no longer holds, and was said later. Not "
    "what merely concerns the same topic or can be true beside it. A fact updates only a fact of the same "
    "subject and relation.\n"
    "reason: at most fifteen words. confidence: 0 to 1; 0.9 and more only where you are sure."
)


def prompt(context: Neighbourhood) -> Prompt[Diagnosis]:
    """Ask what is wrong in a neighbourhood; the target is number 1, the anchors follow in their order."""
    anchors = (
        node_entry(node, number, most_evidence=0) for number, node in enumerate(context.anchors, start=2)
    )
    units = [node_entry(context.target, 1), *anchors]
    return Prompt("diagnose", VERSION, SYSTEM, {"target": 1, "units": units}, Diagnosis, MOST_TOKENS)
