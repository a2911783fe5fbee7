"""How a command ended, told by the step that carried it out."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, or that it did not."""

    state: Literal["applied", "no_op", "skipped", "waiting", "lost"]
    """`waiting`: put off, its lane is free; `lost`: a newer owner took the lane, nothing was written."""
    note: str | None = None
    """Why, where it was not simply applied."""
