"""Campaigns on the page: runs that are pending, how their results become rows, what is recommended."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset.errors import InvalidArgumentError, LikesetError
from likeset.study import asked
from likeset.study.definition import Definition
from likeset.study.factors import Number
from likeset.study.study import Study, Told


def offers_choice(definition: Definition) -> bool:
    """Whether the page offers to choose the next setting: campaigns, and studies with a factor that can be set."""
    intervals = any(isinstance(f, Number) and np.isfinite(f.low) for f in definition.factors)
    return definition.campaign.given or (intervals and definition.formula is None)


def advice(study: Study) -> dict[str, Any] | None:
    """What is recommended and what is certain, as plain data; None for studies that do not choose."""
    if not offers_choice(study.definition):
        return None
    if study.n == 0:  # every setting is as good as any other
        return {"recommended": None, "certificate": None, "problem": ""}
    try:
        claim, best = study.certificate(), study.recommend().to_json()
        return {"recommended": best, "certificate": None if claim is None else claim.to_json(), "problem": ""}
    except LikesetError as error:  # an empty set, nothing told yet, no bound: it says which
        return {"recommended": None, "certificate": None, "problem": str(error)}


def tell_run(study: Study, number: int, values: dict[str, Any], failed: bool) -> Told:
    """The result of a run that is pending: its setting is the one that was asked for."""
    out = {run.number: run for run in study.runs() if run.state == asked.PENDING}
    if number not in out:
        known = ", ".join(map(str, out)) or "none"
        raise InvalidArgumentError("run", number, "is not pending", f"pending are {known}")
    return study.tell([study._run(out[number]) | values], failed=failed)
