"""Waiting for what takes longer than a page does: shown with the time left, and led on from to the answer.

A form, or a file that has to be made, is a :class:`~likeset.web.jobs.Job`. If its answer is there in a moment, a
browser gets it at once; otherwise it is led to ``/waiting``, which is loaded again until the job is finished, and then
leads to what the form would have led to, or to the file. Loading it again begins nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from likeset.extras import optional_packages
from likeset.web import jobs
from likeset.web.desk import Desk
from likeset.web.jobs import File, Job, Jobs, wants_pages
from likeset.web.pages import Pages, no_study, study_address
from likeset.web.responses import Json
from likeset.web.security import Gate
from likeset.web.worker import Call, WorkerDied

with optional_packages():
    import anyio
    from starlette.background import BackgroundTask
    from starlette.requests import Request
    from starlette.responses import FileResponse, RedirectResponse, Response

REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


class Waiting:
    """Handlers of requests for files, and for what is being waited for."""

    def __init__(self, desk: Desk, gate: Gate, pages: Pages) -> None:
        self._desk, self._gate, self._pages = desk, gate, pages
        self.jobs = Jobs()

    async def answered(
        self,
        request: Request,
        title: str,
        study: str,
        start: Callable[[], Call],
        answer: Callable[[Request, Job], Awaitable[Response]],
        file: File | None = None,
    ) -> Response:
        """The answer of a call; if it takes long, a browser is led to the page that shows how far it is."""
        job = Job(title, study, self.jobs.begun(start), answer, file)
        patience = jobs.PATIENCE if wants_pages(request) else float("inf")
        if await self.jobs.is_quick(job, self._gate.who(request), patience):
            return await self._answer(request, job)
        return RedirectResponse(f"/waiting?job={job.number}", 303)

    async def page(self, request: Request) -> Response:
        """How far it is; the answer once it is there. A file that was fetched is gone, and can be made anew."""
        job = self._found(request)
        finished = job.call.future.done()
        if finished and (job.file is None or job.failed):
            return await self._answer(request, job)
        back = study_address(job.study) if job.study else "/"
        return self._pages.page(request, "waiting.html", job=job, state=job.state(), back=back, finished=finished)

    async def state(self, request: Request) -> Response:
        """The same as JSON, for the script of the page."""
        return Json(self._found(request).state())

    async def file(self, request: Request) -> Response:
        """The file that was waited for; whoever comes too early, or too late, is told so."""
        job = self._found(request)
        if job.file is None or job.fetched or not job.call.future.done():
            return RedirectResponse(f"/waiting?job={job.number}", 303)
        return await self._answer(request, job)

    # -- files --------------------------------------------------------------------------------------------------------

    async def data(self, request: Request) -> Response:
        """All rows as CSV."""
        return await self._made(request, "csv", "text/csv", "Writing all rows as CSV", self._desk.data)

    async def report(self, request: Request) -> Response:
        """One file with everything, for mail and archives."""
        return await self._made(request, "html", "text/html", "Making the report", self._desk.report)

    async def _made(
        self, request: Request, ending: str, kind: str, title: str, make: Callable[[str], Call]
    ) -> Response:
        """A file; a browser that asks again for one that is being made, of the same rows, waits for that one."""
        name = request.query_params.get("name", "")
        heads = await anyio.to_thread.run_sync(self._desk.heads)
        if name not in heads:
            raise no_study(name)
        again = f"{request.url.path}{study_address(name).removeprefix('/study')}"
        file = File(_file_name(name, ending), kind, again, heads[name]["fingerprint"])
        underway = self.jobs.underway(file, self._gate.who(request)) if wants_pages(request) else None
        if underway is not None:
            return RedirectResponse(f"/waiting?job={underway.number}", 303)
        return await self.answered(request, title, name, lambda: make(name), self._sent, file)

    async def _sent(self, request: Request, job: Job) -> Response:
        assert job.file is not None
        path, headers = job.path, {"Content-Security-Policy": REPORT_POLICY} if job.file.kind == "text/html" else None
        whole = request.method == "GET" and "range" not in request.headers
        job.fetching += whole  # a part of it, or its head, leaves the file where it is
        gone = BackgroundTask(self.jobs.sent, job) if whole else None
        return FileResponse(path, filename=job.file.name, media_type=job.file.kind, headers=headers, background=gone)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _found(self, request: Request) -> Job:
        return self.jobs.find(request.query_params.get("job", ""), self._gate.who(request))

    async def _answer(self, request: Request, job: Job) -> Response:
        """The answer; of a form whose worker died nobody knows whether it was recorded."""
        try:
            return await job.answer(request, job)
        except WorkerDied as error:
            if job.file is not None:
                raise
            text = (
                f"{str(error).partition(';')[0].capitalize()} before it could say what it did: {job.title.lower()}. "
                "It may have been recorded, or not; look before you send it again."
            )
            title = "It is not known whether that worked"
            return self._pages.page(request, "error.html", 503, title=title, text=text, study=job.study)


def _file_name(name: str, ending: str) -> str:
    """A name that every system takes.

    >>> _file_name("Länge / <b>", "csv")
    'L_nge____b_.csv'
    """
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)[:60].strip(".")
    return f"{kept or 'study'}.{ending}"
