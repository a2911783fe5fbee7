"""What becomes of an episode thread when the engine has spoken: none, one or several episodes (ours).

A thread is registered when its cluster is promoted, before anything is written (`lamina.streams.count`). One
episode becomes its head. Of several, the nearest to the thread's centroid inherits the thread and what
waits in it, and each other opens a thread of its own, so that later exchanges like it become its merges.
None closes the thread, and its exchanges count again with the next similar one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from lamina.streams.codec import Vector
from lamina.streams.identity import sibling_thread_id
from lamina.streams.records import Command, Unit
from lamina.streams.recurrence import Exchange, Thread
from lamina.streams.vector_table import DECIMALS, unit_length


def headed(
    thread: Thread,
    command: Command,
    episodes: Sequence[Unit],
    vectors: Sequence[Vector],
    exchanges: Sequence[Exchange],
) -> list[Thread]:
    """Return the thread under its new head, and a thread for each other episode.

    Args:
        thread: as it is now.
        command: that wrote the episodes.
        episodes: at least one, in the order of the plan.
        vectors: of the episodes, unit length; not looked at where there is one.
        exchanges: of the command; they weigh the episodes that rest on them.
    """
    heir = _nearest(thread, vectors) if len(episodes) > 1 else 0
    threads = [replace(thread, heads=(episodes[heir].id,))]
    for place, episode in enumerate(episodes):
        if place != heir:
            members = max(1, sum(not set(episode.evidence).isdisjoint(each.turns) for each in exchanges))
            threads.append(
                Thread(
                    id=sibling_thread_id(command.id, place),
                    total=vectors[place] * members,
                    members=members,
                    promoted=command.id,
                    heads=(episode.id,),
                )
            )
    return threads


def _nearest(thread: Thread, vectors: Sequence[Vector]) -> int:
    centroid = unit_length(thread.total)
    cosines = [round(float(vector @ centroid), DECIMALS) for vector in vectors]
    return cosines.index(max(cosines))


def released(exchanges: Iterable[Exchange], vectors: Mapping[UUID, Vector]) -> list[Exchange]:
    """Return exchanges as they were before they were claimed or waited: the next similar one counts them.

    Args:
        exchanges: pending, or claimed.
        vectors: those of the claimed ones, computed again; one without a vector stays as it is.
    """
    free = []
    for exchange in exchanges:
        vector = vectors.get(exchange.id) if exchange.vector is None else exchange.vector
        if vector is not None:
            free.append(replace(exchange, vector=vector, state="unconsolidated", thread=None, command=None))
    return free
