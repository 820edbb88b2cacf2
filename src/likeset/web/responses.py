"""Answers that can always be sent: texts of the users' own may hold halves of characters, which UTF-8 cannot hold."""

from __future__ import annotations

import json
from typing import Any

from likeset.extras import optional_packages

with optional_packages():
    from starlette.responses import HTMLResponse, JSONResponse


class Json(JSONResponse):
    """JSON in ASCII, which browsers and programs read as they do any other."""

    def render(self, content: Any) -> bytes:
        """The bytes."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Page(HTMLResponse):
    """A page; what cannot be written is a question mark."""

    def render(self, content: Any) -> bytes:
        """The bytes."""
        return str(content).encode("utf-8", "replace")
