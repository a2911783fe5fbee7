"""carry_out: do what a claimed command orders, or put it off, or give it up; always with a reason.

The language model's troubles end here, not in the guard: a command that waits for a model holds no executor,
no partition and no lane but its own namespace's.
"""

from collections.abc import Callable
from datetime import timedelta

from lamina.streams.errors import BudgetSpent, ModelUnavailable, UnusableReply
from lamina.streams.metrics import COMMANDS_FINISHED, COMMANDS_PUT_OFF
from lamina.streams.ports import Claim
from lamina.streams.steps.consolidate import consolidate
from lamina.streams.steps.outcome import Outcome
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.release import release
from lamina.streams.steps.topology import edit_topology

SHORTEST_PAUSE_SECONDS = 1.0
"""However soon a server wants to be asked again: each time costs two transactions."""


async def carry_out(claim: Claim, ports: Ports, replaces: Callable[[str], bool]) -> Outcome:
    """Carry out one command; where the model does not let it, set it to wait, or skip it.

    An unusable reply is asked for anew after a growing pause, `llm_command_attempts` times in all; then the
    command is skipped and its exchanges are released. An outage or a spent budget costs no attempt.

    Args:
        claim: the command under lease; this owner alone works in the namespace.
        ports: the outside.
        replaces: whether a relation holds one value at a time.

    Raises:
        TablesUnavailable, StoreUnavailable, EmbedderUnavailable: the command stays planned.
    """
    try:
        outcome = await _do(claim, ports, replaces)
    except UnusableReply as fault:
        outcome = await _ask_anew(claim, fault, ports)
    except (ModelUnavailable, BudgetSpent) as fault:
        asked = fault.retry_after
        pause = ports.settings.llm_retry_seconds if asked is None else max(asked, SHORTEST_PAUSE_SECONDS)
        outcome = await _put_off(claim, pause, fault, ports, attempt=False)
    if outcome.state not in {"waiting", "lost"}:
        ports.metrics.count(COMMANDS_FINISHED, kind=claim.command.kind, state=outcome.state)
    return outcome


async def _do(claim: Claim, ports: Ports, replaces: Callable[[str], bool]) -> Outcome:
    match claim.command.kind:
        case "promote" | "merge":
            return await consolidate(claim, ports, replaces)
        case "topology":
            return Outcome((await edit_topology(claim, ports)).state)
        case other:
            return await release(claim, ports, "skipped", f"no worker carries out a command of kind {other}")


async def _ask_anew(claim: Claim, fault: UnusableReply, ports: Ports) -> Outcome:
    settings = ports.settings
    if claim.attempts + 1 >= settings.llm_command_attempts:
        note = f"unusable reply, attempt {claim.attempts + 1} of {settings.llm_command_attempts}: {fault}"
        return await release(claim, ports, "skipped", note)
    pause = settings.llm_retry_seconds * 2**claim.attempts
    return await _put_off(claim, pause, fault, ports, attempt=True)


async def _put_off(
    claim: Claim,
    pause: float,
    fault: UnusableReply | ModelUnavailable | BudgetSpent,
    ports: Ports,
    *,
    attempt: bool,
) -> Outcome:
    now = ports.clock.now()
    note = f"{fault.reason}: {fault}"
    await ports.tables.put_off(claim, now + timedelta(seconds=pause), note, now, attempt=attempt)
    ports.metrics.count(COMMANDS_PUT_OFF, kind=claim.command.kind, reason=fault.reason)
    return Outcome("waiting", note)
