"""Server-sent events: pages are told when rows were recorded, by whomever, and what is still being drawn.

One task looks at the store once a second for all streams; a stream costs a queue.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from likeset.errors import LikesetError
from likeset.extras import optional_packages
from likeset.web.desk import Desk

with optional_packages():
    import anyio
    from starlette.responses import PlainTextResponse, Response, StreamingResponse
    from starlette.types import Receive, Scope, Send

EVERY = 1.0  # seconds between looks at the store
_BEAT = 15.0  # seconds between comments that keep a connection open


class _Counted(StreamingResponse):
    """A stream of events that says when it has ended, however it did."""

    def __init__(self, content: AsyncIterator[str], ended: Callable[[], None]) -> None:
        super().__init__(content, media_type="text/event-stream")
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class Streams:
    """All event streams of the server."""

    def __init__(self, desk: Desk, most: int) -> None:
        self._desk, self._most, self._open = desk, most, 0
        self._heads: dict[str, dict[str, Any]] = {}
        self._looked = -1e9

    def response(self, name: str | None) -> Response:
        """A stream about one study, or about all."""
        if self._open >= self._most:
            return PlainTextResponse("Too many pages are listening.\n", 503)
        self._open += 1  # now: many may be promised before the first one begins
        return _Counted(self._stream(name), self._one_less)

    def _one_less(self) -> None:
        self._open -= 1

    async def _look(self) -> dict[str, dict[str, Any]]:
        """The heads, at most so old; streams share a look."""
        if anyio.current_time() - self._looked > 0.8 * EVERY:
            self._looked = anyio.current_time()
            with contextlib.suppress(LikesetError):  # busy or gone for a moment: what was seen last stays
                self._heads = await anyio.to_thread.run_sync(self._desk.heads)
        return self._heads

    async def _stream(self, name: str | None) -> AsyncIterator[str]:
        seen, quiet = None, 0.0
        while True:
            heads = await self._look()
            state = self._state(heads, name)
            if state != seen:
                yield f"event: state\ndata: {json.dumps(state)}\n\n"
                seen, quiet = state, 0.0
            elif quiet > _BEAT:
                yield ": still here\n\n"
                quiet = 0.0
            await anyio.sleep(EVERY)
            quiet += EVERY

    def _state(self, heads: dict[str, dict[str, Any]], name: str | None) -> Any:
        if name is None:
            return {n: head["rows"] for n, head in heads.items()}
        known = self._desk._known.get(name)
        call = known.drawing if known is not None else None
        busy = call is not None and not call.future.done()
        state: dict[str, Any] = {"rows": heads.get(name, {}).get("rows"), "drawing": busy}
        if busy and call is not None:
            state |= {"share": None if call.share is None else round(call.share, 3), "text": call.text}
        return state
