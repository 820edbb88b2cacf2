"""What is said when something is wrong: as a page to people, as JSON to programs."""

from __future__ import annotations

from likeset.extras import optional_packages
from likeset.web.pages import Pages
from likeset.web.responses import Json
from likeset.web.security import HEADERS, TOO_SLOW, Limits, too_large
from likeset.web.worker import Refused

with optional_packages():
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response

_STATUS = {  # by kind: the status, the title of the page
    "Forged": (403, "Not allowed"),
    "NotFound": (404, "Not found"),
    "NotYet": (503, "Not yet"),
    "Busy": (503, "Too many at once"),
}


class Refusals:
    """Handlers of errors."""

    def __init__(self, pages: Pages, limits: Limits) -> None:
        self._pages, self._limits = pages, limits

    def answer(self, request: Request, status: int, kind: str, title: str, text: str) -> Response:
        """An error, in the language of who asked."""
        if request.url.path.startswith("/api/"):
            return Json({"error": kind, "text": text}, status)
        return self._pages.page(request, "error.html", status, title=title, text=text)

    async def not_found(self, request: Request, error: Exception) -> Response:
        """An address that does not exist."""
        text = "Nothing has this address. All that there is can be reached from the list of studies."
        return self.answer(request, 404, "NotFound", "No such page", text)

    async def not_understood(self, request: Request, error: Exception) -> Response:
        """A request that is no such request: a method that an address does not have, a form that cannot be read."""
        assert isinstance(error, HTTPException)
        return self.answer(request, error.status_code, "NotUnderstood", "That did not work", str(error.detail))

    async def refused(self, request: Request, error: Exception) -> Response:
        """An error of likeset's own."""
        kind = error.kind if isinstance(error, Refused) else type(error).__name__
        status, title = _STATUS.get(kind, (422, "That did not work"))
        return self.answer(request, status, kind, title, str(error))

    async def unavailable(self, request: Request, error: Exception) -> Response:
        """The process that computes died."""
        return self.answer(request, 503, "Unavailable", "Try again", str(error))

    async def cut_off(self, request: Request, error: Exception) -> Response:
        """A body that was longer than its header said, or came too slowly; whoever has hung up hears nothing."""
        if TOO_SLOW in request.scope:
            return self.answer(request, 408, "TooSlow", "That took too long", "The request came too slowly; try again.")
        return self.answer(request, 413, "TooLarge", "Too much at once", too_large(self._limits))

    async def failed(self, request: Request, error: Exception) -> Response:
        """A bug: no details for strangers. Answered outside of the guard, which adds headers to all other answers."""
        text = "The server failed; its log says why. Nothing acknowledged is lost."
        answer = self.answer(request, 500, "Failed", "The server failed", text)
        answer.headers.update(HEADERS)
        return answer
