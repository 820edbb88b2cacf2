"""What ``LikelihoodSet.evidence`` is asked: half-spaces and hyperplanes of hypotheses, or single parameters."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array, IntArray
from likeset.answers.hypotheses import EValue, least_evidence
from likeset.answers.mean_contrasts import evidence_of_pairs
from likeset.answers.points import against_points
from likeset.arguments import real_array
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.evidence.tilted import TiltedEvidence

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


def evidence_against(s: LikelihoodSet, x: Any, below: Any, above: Any, equal: Any, theta: Any) -> EValue:
    """The least log R over what exactly one of the hypotheses allows."""
    if not s.has_other_levels:
        raise InvalidArgumentError(
            "set", s, "is no level set of an e-process", "ask a ConfidenceSequence, or this set's bounds"
        )
    limits = {"below": below, "above": above, "equal": equal}
    given = [name for name, limit in limits.items() if limit is not None]
    if theta is not None:
        if x is not None or given:
            name, value = ("x", x) if x is not None else (given[0], limits[given[0]])
            raise InvalidArgumentError(name, value, "stands beside theta", "ask about theta, or about x'theta")
        return against_points(s, theta)
    if x is None:
        raise InvalidArgumentError("x", x, "is missing", "pass rows x and below=, above= or equal=, or theta=")
    if len(given) != 1:
        said = "comes without a hypothesis" if not given else f"comes with {len(given)} hypotheses"
        raise InvalidArgumentError("x", x, said, "give one of below=, above= and equal=")
    raw, inside, outside, limit, asked = _rows_and_limits(s, x, given[0], limits[given[0]])
    pairs, low, high = evidence_of_pairs(s, raw, limit, given[0])
    low, high = np.where(pairs, low, -inf), np.where(pairs, high, -inf)
    bent = np.zeros(len(limit), dtype=bool)
    for sign in {"below": (-1.0,), "above": (1.0,), "equal": (-1.0, 1.0)}[given[0]]:
        for question in np.unique(asked[~pairs]):
            rows, answering = (asked == question) & ~pairs, s if question < 0 else s._of_its_own(int(question))
            with SingleThreadedBlas():
                least, most = least_evidence(answering, sign * inside[rows], outside[rows], sign * limit[rows])
            if given[0] == "equal" and isinstance(answering._evidence, TiltedEvidence):
                bent |= rows  # without convexity a plane may be worse than both of its sides
            # of two sides the larger, by convexity
            low[rows] = np.maximum(low[rows], least)
            high[rows] = np.maximum(high[rows], most)
    if s._refuted_by_pairs:  # every parameter is, whatever the hypothesis allows
        low = np.maximum(low, np.nextafter(-log(s.alpha), inf))
    gap = np.zeros(len(limit))
    np.subtract(high, low, out=gap, where=high > low)
    gap[bent] = inf
    return EValue(low, gap)


def _rows_and_limits(s: LikelihoodSet, x: Any, name: str, value: Any) -> tuple[Array, Array, Array, Array, IntArray]:
    """Rows, their directions, limits, and the announced question that each of them is, or -1."""
    inside, outside = s._directions(x)
    asked = s._asked(x)
    limits = real_array(name, value)
    fits = limits.ndim == 1 and len(limits) > 0 and (len(inside) == 1 or len(limits) in (1, len(inside)))
    if limits.ndim != 0 and not fits:
        raise ShapeError(
            name,
            value,
            f"has shape {limits.shape}",
            f"pass one number, or one for each of the {len(inside)} rows of x",
        )
    n = limits.size if len(inside) == 1 else len(inside)
    rows = s.space.covariates(x, "X")
    return (
        np.broadcast_to(rows, (n, *rows.shape[1:])),
        np.broadcast_to(inside, (n, inside.shape[1])),
        np.broadcast_to(outside, (n,)),
        np.broadcast_to(limits, (n,)),
        np.broadcast_to(-1 if asked is None else asked, (n,)),
    )
