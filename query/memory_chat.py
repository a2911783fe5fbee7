"""MemoryChat: a conversation with any OpenAI-compatible client that remembers and recalls (RLM-Memory §4.1).

The same as the chat proxy (`lamina.query.chat`), for a program that holds the conversation itself:

```python
async with Client("http://localhost:8321") as memory:
    chat = MemoryChat(AsyncOpenAI(), memory, user_id="ada", model="gpt-4.1-mini")
    print(await chat.send("Where did I put my spare key?"))
```
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Literal, Protocol, TypeVar
from uuid import uuid4

from lamina.query.chat_history import Message, Spoken, cleaned, fitting, spoken_in
from lamina.query.chat_window import arranged
from lamina.query.client import Client, ServiceError
from lamina.query.models import MAX_MESSAGES, MAX_QUERY_CHARACTERS

T = TypeVar("T")

_END = object()


class ChatClient(Protocol):
    """`openai.AsyncOpenAI`, `openai.OpenAI`, or what has the same `chat.completions.create`."""

    chat: Any


class MemoryChat:
    """One conversation of one user.

    Everything said is remembered as `POST /v1/memories` accepts it, under ids of the conversation and all
    that was said before: a conversation that is begun again with the same `run_id` and `history` doubles
    nothing. What was recalled goes to the model alone, never into the history or into memory.

    Memory never makes a chat fail: `fault` says what it could not do at the last `send`, and what was not
    remembered is sent again with the next. A `send` that fails, or a stream that is left, is no part of the
    history, though what the user said is remembered; said again, it is still said once.
    """

    def __init__(
        self,
        model_client: ChatClient,
        memory: Client,
        *,
        user_id: str,
        model: str,
        run_id: str | None = None,
        system: str | None = None,
        history: Sequence[Message] = (),
        threshold: int = 20_000,
        last: int = 10,
        context_tokens: int = 2_000,
        recall: Literal["beyond", "always"] = "beyond",
        memory_seconds: float = 5.0,
    ) -> None:
        """Begin a conversation, or go on with one.

        Args:
            model_client: asks the model; not closed here.
            memory: a client of the Lamina service; not closed here.
            user_id: whose memory.
            model: which model.
            run_id: the conversation's name; without one it is a new one.
            system: the system message.
            history: what was said before, oldest first.
            threshold: longest history, in characters, that goes to the model whole.
            last: messages at the end of a longer one that go with what memory holds.
            context_tokens: most tokens of memory in one question.
            recall: add memory beyond the threshold only, or to short histories too.
            memory_seconds: longest wait for one answer of memory.
        """
        self._model_client = model_client
        self._memory = memory
        self._user_id = user_id
        self._model = model
        self.run_id = run_id or str(uuid4())
        self._system: list[Message] = [{"role": "system", "content": system}] if system else []
        self.history: list[Message] = cleaned(history)
        """What was said so far, oldest first."""
        self.fault: str | None = None
        """What memory could not do at the last `send` or `stream`; None: all went well."""
        self._threshold = threshold
        self._last = last
        self._context_tokens = context_tokens
        self._recall = recall
        self._seconds = memory_seconds
        self._known: set[str] = set()

    async def send(self, text: str, **options: Any) -> str:
        """Say something and return the model's reply.

        Args:
            text: what the user says.
            options: further arguments of `chat.completions.create`.

        Raises:
            Exception: whatever the model's client raises.
        """
        said = [*self.history, {"role": "user", "content": text}]
        completion = await self._create(await self._prepared(said), options)
        reply = completion.choices[0].message.content or ""
        await self._replied(said, reply)
        return reply

    async def stream(self, text: str, **options: Any) -> AsyncIterator[str]:
        """Say something and yield the model's reply piece by piece; remembered when it has come to its end.

        Args:
            text: what the user says.
            options: further arguments of `chat.completions.create`.

        Raises:
            Exception: whatever the model's client raises.
        """
        said = [*self.history, {"role": "user", "content": text}]
        chunks = await self._create(await self._prepared(said), {**options, "stream": True})
        pieces: list[str] = []
        finished = False
        try:
            async for chunk in _each(chunks):
                for choice in chunk.choices[:1]:
                    finished = finished or choice.finish_reason is not None
                    if choice.delta.content:
                        pieces.append(choice.delta.content)
                        yield choice.delta.content
        finally:
            await _awaited(chunks.close())
        if finished:
            await self._replied(said, "".join(pieces))

    async def _prepared(self, said: Sequence[Message]) -> list[Message]:
        """Recall, then remember what was said, and return the messages for the model."""
        self.fault = None
        spoken = self._spoken(said)
        missing = [one.index for one in spoken[:-1] if one.id not in self._known]
        messages = await arranged(
            [*self._system, *said],
            self._recalled,
            missing=[index + len(self._system) for index in missing],
            threshold=self._threshold,
            last=self._last,
            always=self._recall == "always",
        )
        await self._remember(spoken)
        return list(messages.messages)

    async def _recalled(self, question: str) -> str | None:
        asked = self._memory.context(
            question[:MAX_QUERY_CHARACTERS], self._user_id, max_tokens=self._context_tokens
        )
        found = await self._tried(asked)
        return None if found is None else found.context

    async def _replied(self, said: list[Message], reply: str) -> None:
        self.history = [*said, {"role": "assistant", "content": reply}] if reply else said
        await self._remember(self._spoken(self.history))

    async def _remember(self, spoken: Sequence[Spoken]) -> None:
        new = [one for one in fitting(spoken) if one.id not in self._known]
        for first in range(0, len(new), MAX_MESSAGES):
            some = new[first : first + MAX_MESSAGES]
            messages = [
                {"role": one.role, "content": one.text, "name": one.name, "message_id": one.id}
                for one in some
            ]
            if await self._tried(self._memory.add(messages, self._user_id, run_id=self.run_id)) is None:
                return
            self._known.update(one.id for one in some)

    async def _tried(self, asked: Awaitable[T]) -> T | None:
        """Return memory's answer, or None with its fault noted."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asked
        except TimeoutError:
            self.fault = f"memory did not answer within {self._seconds:g} s"
        except ServiceError as exc:
            self.fault = str(exc)
        return None

    async def _create(self, messages: list[Message], options: dict[str, Any]) -> Any:
        create = self._model_client.chat.completions.create
        # In a thread, for a client that blocks; one that does not returns its coroutine from there at once.
        return await _awaited(
            await asyncio.to_thread(create, model=self._model, messages=messages, **options)
        )

    def _spoken(self, messages: Sequence[Message]) -> list[Spoken]:
        return spoken_in(f"{self._user_id}\n{self.run_id}", messages)


async def _each(chunks: Any) -> AsyncIterator[Any]:
    """Iterate over a stream of either kind of client."""
    if hasattr(chunks, "__aiter__"):
        async for chunk in chunks:
            yield chunk
        return
    iterator = iter(chunks)
    while (chunk := await asyncio.to_thread(next, iterator, _END)) is not _END:
        yield chunk


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
