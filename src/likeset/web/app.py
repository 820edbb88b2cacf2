"""The application: routes, pages and JSON. Nothing here computes; see :mod:`~likeset.web.desk`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from likeset.errors import LikesetError
from likeset.extras import optional_packages
from likeset.study import wording
from likeset.web import events
from likeset.web.desk import Desk
from likeset.web.rows import OFFERED, definition_from, fields_of, row_from
from likeset.web.security import COOKIE, Gate, Guard, Limits
from likeset.web.worker import Refused, WorkerDied

with optional_packages():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from starlette.applications import Starlette
    from starlette.background import BackgroundTask
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

HERE = Path(__file__).parent
_MOST_ROWS = 100_000
Handler = Callable[[Request], Awaitable[Response]]


def create_app(
    store: str | os.PathLike[str], *, read_only: bool = False, token: str | None = None, hosts: tuple[str, ...] = (),
    limits: Limits | None = None,
) -> Starlette:  # fmt: skip
    """The page over a store, as an ASGI application; ``app.state.gate.token`` is what writing needs."""
    desk, gate, limits = Desk(store, read_only), Gate(token, read_only, hosts), limits or Limits()
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)
    templates.filters |= {"number": wording.number, "day": _day, "url": lambda text: quote(str(text), safe="")}
    templates.globals |= {"interval": wording.interval, "family_text": wording.family_text}

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        desk.close()

    page = Pages(desk, gate, limits, templates)
    routes = [
        Route("/", page.home),
        Route("/enter", page.enter),
        Route("/new", page.new),
        Route("/new", page.create, methods=["POST"]),
        Route("/study", page.study),
        Route("/study/tell", page.tell, methods=["POST"]),
        Route("/study/ask", page.ask, methods=["POST"]),
        Route("/study/picture.svg", page.picture),
        Route("/study/data.csv", page.data),
        Route("/study/report.html", page.report),
        Route("/events", page.events),
        Route("/api/studies", page.api_studies),
        Route("/api/studies", page.api_create, methods=["POST"]),
        Route("/api/study", page.api_study),
        Route("/api/study/history", page.api_history),
        Route("/api/study/tell", page.api_tell, methods=["POST"]),
        Route("/api/study/ask", page.api_ask, methods=["POST"]),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    app = Starlette(
        routes=routes, lifespan=lifespan, middleware=[Middleware(Guard, gate=gate, limits=limits)],
        exception_handlers={
            404: page.not_found, LikesetError: page.refused, Refused: page.refused, WorkerDied: page.unavailable,
            500: page.failed,
        },
    )  # fmt: skip
    app.state.gate, app.state.desk = gate, desk
    return app


class Pages:
    """Handlers of requests."""

    def __init__(self, desk: Desk, gate: Gate, limits: Limits, templates: Environment) -> None:
        self.desk, self.gate, self.limits, self.templates = desk, gate, limits, templates
        self._streams = events.Streams(desk, limits.event_streams)

    def _page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        session = self.gate.session(request)
        common = {
            "may_write": self.gate.may_write(request),
            "read_only": self.gate.read_only,
            "csrf": "" if session is None else self.gate.form_value(session),
            "store": self.desk.path.name,
            "refresh": 0,
            "live": "",
            "message": "",
        }
        return HTMLResponse(self.templates.get_template(template).render(common | values), status)

    # -- pages --------------------------------------------------------------------------------------------------------

    async def home(self, request: Request) -> Response:
        """The list of studies."""
        studies = await self.desk.listed()
        waiting = any(s["answers"] is None and not s["problem"] for s in studies)
        for study in studies:
            study["findings"] = [] if study["answers"] is None else findings(study["answers"], {})
        return self._page(request, "home.html", studies=studies, refresh=1 if waiting else 0, live="/events")

    async def enter(self, request: Request) -> Response:
        """The door: who shows the token gets a cookie."""
        client = request.client.host if request.client is not None else "here"
        if not self.limits.allows("guesses", client):
            return self._page(
                request, "error.html", 429, title="Too many attempts", text="Wait a minute, and try again."
            )
        if not self.gate.is_token(request.query_params.get("token", "")):
            text = "Open the address that the server printed when it started."
            return self._page(request, "error.html", 401, title="This is not the token", text=text)
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, self.gate.new_session(), httponly=True, samesite="strict", secure=secure)
        return response

    async def study(self, request: Request) -> Response:
        """One study."""
        return await self._study_page(request, request.query_params.get("name", ""))

    async def _study_page(self, request: Request, name: str, status: int = 200, **values: Any) -> Response:
        found = await self.desk.study(name)
        if found is None:
            return self._missing(request, name)
        head, known = found
        answers = known.answers
        if answers is None:
            return self._page(
                request, "opening.html", 200 if not known.problem else 503, name=name, head=head, problem=known.problem,
                refresh=0 if known.problem else 1,
            )  # fmt: skip
        headings, cells = wording.cells(answers)
        certain = {(c["factor"], c["level"]): c["rows"] for c in known.certain}
        call = known.drawing if known.drawing is not None and not known.drawing.future.done() else None
        return self._page(
            request, "study.html", status, name=name, head=head, answers=answers, definition=answers["definition"],
            headings=headings, cells=cells, sentences=wording.sentences(answers), fields=fields_of(answers["definition"]),
            behind=head["rows"] - answers["rows_recorded"], drawing=call, pictures=known.pictures, drawn_of=known.drawn_of[:12], findings=findings(answers, certain),
            live=f"/events?name={quote(name, safe='')}", problem=known.problem,
            refresh=2 if call is not None or not known.is_of(head) else 0,
            **({"filled": {}, "asked": [], "told": request.query_params.get("told", "")} | values),
        )  # fmt: skip

    async def new(self, request: Request) -> Response:
        """The form for a new study."""
        return self._page(request, "new.html", offered=OFFERED, filled={})

    async def create(self, request: Request) -> Response:
        """A new study from the form."""
        form = await self._form(request)
        try:
            name = await self.desk.create(definition_from(form))
        except (LikesetError, Refused) as error:
            return self._page(request, "new.html", 422, offered=OFFERED, filled=form, message=str(error))
        return RedirectResponse(f"/study?name={quote(name, safe='')}", 303)

    async def tell(self, request: Request) -> Response:
        """Rows from the form: one by its inputs, or several as CSV."""
        name, form = request.query_params.get("name", ""), await self._form(request)
        found = await self.desk.study(name, patience=30.0)
        if found is None:
            return self._missing(request, name)
        answers = found[1].answers
        if answers is None:
            return self._page(request, "error.html", 503, title="Not yet", text="The study is being opened; try again.")
        try:
            rows: Any = (
                str(form["csv"]) if form.get("csv", "").strip() else [row_from(form, fields_of(answers["definition"]))]
            )
            told = await self.desk.tell(name, rows)
        except (LikesetError, Refused) as error:
            return await self._study_page(request, name, 422, message=str(error), filled=form)
        if told["warnings"]:
            return await self._study_page(request, name, message=" ".join(told["warnings"]), told=str(told["recorded"]))
        return RedirectResponse(f"/study?name={quote(name, safe='')}&told={told['recorded']}#tell", 303)

    async def ask(self, request: Request) -> Response:
        """The next experiments."""
        name, form = request.query_params.get("name", ""), await self._form(request)
        try:
            asked = await self.desk.ask(name, _count(form.get("count", "1")))
        except (LikesetError, Refused) as error:
            return await self._study_page(request, name, 422, message=str(error))
        return await self._study_page(request, name, asked=asked)

    async def picture(self, request: Request) -> Response:
        """A picture of a study as SVG."""
        name, kind = request.query_params.get("name", ""), request.query_params.get("kind", "")
        if await self.desk.study(name) is None:
            return self._missing(request, name)
        found = (await self.desk.pictures(name)).get(kind)
        if found is None:
            return Response(status_code=404)
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}  # of the picture itself
        return Response(found, media_type="image/svg+xml", headers=headers)

    async def data(self, request: Request) -> Response:
        """All rows as CSV."""
        name = request.query_params.get("name", "")
        if await self.desk.study(name) is None:
            return self._missing(request, name)
        path = await self.desk.data(name)
        return FileResponse(
            path, filename=_file_name(name, "csv"), media_type="text/csv", background=BackgroundTask(os.unlink, path)
        )

    async def report(self, request: Request) -> Response:
        """One file with everything, for mail and archives."""
        name = request.query_params.get("name", "")
        found = await self.desk.study(name, patience=20.0)
        if found is None or found[1].answers is None:
            return self._missing(request, name)
        answers = found[1].answers
        headings, cells = wording.cells(answers)
        text = self.templates.get_template("report.html").render(
            name=name, answers=answers, headings=headings, cells=cells, sentences=wording.sentences(answers),
            pictures=await self.desk.pictures(name), style=(HERE / "static" / "page.css").read_text(encoding="utf-8"),
        )  # fmt: skip
        policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; sandbox"
        shown = {
            "Content-Security-Policy": policy,
            "Content-Disposition": f'attachment; filename="{_file_name(name, "html")}"',
        }
        return HTMLResponse(text, headers=shown)

    async def events(self, request: Request) -> Response:
        """Server-sent events: one whenever rows were told, by whomever."""
        return self._streams.response(request.query_params.get("name"))

    # -- JSON ---------------------------------------------------------------------------------------------------------

    async def api_studies(self, request: Request) -> Response:
        """Every study with its verdicts."""
        return JSONResponse([s | {"answers": s["answers"]} for s in await self.desk.listed()])

    async def api_study(self, request: Request) -> Response:
        """Everything about one study."""
        name = request.query_params.get("name", "")
        found = await self.desk.study(name, patience=20.0)
        if found is None:
            return JSONResponse({"error": "NotFound", "text": f"there is no study {name!r}."}, 404)
        head, known = found
        if known.answers is None:
            return JSONResponse({"error": "NotYet", "text": known.problem or "the study is being opened."}, 503)
        return JSONResponse(known.answers | {"rows_in_store": head["rows"], "current": known.is_of(head)})

    async def api_history(self, request: Request) -> Response:
        """Answers at every look, and when verdicts became certain."""
        name = request.query_params.get("name", "")
        if await self.desk.study(name) is None:
            return JSONResponse({"error": "NotFound", "text": f"there is no study {name!r}."}, 404)
        return JSONResponse(await self.desk.history(name))

    async def api_create(self, request: Request) -> Response:
        """A new study from {"name", "factors", "outcome", "family": [name, settings], ...}."""
        given = await _json(request)
        if not isinstance(given, dict) or not isinstance(given.get("family"), (list, str)):
            return JSONResponse(
                {"error": "InvalidArgument", "text": 'pass {"name", "factors", "outcome", "family", ...}.'}, 422
            )
        family = given["family"]
        wanted: Any = (family, {}) if isinstance(family, str) else tuple(family)
        allowed = (
            "name",
            "factors",
            "outcome",
            "control",
            "goal",
            "alpha",
            "margin",
            "key",
            "event",
            "units",
            "formula",
            "bound",
        )
        unknown = set(given) - {*allowed, "family"}
        if unknown or len(wanted) != 2 or not isinstance(wanted[1], dict):
            return JSONResponse(
                {"error": "InvalidArgument", "text": f"unknown parts: {sorted(unknown)}; use {allowed}."}, 422
            )
        options = {part: given[part] for part in allowed if part in given}
        options["name"], options["outcome"] = options.get("name", ""), options.get("outcome", "outcome")
        options["factors"] = _plain_factors(options.get("factors"))
        return JSONResponse({"name": await self.desk.create(options | {"family": wanted})}, 201)

    async def api_tell(self, request: Request) -> Response:
        """Rows: a JSON list of objects, or a CSV text."""
        name = request.query_params.get("name", "")
        kind = request.headers.get("content-type", "").partition(";")[0]
        rows: Any = (await request.body()).decode("utf-8", "strict") if kind == "text/csv" else await _json(request)
        if kind != "text/csv" and (not isinstance(rows, list) or len(rows) > _MOST_ROWS):
            return JSONResponse({"error": "InvalidArgument", "text": f"pass a list of at most {_MOST_ROWS} rows."}, 422)
        if name not in await _in_thread(self.desk.heads):
            return JSONResponse({"error": "NotFound", "text": f"there is no study {name!r}."}, 404)
        return JSONResponse(await self.desk.tell(name, rows))

    async def api_ask(self, request: Request) -> Response:
        """The next experiments."""
        name = request.query_params.get("name", "")
        return JSONResponse(await self.desk.ask(name, _count(request.query_params.get("count", "1"))))

    # -- when something is wrong --------------------------------------------------------------------------------------

    async def _form(self, request: Request) -> dict[str, str]:
        form = await request.form(max_files=1, max_fields=200, max_part_size=self.limits.largest_body)
        if not self.gate.form_is_ours(request, form):
            raise Forged
        found = {}
        for key, value in form.items():
            if isinstance(value, str):
                found[key] = value
            elif value.size:
                found[key] = (await value.read()).decode("utf-8-sig", "replace")
        return found

    def _missing(self, request: Request, name: str) -> Response:
        return self._page(
            request, "error.html", 404, title="No such study", text=f"There is no study {name!r} in this store."
        )

    async def not_found(self, request: Request, error: Exception) -> Response:
        """A page that does not exist."""
        return self._page(request, "error.html", 404, title="No such page", text="There is nothing here.")

    async def refused(self, request: Request, error: Exception) -> Response:
        """An error of likeset's own."""
        kind = error.kind if isinstance(error, Refused) else type(error).__name__
        status = 403 if isinstance(error, Forged) else 422
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": kind, "text": str(error)}, status)
        return self._page(request, "error.html", status, title="That did not work", text=str(error))

    async def unavailable(self, request: Request, error: Exception) -> Response:
        """The worker died."""
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": "Unavailable", "text": str(error)}, 503)
        return self._page(request, "error.html", 503, title="Try again", text=str(error))

    async def failed(self, request: Request, error: Exception) -> Response:
        """A bug: no detail for strangers."""
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": "Failed", "text": "the server failed; its log says why."}, 500)
        return self._page(
            request,
            "error.html",
            500,
            title="The server failed",
            text="Its log says why. Nothing acknowledged is lost.",
        )


def findings(answers: dict[str, Any], certain: dict[tuple[str, str], int]) -> list[dict[str, Any]]:
    """What a study has found, one entry per level or coefficient that is judged: verdict, sentence, since when."""
    controls = {row["factor"]: row["level"] for row in answers["rows"] if row["verdict"] == "control"}
    found = []
    for row in answers["rows"]:
        verdict = row["verdict"]
        if verdict in (None, "control"):
            continue
        control = controls.get(row["factor"], "")
        said = {
            "better": f"is better than {control}",
            "worse": f"is worse than {control}",
            "equivalent": f"is as good as {control}, within the margin",
            "positive": "has a positive effect",
            "negative": "has a negative effect",
        }.get(verdict, f"against {control}" if control else "")
        found.append(
            {
                "level": row["level"],
                "verdict": verdict,
                "said": said,
                "since": certain.get((row["factor"], row["level"])),
            }
        )
    return found


class Forged(LikesetError):
    """A form that did not come from a page of this server."""

    def __init__(self) -> None:
        super().__init__(
            "This form did not come from a page of this server, or the server was restarted: load the page again."
        )


async def _json(request: Request) -> Any:
    try:
        return await request.json()
    except (ValueError, RecursionError):
        raise Refused("InvalidArgumentError", "the body is not JSON.") from None


async def _in_thread(function: Callable[[], Any]) -> Any:
    import anyio

    return await anyio.to_thread.run_sync(function)


def _plain_factors(factors: Any) -> Any:
    """Intervals are {"interval": [low, high]} in JSON, where a pair would be two levels."""
    return factors


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 100:
        raise Refused("InvalidArgumentError", f"count = {text!r} is not a number from 1 to 100.")
    return int(text)


def _day(text: str) -> str:
    try:
        return datetime.fromisoformat(text).strftime("%-d %B %Y")
    except ValueError:
        return text


def _file_name(name: str, ending: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)[:60].strip(".")
    return f"{kept or 'study'}.{ending}"
