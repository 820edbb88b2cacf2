"""The table of a study: one plain dict per level or coefficient.

Interval, e-value and verdict come from one set and agree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.answers.mean_contrasts import announced_pairs
from likeset.sets import LikelihoodSet
from likeset.study import asking
from likeset.study.advice import setting_text
from likeset.study.definition import Definition
from likeset.study.questions import Question, questions
from likeset.study.surface import surface_of

NOT_YET = "not yet"
BETTER, WORSE, EQUIVALENT = "better", "worse", "equivalent"
POSITIVE, NEGATIVE = "positive", "negative"
MOST_TRIED = 50  # settings in the table of a smooth model
TIED = (
    "Without any noise all outcomes so far are explained exactly, so that its scale may be zero, and intervals are as "
    "narrow as that. If outcomes are tied because they are rounded, or are zeros where nothing happened, this law does "
    "not fit them: ask how often they are zero, and how large the others are, in studies of their own."
)
_NEUTRAL = {"difference": 0.0, "ratio": 1.0, "odds": 1.0}


def alarm(s: LikelihoodSet) -> dict[str, Any]:
    """Whether the data refute the model at level alpha ("rings"), and what that means ("text").

    "listens": whether laws outside the model are asked; "nats": by how much each forecast better than the model.
    """
    rings = s.is_empty
    said = s.diagnose() if s.has_alarm else None
    text = ""
    if rings:
        beaten = f": {said.beaten}" if said is not None else ""
        text = (
            f"No parameter is plausible: at level {s.alpha:g} the data refute the model{beaten}. Check the family and "
            "its scale, the order of the rows, and what the outcome depends on; no interval below can be trusted."
        )
    elif said is not None and s.n_observations:
        text = f"The alarm is quiet: {said.beaten}."
    if s.fits_without_noise:
        text = f"{text} {TIED}".strip()
    nats = {} if said is None else dict(zip(said.names, said.nats.tolist(), strict=True))
    return {"rings": rings, "text": text, "listens": said is not None, "nats": nats}


def rows(definition: Definition, s: LikelihoodSet, counts: Counts) -> list[dict[str, Any]]:
    """All lines of the table; bounds are None where the set is empty."""
    if definition.smooth:
        return _tried(definition, s, counts)
    asked = questions(definition)
    lines = [_observed(q, counts) for q in asked]
    if definition.margin is not None:
        lines = [line | {"margin_e_value": None} for line in lines]
    if not s.is_empty:
        _fill_intervals(definition, s, asked, lines)
        _fill_comparisons(definition, s, asked, lines)
    return lines


def _tried(definition: Definition, s: LikelihoodSet, counts: Counts) -> list[dict[str, Any]]:
    """The lines of a smooth model: settings that were run, those with the best bounds first."""
    points, n, means = counts.points()
    lines = []
    for x, rows, mean in zip(points, n, means, strict=True):
        named = setting_text({f.name: f.read_back(x[j]) for j, f in enumerate(definition.factors)})
        lines.append(_line("", named, "setting", int(rows), float(mean)) | {"verdict": None})
    if s.is_empty or not len(points):
        return lines[:MOST_TRIED]
    z_low, z_high = s.interval(points)
    surface = surface_of(definition)
    low, high = surface.mean_ends((z_low, z_high))
    for i, line in enumerate(lines):
        line |= {
            "estimate": line["observed"],
            "lower": _plain(low[i]),
            "upper": _plain(high[i]),
            "z_lower": _plain(z_low[i] + surface.centre),
        }
        line["z_upper"] = _plain(z_high[i] + surface.centre)
    worst = low if definition.goal == "maximise" else -high
    best = np.lexsort((-surface.sign * means, -worst))
    return [lines[int(i)] for i in best[:MOST_TRIED]]


class Counts:
    """How many rows there are and what their outcomes are on average, by column of the design.

    ``sizes``: trials or exposure of every scored row, 0 where there is none; ``told``: how many rows it stands for.
    With a column of trials (``are_trials``) these are counted instead. Averages are per trial or per unit of exposure.
    """

    def __init__(
        self, distinct: Array, number_of_row: Array, y: Array, sizes: Array, told: Array, are_trials: bool
    ) -> None:
        outcome = y if y.ndim == 1 else y[:, 0]
        index, units = number_of_row.astype(np.intp), np.where(sizes > 0, sizes, 1.0)
        self._distinct = distinct
        self._units, self._rows, self._sums = (
            np.bincount(index, weights=w, minlength=len(distinct))
            for w in (units, units if are_trials else told, outcome)
        )

    def points(self) -> tuple[Array, Array, Array]:
        """Distinct covariates, rows and mean outcomes there."""
        return self._distinct, np.asarray(self._rows, dtype=np.float64), self._sums / self._units

    def of(self, column: int | None) -> tuple[int, float | None]:
        """Rows and mean outcome where the column is one; all rows for None."""
        chosen = np.ones(len(self._distinct), bool) if column is None else self._distinct[:, column] == 1.0
        n = int(self._rows[chosen].sum())
        return n, float(self._sums[chosen].sum() / self._units[chosen].sum()) if n else None


def _observed(q: Question, counts: Counts) -> dict[str, Any]:
    n, mean = counts.of(q.column)
    kind = "level" if q.is_level else "coefficient"
    return _line(q.factor, q.label, kind, n, mean if q.is_level else None) | {
        "verdict": "control" if q.is_control else None
    }


def _line(factor: str, label: str, kind: str, n: int, observed: float | None) -> dict[str, Any]:
    """A line of the table in which nothing is known yet but counts."""
    line: dict[str, Any] = {"factor": factor, "level": label, "kind": kind, "n": n, "observed": observed}
    for name in ("estimate", "lower", "upper", "z", "z_lower", "z_upper"):
        line[name] = None
    for of in _NEUTRAL:
        line |= dict.fromkeys((of, f"{of}_lower", f"{of}_upper"))
    return line | {"e_value": None, "p_value": None, "verdict": None}


def _fill_intervals(
    definition: Definition, s: LikelihoodSet, asked: list[Question], lines: list[dict[str, Any]]
) -> None:
    X = np.array([q.x for q in asked])
    z_low, z_high = asking.predictor_ends(s, X)
    scale = asking.Scale(definition.family)
    low, high = scale.mean_ends((z_low, z_high))
    z = np.clip(X @ s.centre, z_low, z_high) if s.n_observations else np.full(len(X), np.nan)
    mean = scale.mean_ends((z, z))[0]
    for i, (q, line) in enumerate(zip(asked, lines, strict=True)):
        known = line["n"] > 0
        line |= {"z": z[i] if known else None, "z_lower": z_low[i], "z_upper": z_high[i]}
        ends = {"estimate": mean[i], "lower": low[i], "upper": high[i]} if q.is_level else {}
        line |= ends or {"estimate": z[i], "lower": z_low[i], "upper": z_high[i]}
        line["estimate"] = line["estimate"] if known else None
        lines[i] = {name: _plain(value) for name, value in line.items()}


def _fill_comparisons(
    definition: Definition, s: LikelihoodSet, asked: list[Question], lines: list[dict[str, Any]]
) -> None:
    scale = asking.Scale(definition.family)
    tested = [i for i, q in enumerate(asked) if (q.against is not None and not q.is_control) or not q.is_level]
    if not tested:
        return
    directions = np.array([asked[i].direction for i in tested])
    low, high = s.interval(directions)
    log_e = asking.log_e_values(s, directions)
    compared = [i for i in tested if asked[i].is_level]
    against = np.array([asked[i].against for i in compared])
    found = asking.contrasts(s, scale, np.array([asked[i].x for i in compared]), against) if compared else {}
    if compared:  # the sign of an announced pair is that of its own set
        own = announced_pairs(s, np.array([asked[i].x for i in compared]), against)
        for at in np.flatnonzero(own).tolist():
            k, ends_of_mean = tested.index(compared[at]), found["difference"]
            ends_of_z = ends_of_mean.lower[at], ends_of_mean.upper[at]
            low[k], high[k] = ends_of_z if scale.rises else (-ends_of_z[1], -ends_of_z[0])
    margin, log_e_of_margin = definition.margin, None
    if margin is not None and compared:
        log_e_of_margin = asking.log_e_values_of_margin(s, np.array([asked[i].x for i in compared]), against, margin)
    means = {i: lines[i]["estimate"] for i in compared}
    control = {asked[i].factor: lines[i]["estimate"] for i, q in enumerate(asked) if q.is_control}
    for k, i in enumerate(tested):
        line = lines[i]
        ends = {}
        if asked[i].is_level:
            at = compared.index(i)
            ends = {of: (float(c.lower[at]), float(c.upper[at])) for of, c in found.items()}
        log_e_value = None if log_e is None else float(log_e[k])
        limit = -math.log(s.alpha)
        decided = bool(low[k] > 0 or high[k] < 0) and (log_e_value is None or log_e_value > limit)
        higher = bool(low[k] > 0) == scale.rises
        if not decided and log_e_value is not None:  # what rounding has decided in one place only is open everywhere
            log_e_value = min(log_e_value, limit)
        ends = {of: _agreeing(pair, _NEUTRAL[of], decided, higher) for of, pair in ends.items()}
        for of, (a, b) in ends.items():
            line |= {f"{of}_lower": _plain(a), f"{of}_upper": _plain(b)}
            line[of] = _contrast(of, means[i], control.get(asked[i].factor))
        if log_e_value is not None:
            line["e_value"] = _e_value(log_e_value)
            line["p_value"] = math.exp(-min(max(log_e_value, 0.0), 700.0))
        if not asked[i].is_level:
            line["verdict"] = (POSITIVE if low[k] > 0 else NEGATIVE) if decided else NOT_YET
            a, b = _agreeing((line["lower"], line["upper"]), 0.0, decided, bool(low[k] > 0))
            line |= {"lower": a, "upper": b, "z_lower": a, "z_upper": b}
            continue
        equivalent = margin is not None and "difference" in ends and _within(ends["difference"], margin)
        if log_e_of_margin is not None:
            of_margin = float(log_e_of_margin[compared.index(i)])
            equivalent = equivalent and of_margin > limit
            line["margin_e_value"] = _e_value(of_margin if equivalent else min(of_margin, limit))
        better = higher == (definition.goal == "maximise")
        line["verdict"] = EQUIVALENT if equivalent else (BETTER if better else WORSE) if decided else NOT_YET


def _agreeing(ends: tuple[float, float], neutral: float, decided: bool, higher: bool) -> tuple[float, float]:
    """Ends of a contrast that say what the sign of the difference in z says: the mean is monotone in z.

    Contrasts that are not linear in theta have outer bounds, which may leave open by a little what is decided.
    """
    low, high = ends
    if not decided:
        return min(low, neutral), max(high, neutral)
    if higher:
        return max(low, float(np.nextafter(neutral, np.inf))), high
    return low, min(high, float(np.nextafter(neutral, -np.inf)))


def _within(difference: tuple[float, float], margin: float) -> bool:
    return -margin < difference[0] and difference[1] < margin


def _e_value(nats: float) -> float:
    return math.exp(min(nats, 700.0))


def _contrast(of: str, mean: float | None, control: float | None) -> float | None:
    if mean is None or control is None:
        return None
    if of == "difference":
        return mean - control
    try:
        return mean / control if of == "ratio" else (mean / (1 - mean)) / (control / (1 - control))
    except ZeroDivisionError:
        return None


def _plain(value: Any) -> Any:
    """Numbers as Python's own; NaN is None."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def finite(value: Any) -> Any:
    """The same without infinite numbers, which JSON does not know: no bound is None."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
