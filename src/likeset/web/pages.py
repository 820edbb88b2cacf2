"""Pages for people: made on the server, complete without JavaScript."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

from likeset.extras import optional_packages
from likeset.study import wording
from likeset.study.findings import best_setting, findings
from likeset.study.numerals import number
from likeset.web.desk import Desk, Known
from likeset.web.events import Streams
from likeset.web.responses import Page
from likeset.web.rows import (
    OFFERED,
    fields_of,
    outcome_fields,
    takes_failures,
)
from likeset.web.security import Gate, Limits
from likeset.web.worker import Refused

with optional_packages():
    from jinja2 import Environment
    from starlette.requests import Request
    from starlette.responses import RedirectResponse, Response

PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # a picture's own style, of its own document


class Pages:
    """Handlers of requests for pages."""

    def __init__(self, desk: Desk, gate: Gate, limits: Limits, templates: Environment) -> None:
        self._desk, self._gate, self._limits, self._templates = desk, gate, limits, templates
        self._streams = Streams(desk, limits.event_streams)

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> Page:
        """A page, with what all of them need."""
        session = self._gate.session(request)
        common = {
            "may_write": self._gate.may_write(request),
            "read_only": self._gate.read_only,
            "csrf": "" if session is None else self._gate.form_value(session),
            "store": self._desk.path.name if self._gate.may_read(request) else "",
            "refresh": 0,
            "live": "",
            "message": "",
        }
        return Page(self._templates.get_template(template).render(common | values), status)

    async def home(self, request: Request) -> Response:
        """The list of studies."""
        studies = await self._desk.listed()
        for study in studies:
            study["findings"] = [] if study["answers"] is None else findings(study["answers"])
            study["best"] = None if study["answers"] is None else best_setting(study["answers"])
        waiting = any(s["answers"] is None and not s["problem"] for s in studies)
        return self.page(request, "home.html", studies=studies, refresh=int(waiting), live="/events")

    async def enter(self, request: Request) -> Response:
        """The door: who shows the token gets a cookie."""
        client = request.client.host if request.client is not None else "here"
        if not self._limits.allows("guesses", client, self._gate.is_token(request.query_params.get("token", ""))):
            return self.page(
                request,
                "error.html",
                429,
                title="Too many attempts",
                text="Wait a minute, then open the address that the server printed.",
            )
        if self._gate.is_token(request.query_params.get("token", "")):
            response = RedirectResponse("/", 303)
            secure, name = request.url.scheme == "https", self._gate.cookie(request)
            response.set_cookie(name, self._gate.new_session(), httponly=True, samesite="strict", secure=secure)
            return response
        text = "A server has a new one whenever it starts. Open the address that it printed when it started last."
        return self.page(request, "error.html", 401, title="This is not the token", text=text)

    # -- one study ----------------------------------------------------------------------------------------------------

    async def study(self, request: Request) -> Response:
        """One study."""
        return await self.study_page(request, request.query_params.get("name", ""))

    async def study_page(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        """One study, with what is said of a form that was sent."""
        found = await self._desk.study(name)
        if found is None:
            raise no_study(name)
        head, known = found
        if known.answers is None:
            waits, message = 0 if known.problem else 1, values.get("message", "")
            return self.page(
                request,
                "opening.html",
                status if message else 200 if waits else 503,
                name=name,
                head=head,
                problem=known.problem,
                call=known.answering,
                message=message,
                refresh=0 if message else waits,
            )
        given = request.query_params
        shown = {"filled": {}, "told": given.get("told", ""), "asked": given.get("asked", "")} | values
        said = self._said(name, head, known, known.answers)
        if values:  # a form is answered, and nothing takes the answer away
            said |= {"refresh": 0, "live": ""}
        return self.page(request, "study.html", status, **said, **shown)

    def _said(self, name: str, head: dict[str, Any], known: Known, answers: dict[str, Any]) -> dict[str, Any]:
        headings, cells = verdicts_first(*wording.cells(answers))
        drawing = known.drawing if known.drawing is not None and not known.drawing.future.done() else None
        return {
            "name": name,
            "head": head,
            "answers": answers,
            "definition": answers["definition"],
            "headings": headings,
            "cells": cells,
            "sentences": wording.sentences(answers),
            "findings": findings(answers, known.certain),
            "fields": fields_of(answers["definition"]),
            "behind": head["rows"] - answers["rows_recorded"],
            "drawing": drawing,
            "pictures": known.pictures,
            "drawn_of": known.drawn_of[:60],
            "advice": known.advice,
            "pending": known.pending,
            "outcomes": outcome_fields(answers["definition"]),
            "may_fail": takes_failures(answers["definition"]),
            "live": f"/events?name={quote(name, safe='')}",
            "problem": known.problem,
            "refresh": 2 if drawing is not None or not known.is_of(head) else 0,
        }

    # -- a new one ----------------------------------------------------------------------------------------------------

    async def new(self, request: Request) -> Response:
        """The form for a new study."""
        return self.page(request, "new.html", offered=OFFERED, filled={})

    # -- pictures and news ---------------------------------------------------------------------------------------------

    async def picture(self, request: Request) -> Response:
        """A picture of a study as SVG."""
        name = request.query_params.get("name", "")
        if await self._desk.study(name) is None:
            raise no_study(name)
        found = (await self._desk.pictures(name)).get(request.query_params.get("kind", ""))
        if found is None:
            raise Refused("NotFound", "There is no such picture.")
        headers = {"Content-Security-Policy": PICTURE_POLICY}
        return Response(found.encode("utf-8", "replace"), media_type="image/svg+xml", headers=headers)

    async def events(self, request: Request) -> Response:
        """Server-sent events: one whenever rows were told, by whomever."""
        return self._streams.response(request.query_params.get("name"))


def verdicts_first(headings: list[str], cells: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table with its verdicts beside the levels, where they are seen without scrolling.

    >>> verdicts_first(["level", "rows", "verdict"], [["B", "40", "better"]])
    (['level', 'verdict', 'rows'], [['B', 'better', '40']])
    """
    if "verdict" not in headings:
        return headings, cells
    at = headings.index("verdict")
    order = [0, at, *(i for i in range(1, len(headings)) if i != at)]
    return [headings[i] for i in order], [[row[i] for i in order] for row in cells]


def no_study(name: str) -> Refused:
    """What is said of a name that no study has."""
    return Refused("NotFound", f"There is no study {name!r} in this store.")


def study_address(name: str) -> str:
    """Where the page of a study is.

    >>> study_address("a/b c")
    '/study?name=a%2Fb%20c'
    """
    return f"/study?name={quote(name, safe='')}"


def rows(count: int, kind: str = "") -> str:
    """So many rows.

    >>> rows(1), rows(1800), rows(2, "newer ")
    ('1 row', '1,800 rows', '2 newer rows')
    """
    return f"{number(count)} {kind}{'row' if count == 1 else 'rows'}"


def day(text: str) -> str:
    """The day of a time in ISO format.

    >>> day("2026-03-01T12:00:00+00:00")
    '1 March 2026'
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment.day} {moment:%B %Y}"
