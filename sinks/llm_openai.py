"""The door to a chat model behind an OpenAI-compatible endpoint."""

import asyncio
import json
import time
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from openai import APIConnectionError, APIStatusError, AsyncOpenAI

from lamina.sinks.llm_answer import Answer, NotACompletion, answer_of
from lamina.sinks.llm_dialect import OPENAI_URL, Dialect, is_of_the_prompt
from lamina.sinks.llm_reading import Rejected, fitting
from lamina.sinks.openai_faults import (
    NO_KEY,
    Endpoint,
    asked_delay,
    check_key,
    check_url,
    quoted,
    translated,
    was_sent,
)
from lamina.sinks.token_estimate import estimated, estimated_prompt
from lamina.streams.errors import Misconfigured, ModelUnavailable
from lamina.streams.llm import Completion, Prompt
from lamina.streams.metrics import LLM_CALLS, LLM_SECONDS, LLM_TOKENS
from lamina.streams.ports import Metrics
from lamina.streams.settings import Settings

_ADVICE = {
    401: "check LAMINA_LLM_API_KEY",
    403: "the key in LAMINA_LLM_API_KEY may not use this model",
    404: "check LAMINA_LLM_BASE_URL (it usually ends in /v1) and LAMINA_LLM_MODEL",
    405: "check LAMINA_LLM_BASE_URL (it usually ends in /v1)",
}
_OTHERWISE = "check that LAMINA_LLM_MODEL is a chat model and LAMINA_LLM_BASE_URL its endpoint"


class _PromptRefused(Exception):
    """The server refuses this prompt, and would take another."""


@dataclass(slots=True)
class _Bill:
    """What a call cost so far, over its attempts."""

    tokens_in: int = 0
    tokens_out: int = 0
    attempts: int = 0
    seconds: float = 0.0


class OpenAIModel:
    """A `LanguageModel` over HTTP. Made by `open_openai_model`.

    It never retries a fault, which the caller's command waits out. The dialect that the server accepts is
    found by the first calls and kept for the life of the door (`lamina.sinks.llm_dialect`).
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        endpoint: Endpoint,
        dialect: Dialect,
        timeout_seconds: float,
        calls_at_once: int,
        metrics: Metrics,
    ) -> None:
        self.name = model
        self._client = client
        self._endpoint = endpoint
        self._dialect = dialect
        self._proved: set[Dialect] = set()
        self._timeout_seconds = timeout_seconds
        self._at_once = asyncio.Semaphore(calls_at_once)
        self._metrics = metrics

    async def complete(self, prompt: Prompt[Any], *, repair: bool) -> Completion:
        """Answer a prompt in the form of its reply model.

        A reply that is cut off, filtered, refused, empty or not of that form is sent back once with its
        fault (`repair`), quoted in the user message's JSON. What still cannot be read is returned with a
        `fault`, and so is a prompt that the server refuses as too long or unfit.

        Returns:
            The reply and its price over both attempts: the tokens that the server reports, or an estimate
            of them (`lamina.sinks.token_estimate`) where it reports none. Time spent waiting for one of the
            `llm_calls_at_once` places is not counted.

        Raises:
            ModelUnavailable: no connection, no reply within `llm_timeout_seconds`, 402, 408, 409, 425, 429 or
                5xx. What an earlier attempt of the call cost is in the metrics all the same.
            Misconfigured: the server refuses the key, the model or the request as such.
        """
        bill = _Bill()
        try:
            completion = await self._completed(prompt, bill, repair=repair)
        except ModelUnavailable as exc:
            exc.paid = bill.tokens_in + bill.tokens_out
            self._count(prompt, "unavailable")
            raise
        except Misconfigured:
            self._count(prompt, "refused")
            raise
        finally:
            self._meter(prompt, bill)
        self._count(prompt, "unreadable" if completion.fault else "repaired" if bill.attempts > 1 else "ok")
        return completion

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _completed(self, prompt: Prompt[Any], bill: _Bill, *, repair: bool) -> Completion:
        answer = Answer(text="", model="", fault=None, usage=None)
        try:
            answer = await self._attempt(prompt, None, bill)
            if answer.fault and repair:
                answer = await self._attempt(prompt, Rejected(answer.text, answer.fault), bill)
        except _PromptRefused as exc:
            answer = replace(answer, fault=str(exc))
        return Completion(
            text=answer.text,
            model=answer.model or self.name,
            tokens_in=bill.tokens_in,
            tokens_out=bill.tokens_out,
            attempts=bill.attempts,
            seconds=bill.seconds,
            fault=answer.fault,
        )

    async def _attempt(self, prompt: Prompt[Any], rejected: Rejected | None, bill: _Bill) -> Answer:
        """Ask once, enter what it cost, and free the reply's JSON or say why it cannot be read."""
        async with self._at_once:
            begun = time.perf_counter()
            bill.attempts += 1
            try:
                # the client's timeout is per read, so a reply that trickles in would not end
                async with asyncio.timeout(self._timeout_seconds):
                    answer = await self._answer(prompt, rejected)
            except TimeoutError as exc:
                late = f"no reply of the model within {self._timeout_seconds} s"
                raise ModelUnavailable(late, in_doubt=True) from exc
            finally:
                bill.seconds += time.perf_counter() - begun
        tokens_in, tokens_out = answer.usage or (estimated_prompt(prompt), estimated([answer.text]))
        bill.tokens_in += tokens_in
        bill.tokens_out += tokens_out
        try:
            return replace(answer, text=fitting(answer.text, prompt.reply), fault=None)
        except ValueError as exc:
            return replace(answer, fault=answer.fault or f"not of the form asked for: {exc}")

    async def _answer(self, prompt: Prompt[Any], rejected: Rejected | None) -> Answer:
        """Ask in the dialect known so far, and in simpler ones for as long as the server refuses that."""
        dialect = self._dialect
        while True:
            body = dialect.request(prompt, rejected)
            try:
                reply = await self._client.chat.completions.with_raw_response.create(model=self.name, **body)
            except APIConnectionError as exc:
                fault = f"{self._endpoint.name} does not answer: {exc.__cause__ or exc}"
                raise ModelUnavailable(fault, in_doubt=was_sent(exc)) from exc
            except APIStatusError as exc:
                simpler = dialect.after(exc, proved=dialect in self._proved)
                if simpler is None:
                    # not chained: a server may repeat the key in the body that the client's fault carries
                    raise self._refused(exc) from None
                dialect = simpler
            else:
                answer = self._read(reply.content)
                if dialect not in self._proved:
                    self._proved.add(dialect)
                    self._dialect = dialect
                return answer

    def _read(self, content: bytes) -> Answer:
        try:
            return answer_of(json.loads(content))
        except NotACompletion as exc:
            fault, says_error = quoted(str(exc), self._endpoint.key), exc.says_error
        except (ValueError, RecursionError):
            fault, says_error = repr(content[:80]), False
        if says_error:
            raise ModelUnavailable(f"{self._endpoint.name} answered with a fault: {fault}")
        if not self._proved:
            raise Misconfigured(
                f"the reply is not one of a chat endpoint ({fault}): check LAMINA_LLM_BASE_URL"
            ) from None
        return Answer(text="", model="", fault=f"the reply is not a chat completion: {fault}", usage=None)

    def _refused(self, refusal: APIStatusError) -> Exception:
        """Return what a refusal means when no simpler request would pass.

        A 400 or 422 that no words explain is this prompt's fault once the server has answered another; until
        then it may be the model or the endpoint, and an operator is told rather than every command skipped.
        """
        words = quoted(refusal.message, self._endpoint.key)
        if refusal.status_code == HTTPStatus.PAYMENT_REQUIRED:
            return ModelUnavailable(
                f"{self._endpoint.name} wants to be paid: {words}",
                retry_after=asked_delay(refusal.response.headers),
            )
        unexplained = refusal.status_code in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
        if is_of_the_prompt(refusal) or (unexplained and self._proved):
            return _PromptRefused(f"{self._endpoint.name} refused the prompt: {words}")
        return translated(refusal, self._endpoint)

    def _count(self, prompt: Prompt[Any], outcome: str) -> None:
        self._metrics.count(LLM_CALLS, purpose=prompt.purpose, model=self.name, outcome=outcome)

    def _meter(self, prompt: Prompt[Any], bill: _Bill) -> None:
        labels = {"purpose": prompt.purpose, "model": self.name}
        self._metrics.count(LLM_TOKENS, bill.tokens_in, **labels, direction="in")
        self._metrics.count(LLM_TOKENS, bill.tokens_out, **labels, direction="out")
        self._metrics.observe(LLM_SECONDS, bill.seconds, **labels)


def open_openai_model(settings: Settings, metrics: Metrics) -> OpenAIModel:
    """Make the model that the settings describe; nothing is sent yet.

    Raises:
        Misconfigured: no model is set, neither an endpoint nor a key is, or one of them cannot be used.
    """
    if not settings.llm_model:
        raise Misconfigured("LAMINA_LLM_MODEL is not set: it names the chat model that consolidates")
    if not settings.llm_base_url and not settings.llm_api_key:
        raise Misconfigured("LAMINA_LLM_MODEL needs LAMINA_LLM_API_KEY or LAMINA_LLM_BASE_URL")
    if settings.llm_base_url:
        check_url(settings.llm_base_url, "LAMINA_LLM_BASE_URL")
    check_key(settings.llm_api_key, "LAMINA_LLM_API_KEY")
    url = settings.llm_base_url or OPENAI_URL
    client = AsyncOpenAI(
        base_url=url,
        api_key=settings.llm_api_key or NO_KEY,
        timeout=settings.llm_timeout_seconds,
        max_retries=0,
    )
    return OpenAIModel(
        client=client,
        model=settings.llm_model,
        endpoint=Endpoint(
            name="the language model's endpoint",
            away=ModelUnavailable,
            key=settings.llm_api_key,
            advice=_ADVICE,
            otherwise=_OTHERWISE,
        ),
        dialect=Dialect.towards(url, settings.llm_thinking_tokens),
        timeout_seconds=settings.llm_timeout_seconds,
        calls_at_once=settings.llm_calls_at_once,
        metrics=metrics,
    )
