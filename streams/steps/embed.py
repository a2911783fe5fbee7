"""embed: one pass per turn over "previous turn + turn": vectors of the turn, its exchange, its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from lamina.streams.codec import Vector
from lamina.streams.late_interaction import TokenVectors
from lamina.streams.metrics import TURNS
from lamina.streams.records import Admitted, Embedded, Status
from lamina.streams.steps.ports import Ports


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddedTurn:
    """A turn and its vectors, on the way from `embed` to `remember`."""

    record: Embedded
    dense: Vector
    """The turn, read in the light of the turn before it."""
    exchange: Vector | None
    """The exchange that the turn closes; None where it closes none."""
    tokens: TokenVectors | None = None
    """The turn's own tokens; None where the embedder gives none."""
    before: TokenVectors | None = None
    """Those of the turn before it, where the gate kept that one from the store."""


async def embed(batch: Sequence[Admitted], ports: Ports) -> list[EmbeddedTurn]:
    """Embed a batch of admitted turns; the result matches the input.

    Raises:
        EmbedderUnavailable: the engine does not answer now; nothing happened.
    """
    vectors = await ports.embedder.embed_turns(
        [(each.previous.spoken if each.previous else None, each.unit.spoken) for each in batch]
    )
    nothing = (None,) * len(batch)
    tokens, before = vectors.tokens or nothing, vectors.before or nothing
    ports.metrics.count(TURNS, len(batch), step="embed", outcome="embedded")
    return [
        EmbeddedTurn(
            record=Embedded(unit=each.unit, previous=each.previous, reply=each.reply, after=each.after),
            dense=dense,
            exchange=exchange if each.reply else None,
            tokens=own,
            before=last if each.previous is not None and each.previous.status is Status.GATED else None,
        )
        for each, dense, exchange, own, last in zip(
            batch, vectors.turn, vectors.exchange, tokens, before, strict=True
        )
    ]
