"""The application: which address is answered by which handler. Nothing here computes; see :mod:`~likeset.web.desk`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

from likeset.errors import LikesetError
from likeset.extras import optional_packages
from likeset.study import wording
from likeset.study.numerals import number
from likeset.web.api import Api
from likeset.web.desk import Desk
from likeset.web.forms import Forms
from likeset.web.pages import Pages, day, rows
from likeset.web.refusals import Refusals
from likeset.web.rows import kind_of_outcome
from likeset.web.security import Gate, Guard, Limits
from likeset.web.waiting import Waiting
from likeset.web.worker import Refused, WorkerDied

with optional_packages():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import ClientDisconnect
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

HERE = Path(__file__).parent


def create_app(
    store: str | os.PathLike[str],
    *,
    read_only: bool = False,
    token: str | None = None,
    hosts: tuple[str, ...] = (),
    limits: Limits | None = None,
) -> Starlette:
    """The page over a store, as an ASGI application; ``app.state.gate.token`` is what writing needs.

    hosts   names under which it is reached, behind a proxy for instance: then everything needs the token
    """
    desk, gate, limits = Desk(store, read_only), Gate(token, read_only, hosts), limits or Limits()
    templates = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)
    templates.filters |= {"number": number, "rows": rows, "day": day, "url": lambda text: quote(str(text), safe="")}
    templates.globals |= {
        "factor_text": wording.factor_text,
        "family_text": wording.family_text,
        "kind_of_outcome": kind_of_outcome,
        "with_units": wording.with_units,
    }
    for name in templates.list_templates():  # now, and not while somebody waits
        templates.get_template(name)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        waiting.jobs.close()
        desk.close()

    pages, api = Pages(desk, gate, limits, templates), Api(desk)
    waiting = Waiting(desk, gate, pages)
    forms = Forms(desk, gate, limits, pages, waiting)
    wrong = Refusals(pages, limits)
    app = Starlette(
        routes=[
            Route("/", pages.home),
            Route("/enter", pages.enter),
            Route("/new", pages.new, methods=["GET"]),
            Route("/new", forms.create, methods=["POST"]),
            Route("/study", pages.study),
            *(Route(f"/study/{form}", forms.back, methods=["GET"]) for form in ("tell", "ask", "run")),
            Route("/study/tell", forms.tell, methods=["POST"]),
            Route("/study/ask", forms.ask, methods=["POST"]),
            Route("/study/run", forms.run, methods=["POST"]),
            Route("/study/picture.svg", pages.picture),
            Route("/study/data.csv", waiting.data),
            Route("/study/report.html", waiting.report),
            Route("/waiting", waiting.page),
            Route("/waiting/file", waiting.file),
            Route("/events", pages.events),
            Route("/api/waiting", waiting.state),
            Route("/api/studies", api.studies, methods=["GET"]),
            Route("/api/studies", api.create, methods=["POST"]),
            Route("/api/study", api.study),
            Route("/api/study/history", api.history),
            Route("/api/study/tell", api.tell, methods=["POST"]),
            Route("/api/study/ask", api.ask, methods=["POST"]),
            Route("/api/study/run", api.run, methods=["POST"]),
            Route("/api/study/advice", api.advice),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        lifespan=lifespan,
        middleware=[Middleware(Guard, gate=gate, limits=limits, answer=wrong.answer)],
        exception_handlers={
            404: wrong.not_found,
            HTTPException: wrong.not_understood,
            LikesetError: wrong.refused,
            Refused: wrong.refused,
            WorkerDied: wrong.unavailable,
            ClientDisconnect: wrong.cut_off,
            500: wrong.failed,
        },
    )
    app.state.gate, app.state.desk = gate, desk
    return app
