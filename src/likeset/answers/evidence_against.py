"""What ``LikelihoodSet.evidence`` is asked: half-spaces and hyperplanes, contrasts of means, or single parameters."""

from __future__ import annotations

from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from likeset._solver.linalg.threads import SingleThreadedBlas
from likeset._typing import Array, IntArray
from likeset.answers.combinations import pairs_of_rows
from likeset.answers.floor import find_floor
from likeset.answers.hypotheses import EValue, least_evidence
from likeset.answers.least_of_tilts import least_with_tilts
from likeset.answers.margins import LINK, slope_of
from likeset.answers.mean_contrasts import evidence_of_contrasts, evidence_of_pairs, scale_of
from likeset.answers.points import against_points
from likeset.arguments import choice, real_array
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.evidence.tilted import TiltedEvidence
from likeset.spaces.linear import Linear

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet


def evidence_against(
    s: LikelihoodSet, x: Any, minus: Any, of: Any, below: Any, above: Any, equal: Any, theta: Any
) -> EValue:
    """The least log R over what exactly one of the hypotheses allows."""
    if not s.has_other_levels:
        raise InvalidArgumentError(
            "set", s, "is no level set of an e-process", "ask a ConfidenceSequence, or this set's bounds"
        )
    limits = {"below": below, "above": above, "equal": equal}
    given = [name for name, limit in limits.items() if limit is not None]
    if (minus is None) != (of is None):
        name, value, other = ("minus", minus, "of") if of is None else ("of", of, "minus")
        raise InvalidArgumentError(name, value, f"comes without {other}", 'pass both, as in minus=y, of="ratio"')
    if theta is not None:
        if x is not None or given or of is not None:
            name, value = ("x", x) if x is not None else (given[0], limits[given[0]]) if given else ("of", of)
            raise InvalidArgumentError(name, value, "stands beside theta", "ask about theta, or about x'theta")
        return against_points(s, theta)
    if x is None:
        raise InvalidArgumentError("x", x, "is missing", "pass rows x and below=, above= or equal=, or theta=")
    if len(given) != 1:
        said = "comes without a hypothesis" if not given else f"comes with {len(given)} hypotheses"
        raise InvalidArgumentError("x", x, said, "give one of below=, above= and equal=")
    hypothesis, value = given[0], limits[given[0]]
    if of is not None:
        return _against_contrasts(s, x, minus, choice("of", of, tuple(LINK)), hypothesis, value)
    return _against_predictors(s, x, hypothesis, value)


def _against_contrasts(s: LikelihoodSet, X: Any, Y: Any, of: str, hypothesis: str, value: Any) -> EValue:
    """Contrasts of means: by the sets of announced pairs, or as questions about the difference of two predictors."""
    family = s._family
    if family is None:
        raise InvalidArgumentError("set", s, "knows no family, and so no means", "ask a ConfidenceSequence")
    scale_of(family, of)  # a typed error where it makes no sense
    first, second = pairs_of_rows(s.space, X, Y)
    limit = _limits(hypothesis, value, len(first))
    n = limit.size if len(first) == 1 else len(first)
    first, second = (np.broadcast_to(rows, (n, *rows.shape[1:])) for rows in (first, second))
    limit = np.broadcast_to(limit, (n,))
    if of != "difference" and not (limit > 0.0).all():
        raise InvalidArgumentError(hypothesis, value, "is not positive", f"pass a {of} of two means, such as 0.9")
    asked, low, high = evidence_of_contrasts(s, first, second, of, limit, hypothesis)
    if not asked.all():
        slope = slope_of(family, of)
        if slope is None or not isinstance(s.space, Linear):
            raise InvalidArgumentError(
                "of", of, "is no function of x'theta - y'theta here, and not that of an announced pair",
                f"announce the pair, Contrasts(X, minus=Y), or look whether contrast(X, Y, of={of!r}) excludes it",
            )  # fmt: skip
        rows, apart = slope * (first - second)[~asked], limit[~asked]
        found = _against_predictors(s, rows, hypothesis, apart if of == "difference" else np.log(apart))
        low[~asked], high[~asked] = found.log_e_value, found.log_e_value + found.gap
    return _answer(s, low, high)


def _against_predictors(s: LikelihoodSet, x: Any, hypothesis: str, value: Any) -> EValue:
    """Half-spaces and hyperplanes."""
    raw, inside, outside, limit, asked = _rows_and_limits(s, x, hypothesis, value)
    pairs, low, high = evidence_of_pairs(s, raw, limit, hypothesis)
    low, high = np.where(pairs, low, -inf), np.where(pairs, high, -inf)
    signs = {"below": (-1.0,), "above": (1.0,), "equal": (-1.0, 1.0)}[hypothesis]
    for question in np.unique(asked[~pairs]):
        rows, answering = (asked == question) & ~pairs, s if question < 0 else s._of_its_own(int(question))
        with SingleThreadedBlas():
            if isinstance(answering._evidence, TiltedEvidence):
                found = least_with_tilts(answering, inside[rows], outside[rows], limit[rows], hypothesis)
                low[rows], high[rows] = found
                continue
            floor = None if answering._evidence.says_nothing else find_floor(answering)
            for sign in signs:
                least, most = least_evidence(answering, sign * inside[rows], outside[rows], sign * limit[rows], floor)
                # of two sides the larger, by convexity
                low[rows] = np.maximum(low[rows], least)
                high[rows] = np.maximum(high[rows], most)
    return _answer(s, low, high)


def _answer(s: LikelihoodSet, low: Array, high: Array) -> EValue:
    """The bounds, or more where the pairs refute everything."""
    if s._refuted_by_pairs:  # every parameter is, whatever the hypothesis allows
        low = np.maximum(low, np.nextafter(-log(s.alpha), inf))
    gap = np.zeros(len(low))
    np.subtract(high, low, out=gap, where=high > low)
    return EValue(low, gap)


def _rows_and_limits(s: LikelihoodSet, x: Any, name: str, value: Any) -> tuple[Array, Array, Array, Array, IntArray]:
    """Rows, their directions, limits, and the announced question that each of them is, or -1."""
    inside, outside = s._directions(x)
    asked = s._asked(x)
    limits = _limits(name, value, len(inside))
    n = limits.size if len(inside) == 1 else len(inside)
    rows = s.space.covariates(x, "X")
    return (
        np.broadcast_to(rows, (n, *rows.shape[1:])),
        np.broadcast_to(inside, (n, inside.shape[1])),
        np.broadcast_to(outside, (n,)),
        np.broadcast_to(limits, (n,)),
        np.broadcast_to(-1 if asked is None else asked, (n,)),
    )


def _limits(name: str, value: Any, rows: int) -> Array:
    """One limit, or one for each row; any number of them for one row."""
    limits = real_array(name, value)
    fits = limits.ndim == 1 and len(limits) > 0 and (rows == 1 or len(limits) in (1, rows))
    if limits.ndim != 0 and not fits:
        raise ShapeError(
            name, value, f"has shape {limits.shape}", f"pass one number, or one for each of the {rows} rows of x"
        )
    return limits
