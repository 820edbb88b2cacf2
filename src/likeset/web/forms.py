"""Forms: what is written on the page. Each becomes a call of the worker that writes, and leads back to its study."""

from __future__ import annotations

from typing import Any

from likeset.errors import LikesetError
from likeset.extras import optional_packages
from likeset.web.desk import Desk
from likeset.web.jobs import Job
from likeset.web.pages import Pages, no_study, study_address
from likeset.web.rows import (
    OFFERED,
    count_from,
    definition_from,
    fields_of,
    number_of_run,
    outcome_fields,
    row_from,
)
from likeset.web.security import Gate, Limits
from likeset.web.waiting import Waiting
from likeset.web.worker import Refused

with optional_packages():
    import anyio
    from starlette.requests import Request
    from starlette.responses import RedirectResponse, Response

_LONGEST_REFILLED = 1 << 20  # characters of a text that was refused, and is shown again to be mended


class Forms:
    """Handlers of forms that were sent."""

    def __init__(self, desk: Desk, gate: Gate, limits: Limits, pages: Pages, waiting: Waiting) -> None:
        self._desk, self._gate, self._limits, self._pages, self._waiting = desk, gate, limits, pages, waiting

    async def back(self, request: Request) -> Response:
        """The address of a form, opened like a page: back to the study that it belongs to."""
        return RedirectResponse(study_address(request.query_params.get("name", "")), 303)

    async def tell(self, request: Request) -> Response:
        """Rows: one by its inputs, or several as CSV."""
        name, form = request.query_params.get("name", ""), await self._form(request)
        definition = await self._definition(name)
        try:
            table: Any = form.get("csv", "")
            rows = table if table.strip() else [row_from(form, fields_of(definition))]
        except LikesetError as error:
            return await self._pages.study_page(request, name, 422, message=str(error), filled=form)

        filled = {key: text for key, text in form.items() if len(text) <= _LONGEST_REFILLED}

        async def answer(request: Request, job: Job) -> Response:
            try:
                told = job.call.future.result()["told"]
            except Refused as error:
                return await self._pages.study_page(request, name, 422, message=str(error), filled=filled)
            if told["warnings"]:
                said, recorded = " ".join(told["warnings"]), str(told["recorded"])
                return await self._pages.study_page(request, name, message=said, told=recorded)
            return RedirectResponse(f"{study_address(name)}&told={told['recorded']}#tell", 303)

        tell = self._waiting.answered
        return await tell(request, "Recording rows", name, lambda: self._desk.tell(name, rows), answer)

    async def ask(self, request: Request) -> Response:
        """The next experiments."""
        name, form = request.query_params.get("name", ""), await self._form(request)
        await self._definition(name)
        try:
            count = count_from(form.get("count", "1"))
        except LikesetError as error:
            return await self._pages.study_page(request, name, 422, message=str(error))

        async def answer(request: Request, job: Job) -> Response:
            try:
                asked = job.call.future.result()
            except Refused as error:
                return await self._pages.study_page(request, name, 422, message=str(error))
            return RedirectResponse(f"{study_address(name)}&asked={len(asked)}#pending", 303)

        ask = self._waiting.answered
        return await ask(request, "Choosing what to run next", name, lambda: self._desk.ask(name, count), answer)

    async def run(self, request: Request) -> Response:
        """What became of a pending run: a result, a failure, or nothing (cancelled)."""
        name, form = request.query_params.get("name", ""), await self._form(request)
        definition = await self._definition(name)
        try:
            run, what = number_of_run(form.get("run", "")), form.get("what", "told")
            failed, cancelled = what == "failed", what == "cancelled"
            values = {} if cancelled else row_from(form, outcome_fields(definition), may_be_empty=failed)
        except LikesetError as error:
            return await self._pages.study_page(request, name, 422, message=str(error))

        async def answer(request: Request, job: Job) -> Response:
            try:
                done = job.call.future.result()
            except Refused as error:
                return await self._pages.study_page(request, name, 422, message=str(error))
            told = "" if cancelled else f"&told={done['told']['recorded']}"
            return RedirectResponse(f"{study_address(name)}{told}#pending", 303)

        if cancelled:
            title, start = f"Cancelling run {run}", lambda: self._desk.cancel(name, run)
        else:
            title, start = f"Recording run {run}", lambda: self._desk.tell_run(name, run, values, failed)
        return await self._waiting.answered(request, title, name, start, answer)

    async def create(self, request: Request) -> Response:
        """A new study."""
        form = await self._form(request)

        def refused(request: Request, error: Exception) -> Response:
            said = str(error)
            return self._pages.page(request, "new.html", 422, offered=OFFERED, filled=form, message=said)

        async def answer(request: Request, job: Job) -> Response:
            try:
                return RedirectResponse(study_address(job.call.future.result()), 303)
            except Refused as error:
                return refused(request, error)

        try:
            given = definition_from(form)
        except LikesetError as error:
            return refused(request, error)
        return await self._waiting.answered(
            request, "Beginning the study", "", lambda: self._desk.create(given), answer
        )

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _definition(self, name: str) -> dict[str, Any]:
        found = await anyio.to_thread.run_sync(self._desk.definition, name)
        if found is None:
            raise no_study(name)
        return found

    async def _form(self, request: Request) -> dict[str, str]:
        """Texts of a form that came from one of our pages; files become texts."""
        found = {}
        async with request.form(max_files=1, max_fields=200, max_part_size=self._limits.largest_body) as form:
            if not self._gate.form_is_ours(request, form):
                text = "This form is not from a page of this server, or it was restarted: load the page again."
                raise Refused("Forged", text)
            for key, value in form.items():
                if isinstance(value, str):
                    found[key] = value
                elif value.size:
                    found[key] = (await value.read()).decode("utf-8-sig", "replace")
        return found
