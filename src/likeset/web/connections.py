"""Connections that say nothing, or half of a request, are closed, and nobody holds all of them."""

from __future__ import annotations

import asyncio
from typing import Any

from likeset.extras import optional_packages

with optional_packages():
    from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 300  # at once; more are told to come back later
MOST_OF_ONE = 200  # from one address
SECONDS_TO_ASK = 20.0  # until the head of a request must be here, the first one or the next


class ShortConnection(H11Protocol):
    """HTTP as uvicorn speaks it; its own clock runs only between requests."""

    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody has come."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if sum(1 for other in self.connections if _address(other) == address) > MOST_OF_ONE:
            transport.abort()
            return
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        if self._clock is not None:
            self._clock.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request may come, as slowly as the first one."""
        super().on_response_complete()
        self._wait_for_request()

    def _wait_for_request(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = self.loop.call_later(SECONDS_TO_ASK, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.abort()


def _address(connection: Any) -> str:
    return connection.client[0] if connection.client else ""
