"""A stand-in for a language model that answers every prompt by rules, to count calls and tokens without one.

It reads nothing but the prompt's data, as a model would, and fills the form of its reply with what the rules
find there. Episodes are quotes of at most 700 characters, about the 110 words that the prompts ask a model
for; facts are at most eight, as asked, and about as many as a model would note
(`lamina.bench.rehearsal_facts`). So the tokens are near what a model would cost, and the wording says nothing
about what a model would write: never a measure of quality.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import orjson

from lamina.bench.rehearsal_diagnosis import proposed
from lamina.bench.rehearsal_facts import noted
from lamina.bench.rehearsal_material import Entry, head_of, node_of, nodes_of, number_of, told_by, turns_of
from lamina.bench.tokens import Tokenizer
from lamina.streams.engine import Neighbourhood, Node
from lamina.streams.entities import entities
from lamina.streams.episodes import episode_of, merged_episode
from lamina.streams.facts import replaces
from lamina.streams.llm import Completion, Prompt, Purpose
from lamina.streams.records import Descriptor, EpisodeDraft, FactDraft, Unit
from lamina.streams.sentences import clipped
from lamina.streams.topology.rule_plans import in_common, merged, parts_of, refreshed
from lamina.streams.words import stems

MOST_FACTS = 8
_DESCRIBED_LINES = 2
_LONGEST_SUMMARY = 300

Data = Mapping[str, Any]
Json = dict[str, Any]


class RehearsalModel:
    """The `LanguageModel` port by rules; its tokens are counted by the given tokenizer."""

    name = "rehearsal"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    async def complete(self, prompt: Prompt[Any], *, repair: bool) -> Completion:  # noqa: ARG002
        """Answer in the form asked for; a reply beyond `max_tokens` has the fault that a model's would."""
        # Through JSON, as the data reach a model.
        data = orjson.loads(prompt.messages[1]["content"])
        reply = await asyncio.to_thread(answer, prompt.purpose, data)
        text = prompt.reply.model_validate(reply).model_dump_json()
        written = self._tokenizer.count(text)
        return Completion(
            text=text,
            model=self.name,
            tokens_in=self._tokenizer.prompt(prompt),
            tokens_out=written,
            attempts=1,
            seconds=0.0,
            fault="cut off at max_tokens" if written > prompt.max_tokens else None,
        )

    async def close(self) -> None:
        """Nothing is held."""


def answer(purpose: Purpose, data: Data) -> Json:
    """Return the reply to a prompt's data, in the form of its reply model."""
    return _ANSWERS[purpose](data)


def _consolidate(data: Data) -> Json:
    turns = turns_of(data["turns"])
    known = data["episodes"]
    episode = _next(turns, known) if known else episode_of(turns)
    told = episode.text if episode else ""
    return {
        "episodes": [] if episode is None else [{**_episode(episode, turns), "continues": _numbers(known)}],
        "why_none": "the turns carry no sentence" if episode is None else None,
        "facts": _facts(turns, data["known"], told),
        "resolved": _resolved(data["turns"]),
    }


def _episodes(data: Data) -> Json:
    turns = turns_of(data["turns"])
    episode = episode_of(turns)
    if episode is None:
        return {"episodes": [], "why_none": "the turns carry no sentence"}
    return {"episodes": [_episode(episode, turns)], "why_none": None}


def _merge_episode(data: Data) -> Json:
    turns = turns_of(data["turns"])
    episode = _next(turns, data["episodes"])
    if episode is None:
        return {"episodes": [], "why_none": "the turns carry no sentence"}
    made = {**_episode(episode, turns), "continues": _numbers(data["episodes"])}
    return {"episodes": [made], "why_none": None}


def _refine(data: Data) -> Json:
    return {"facts": _facts(turns_of(data["turns"]), data["known"], str(data["episode"]))}


def _extract(data: Data) -> Json:
    return {"facts": _facts(turns_of(data["turns"]), data.get("known", ()), "")}


def _describe(data: Data) -> Json:
    turns = turns_of(data["turns"])
    episode = episode_of(turns)
    if episode is None:
        latest = turns[-1]
        summary = f"[{latest.said_at.date().isoformat()}] {clipped(latest.spoken, _LONGEST_SUMMARY)}"
        return {"summary": summary, "keywords": []}
    lines = " ".join(episode.text.splitlines()[:_DESCRIBED_LINES])
    return {"summary": clipped(lines, _LONGEST_SUMMARY), "keywords": list(episode.keywords)}


def _diagnose(data: Data) -> Json:
    target, *anchors = nodes_of(data["units"])
    found: Json = {"splits": [], "merges": [], "updates": []}
    for each in proposed(Neighbourhood(target, tuple(anchors))):
        why = {"reason": each.reason, "confidence": each.confidence}
        numbers = [number_of(unit) for unit in each.targets]
        if each.operator == "split":
            found["splits"].append({"unit": numbers[0], **why})
        elif each.operator == "merge":
            found["merges"].append({"units": numbers, **why})
        else:
            found["updates"].append({"current": numbers[0], "superseded": numbers[1], **why})
    return found


def _plan_split(data: Data) -> Json:
    turns = turns_of(data["turns"])
    unit = head_of({"n": 0, "text": data["unit"], "to": data["turns"][-1]["at"], "topic": None})
    parts, _ = parts_of(Node(unit, tuple(turns)))
    if len(turns) == 1 and parts:
        return {"segments": [{"turns": [], "quotes": [{"turn": 1, "text": part}]} for part in parts]}
    whole = {number_of(turn.id): turn.text for turn in turns}
    segments = []
    for part in parts or ("\n".join(whole.values()),):
        numbers = [number for number, text in whole.items() if text in part]
        whole = {number: text for number, text in whole.items() if number not in numbers}
        segments.append({"turns": numbers, "quotes": []})
    return {"segments": segments}


def _plan_merge(data: Data) -> Json:
    made = merged(nodes_of(data["units"]))
    return {"same": made is not None, **_descriptor(made, "summary")}


def _plan_update(data: Data) -> Json:
    return _descriptor(refreshed(node_of(data["current"])), "summary")


def _abstract(data: Data) -> Json:
    made = in_common(nodes_of(data["units"]))
    return {"related": made is not None, **_descriptor(made, "statement")}


_ANSWERS: dict[Purpose, Callable[[Data], Json]] = {
    "consolidate": _consolidate,
    "episodes": _episodes,
    "merge_episode": _merge_episode,
    "refine": _refine,
    "describe": _describe,
    "diagnose": _diagnose,
    "plan_split": _plan_split,
    "plan_merge": _plan_merge,
    "plan_update": _plan_update,
    "abstract": _abstract,
    "extract": _extract,
}


def _next(turns: Sequence[Unit], known: Sequence[Entry]) -> EpisodeDraft | None:
    return merged_episode([head_of(each) for each in known], told_by(known), turns)


def _episode(draft: EpisodeDraft, turns: Sequence[Unit]) -> Json:
    shown = {turn.id for turn in turns}
    return {
        "turns": [number_of(turn) for turn in draft.evidence if turn in shown],
        "text": draft.text,
        "topic": draft.topic or "",
        "keywords": list(draft.keywords),
        "entities": list(draft.entities),
    }


def _facts(turns: Sequence[Unit], known: Sequence[Entry], told: str) -> list[Json]:
    """Return the facts that the told text omits and that are not known, as a refiner is asked to."""
    there = set(stems(told))
    new = (
        fact
        for fact in noted(turns)
        if not there.issuperset(stems(f"{fact.subject} {fact.object}")) and not _is_known(fact, known)
    )
    said = {turn.id: turn.said_at.date() for turn in turns}
    return [
        {
            "turns": [number_of(turn) for turn in fact.evidence],
            "subject": fact.subject,
            "relation": fact.relation,
            "object": fact.object,
            "text": fact.text,
            "holds_one": replaces(fact.relation),
            "valid_from": None
            if fact.valid_from.date() in {said[turn] for turn in fact.evidence}
            else fact.valid_from.date().isoformat(),
            "updates": _updated(fact, known),
        }
        for fact, _ in zip(new, range(MOST_FACTS), strict=False)
    ]


def _is_known(fact: FactDraft, known: Sequence[Entry]) -> bool:
    return any([fact.subject, fact.relation, fact.object] == each["fact"] for each in known)


def _updated(fact: FactDraft, known: Sequence[Entry]) -> int | None:
    if not replaces(fact.relation):
        return None
    same = (each["n"] for each in known if each["fact"][:2] == [fact.subject, fact.relation])
    return next(same, None)


def _resolved(entries: Sequence[Entry]) -> list[Json]:
    """Answer the open references whose turn is preceded by one name alone, other than the speaker's."""
    found: list[Json] = []
    for entry in entries:
        before = [str(line).partition(": ") for line in entry.get("before", ())]
        speakers = {who.casefold() for who, _, _ in before} | {str(entry["who"]).casefold()}
        names = set(chain.from_iterable(entities(words) for _, _, words in before)) - speakers
        if len(names) == 1:
            (name,) = names
            found += [{"turn": entry["n"], "phrase": phrase, "means": name} for phrase in entry["open"]]
    return found


def _numbers(entries: Sequence[Entry]) -> list[int]:
    return [int(each["n"]) for each in entries]


def _descriptor(made: Descriptor | None, field: str) -> Json:
    if made is None:
        return {field: "", "keywords": []}
    return {field: made.summary, "keywords": list(made.keywords)}
