"""When two units say the same about a thing, and when they cannot both hold (ours).

Facts are compared as (subject, relation, object); whether a relation holds one object at a time is
`lamina.streams.fact_rules.replaces`.
"""

from datetime import datetime

from lamina.streams.fact_rules import replaces
from lamina.streams.records import Kind, Unit


def layer_of(kind: Kind) -> Kind:
    """Return the layer whose units may be merged with each other: episodes rest on turns as turns do."""
    return "episode" if kind == "turn" else kind


def same_pair(one: Unit, other: Unit) -> bool:
    """Tell whether two facts have the same subject and relation."""
    return (
        one.kind == other.kind == "fact"
        and one.subject is not None
        and one.relation is not None
        and (_folded(one.subject), _folded(one.relation)) == (_folded(other.subject), _folded(other.relation))
    )


def other_value(one: Unit, other: Unit) -> bool:
    """Tell whether two facts name another object of the same subject and relation."""
    return same_pair(one, other) and _folded(one.object) != _folded(other.object)


def opposed(one: Unit, other: Unit) -> bool:
    """Tell whether two facts exclude each other: another object where the relation holds only one."""
    return other_value(one, other) and replaces(one.relation or "")


def since(unit: Unit) -> datetime:
    """Return the time from which a unit speaks: a fact's validity, else when it was said."""
    return unit.valid_from or unit.recent_at


def _folded(text: str | None) -> str:
    return " ".join((text or "").casefold().split())
