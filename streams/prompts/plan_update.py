"""plan_update: the refreshed descriptor of a unit that ends an older one (All-Mem app. C.5).

Data: `reason`, `current` and `superseded` (`material.node_entry`, numbers 1 and 2).
"""

from lamina.streams.engine import Node
from lamina.streams.llm import Prompt
from lamina.streams.prompts.material import QUOTED, cut, node_entry
from lamina.streams.prompts.reply import Reply

VERSION = 1
MOST_TOKENS = 350
_LONGEST_REASON = 300


class UpdatePlan(Reply):
    """The descriptor of the current unit; its old text again where nothing is to be made clearer."""

    summary: str
    keywords: list[str]


SYSTEM = (
    QUOTED + "`current` ends what `superseded` said; `reason` says how. Describe `current` again, so that "
    "it cannot be taken for the old state: name the person or thing, the topic and the date from which it "
    "holds. Everything must come from `current`; `superseded` only shows what is out of date. summary: at "
    "most 110 words; the text of `current` unchanged where it is clear already. keywords: three to five "
    "from `current`."
)


def prompt(current: Node, superseded: Node, reason: str) -> Prompt[UpdatePlan]:
    """Ask for the refreshed descriptor of the current unit."""
    data = {
        "reason": cut(reason, _LONGEST_REASON),
        "current": node_entry(current, 1),
        "superseded": node_entry(superseded, 2),
    }
    return Prompt("plan_update", VERSION, SYSTEM, data, UpdatePlan, MOST_TOKENS)
