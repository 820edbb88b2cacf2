"""Everything as JSON. Programs write with ``Authorization: Bearer TOKEN``."""

from __future__ import annotations

from typing import Any

from likeset.extras import optional_packages
from likeset.web.desk import Desk
from likeset.web.responses import Json
from likeset.web.rows import count_from
from likeset.web.worker import Refused

with optional_packages():
    import anyio
    from starlette.requests import Request
    from starlette.responses import Response

MOST_ROWS = 100_000
PARTS = (
    "name", "factors", "outcome", "control", "goal", "alpha", "margin", "key", "event", "units", "formula", "bound",
    "model", "range", "until", "safe", "known_safe", "failed", "seed",
)  # fmt: skip


class Api:
    """Handlers of requests for JSON."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def studies(self, request: Request) -> Response:
        """Every study with its answers, as far as they are known."""
        return Json(await self._desk.listed())

    async def study(self, request: Request) -> Response:
        """Everything about one study."""
        name = await self._name(request)
        found = await self._desk.study(name, patience=20.0)
        answers = None if found is None else found[1].answers
        if found is None or answers is None:
            raise Refused("NotYet", (found and found[1].problem) or "the study is being opened; try again.")
        head, known = found
        return Json(answers | {"rows_in_store": head["rows"], "current": known.is_of(head)})

    async def history(self, request: Request) -> Response:
        """Answers at every look, and when verdicts became certain."""
        return Json(await self._desk.history(await self._name(request)))

    async def create(self, request: Request) -> Response:
        """A new study from {"name", "factors", "outcome", "family", ...}; the family is a name, or [name, settings].

        Factors are lists of levels, {"interval": [low, high]}, or {"centre": c, "scale": s}.
        """
        given = await _json(request)
        unknown = sorted(set(given) - {*PARTS, "family"}) if isinstance(given, dict) else ["no object"]
        if unknown:
            raise Refused("InvalidArgumentError", f"{unknown} is not known; pass an object with {PARTS} and family.")
        family = given.get("family")
        chosen: Any = (family, {}) if isinstance(family, str) else tuple(family) if isinstance(family, list) else ()
        if len(chosen) != 2 or not isinstance(chosen[0], str) or not isinstance(chosen[1], dict):
            raise Refused(
                "InvalidArgumentError", 'family: pass a name such as "bernoulli", or ["gaussian", {"sigma": 1}].'
            )
        options = {"name": "", "outcome": "outcome"} | {part: given[part] for part in PARTS if part in given}
        return Json({"name": await self._desk.create(options | {"family": chosen}).answer()}, 201)

    async def tell(self, request: Request) -> Response:
        """Rows: a JSON list of objects, or a CSV text (``Content-Type: text/csv``). Acknowledged means on disk."""
        name = await self._name(request)
        if request.headers.get("content-type", "").partition(";")[0] == "text/csv":
            rows: Any = (await request.body()).decode("utf-8-sig", "replace")
        else:
            rows = await _json(request)
            if not isinstance(rows, list) or len(rows) > MOST_ROWS:
                raise Refused("InvalidArgumentError", f"pass a list of at most {MOST_ROWS} rows.")
        return Json((await self._desk.tell(name, rows).answer())["told"])

    async def ask(self, request: Request) -> Response:
        """The next experiments, pending from now on: a list of settings with the numbers of their runs."""
        count = count_from(request.query_params.get("count", "1"))
        return Json(await self._desk.ask(await self._name(request), count).answer())

    async def run(self, request: Request) -> Response:
        """What became of a pending run: {"run": 3, "result": {column: value}}, or "failed" or "cancelled" instead."""
        name, given = await self._name(request), await _json(request)
        number = given.get("run") if isinstance(given, dict) else None
        if not isinstance(number, int) or isinstance(number, bool):
            raise Refused("InvalidArgumentError", 'pass {"run": 3, "result": {"yield": 41.5}}, or "failed": true.')
        if given.get("cancelled") is True:
            await self._desk.cancel(name, number).answer()
            return Json({"cancelled": number})
        failed, values = given.get("failed") is True, given.get("result", {})
        if not isinstance(values, dict) or not (values or failed):
            raise Refused("InvalidArgumentError", 'pass {"result": {column: value}}, or "failed": true.')
        return Json((await self._desk.tell_run(name, number, values, failed).answer())["told"])

    async def advice(self, request: Request) -> Response:
        """The recommended setting with its certified gap, what is certain, and what is pending."""
        return Json(await self._desk.advice(await self._name(request)))

    async def _name(self, request: Request) -> str:
        name = request.query_params.get("name", "")
        if name not in await anyio.to_thread.run_sync(self._desk.heads):
            raise Refused("NotFound", f"there is no study {name!r}.")
        return name


async def _json(request: Request) -> Any:
    try:
        return await request.json()
    except (ValueError, RecursionError):
        raise Refused("InvalidArgumentError", "the body is not JSON.") from None
