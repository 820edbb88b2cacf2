r"""Contrasts of means of announced pairs of arms: E[y] at one covariate against E[y] at another, by the pair's own set.

    of            contrast                        F                   of z and z', as  F(z) - F(z')
    difference    E[y] - E'[y]                    mean
    ratio         E[y] / E'[y]                    log mean            exp of it
    odds          p / (1 - p) by p' / (1 - p')    log odds            exp of it

F is monotone in z. In coordinates in which the pair's set is convex (:mod:`likeset._solver.pairs`) a polygon of
tangents holds it (:mod:`likeset._solver.planar`). "No difference", or any other value of a contrast, is a border
between the two means (:mod:`~likeset.answers.margins`), and the least log R on it is the evidence against that value.
The set lies on one side of "no difference" if and only if the evidence against it exceeds the level, and the ends of
all contrasts say the same, whichever is asked. For other values, whatever rounding and the gap of the ends leave open
is said to be open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np

from likeset._solver.borders import division
from likeset._solver.pairs import PairSet
from likeset._solver.planar import Function, Outline
from likeset._typing import EPS, Array, Mask
from likeset.answers.margins import border_of, exact_contrast
from likeset.answers.pairs import Bounds
from likeset.answers.questions import Questions, announced
from likeset.errors import EmptySetError, InvalidArgumentError
from likeset.families.base import Family
from likeset.families.canonical import Canonical
from likeset.spaces.linear import Linear

if TYPE_CHECKING:
    from likeset.sets import LikelihoodSet

OPPOSITE = {"below": "above", "above": "below", "equal": "equal"}
KINDS = {"difference": 0.0, "ratio": 1.0, "odds": 1.0}  # and what they are where there is no difference


@dataclass(frozen=True)
class Scale:
    """F of one kind of contrast: monotone in z."""

    F: Callable[[Array], Array]
    rising: bool

    def at(self, form: Canonical) -> Scale:
        """The same as a function of u = sign z + shift."""
        F, sign, shift = self.F, form.sign, form.shift
        if sign == 1.0 and shift == 0.0:
            return self
        return Scale(lambda u: F(sign * (u - shift)), self.rising == (sign > 0.0))


def scale_of(family: Family, of: str) -> Scale:
    """F for a family and a kind of contrast; a typed error where it makes no sense."""

    def mean(z: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(family.mean(z), dtype=np.float64)

    def log_mean(z: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(mean(z))

    probe = np.array([-1.0, -0.25, 0.0, 0.5, 1.0])
    if of == "odds":
        if not hasattr(family, "trials"):
            raise InvalidArgumentError(
                "of", of, f"makes no sense for {family!r}", 'odds are of proportions; use "ratio"'
            )
        F: Callable[[Array], Array] = np.asarray
    else:
        if of == "ratio" and not (mean(probe) > 0.0).all():
            raise InvalidArgumentError(
                "of", of, f"makes no sense for {family!r}, whose mean can be negative", 'use "difference"'
            )
        F = log_mean if of == "ratio" else mean
    values = F(probe)
    return Scale(F, bool(values[-1] > values[0]))


@dataclass(frozen=True)
class PairAnswers:
    """All that is asked of one announced pair; ``ends`` is None if no two means are plausible.

    ends       (low, high, gap) of every kind of contrast that makes sense
    arms       (low, high) of z of either arm
    nats       that the pair's share of the error level costs
    """

    pair: PairSet
    family: Family
    form: Canonical
    ends: dict[str, tuple[float, float, float]] | None
    arms: tuple[tuple[float, float], tuple[float, float]]
    nats: float
    threshold: float

    def evidence(self, of: str, limit: float, hypothesis: str) -> tuple[float, float] | None:
        """Bounds of the evidence against a contrast that is "below", "above" or "equal" to a limit, in nats.

        None where the contrast has no border there (:mod:`~likeset.answers.margins`).
        """
        border = border_of(self.family, self.form, of, limit)
        if border is None:
            return None
        above = 1 if scale_of(self.family, of).at(self.form).rising else -1
        side = {"below": -above, "above": above, "equal": 0}[hypothesis]
        least, attained = (bound - self.nats for bound in division(self.pair, border).against(side))
        if self._excludes(of, limit, hypothesis):
            least = max(least, float(np.nextafter(self.threshold, inf)))
        else:  # what is decided in one place only is open everywhere
            least = min(least, self.threshold)
        return least, max(least, attained)

    def _excludes(self, of: str, limit: float, hypothesis: str) -> bool:
        """Whether the ends of the contrast say so."""
        if self.ends is None:
            return True
        low, high, _ = self.ends[of]
        return (hypothesis != "above" and low > limit) or (hypothesis != "below" and high < limit)


def answers_of_pair(s: LikelihoodSet, family: Family, x: Array, y: Array) -> PairAnswers | None:
    """What the set of a pair says; None where the two rows are no announced pair of arms. Found once."""
    key = x.tobytes(), y.tobytes()
    if key not in s._pairs:
        questions = s._questions
        assert isinstance(questions, Questions)
        pair = _pair(s, questions, x, y)
        s._pairs[key] = None if pair is None else _answers(pair, family, questions, s._others.threshold)
    return s._pairs[key]


def _pair(s: LikelihoodSet, questions: Questions, x: Array, y: Array) -> PairSet | None:
    lengths = [float(np.hypot(np.linalg.norm(i), o[0])) for i, o in map(s._basis.coordinates, (x[None], y[None]))]
    return questions.pair(s._others, s.space, x, y, np.array(lengths))


def _answers(pair: PairSet, family: Family, questions: Questions, threshold: float) -> PairAnswers:
    found = division(pair)
    outline = _Outlined(pair)
    ends: dict[str, tuple[float, float, float]] = {}
    empty = outline.is_empty
    for of in KINDS:
        try:
            scale = scale_of(family, of).at(questions.form)
        except InvalidArgumentError:
            continue
        bounds = outline.ends(scale, of, found.apart)
        if bounds is None:
            empty = True
        else:
            ends[of] = bounds
    arms = outline.arm(questions.form, 0), outline.arm(questions.form, 1)
    return PairAnswers(pair, family, questions.form, None if empty else ends, arms, log(questions.odds), threshold)


class _Outlined:
    """The pair's set, from outside."""

    def __init__(self, pair: PairSet) -> None:
        self.pair, self.outline = pair, None
        enclosed = pair.enclosed()
        self.is_empty = enclosed is None
        if enclosed is None:
            return
        heard, low, high = enclosed
        self.low, self.high = pair.means_around(low, high)
        if np.isfinite([self.low, self.high]).all():
            start = np.clip(pair.means(pair.most_likely()), self.low, self.high)
            self.outline = Outline(heard.heights, pair.level + pair.rounding, self.low, self.high, start)
            self.is_empty = self.outline.is_empty

    def ends(self, scale: Scale, of: str, apart: int) -> tuple[float, float, float] | None:
        """(low, high, gap) of a contrast; None if the set is empty."""
        if self.is_empty:
            return None

        def plus(m: Array) -> Array:
            return scale.F(self.pair.predictors(m))

        def minus(m: Array) -> Array:
            return -plus(m)

        high, most = self._largest(plus, minus)
        low, least = self._largest(minus, plus)
        ends = np.array([-low, high, -least, most])
        if not ends[1] >= ends[0]:
            return None
        if of != "difference":
            with np.errstate(over="ignore"):
                ends = np.exp(ends) * np.array([1.0 - 8 * EPS, 1.0 + 8 * EPS, 1.0, 1.0])
        neutral, above = KINDS[of], apart if scale.rising else -apart
        if above > 0:  # outer bounds may leave open by a little what is decided
            ends[0] = max(ends[0], np.nextafter(neutral, inf))
        elif above < 0:
            ends[1] = min(ends[1], np.nextafter(neutral, -inf))
        else:
            ends[:2] = min(ends[0], neutral), max(ends[1], neutral)
        with np.errstate(invalid="ignore"):
            gaps = np.array([ends[2] - ends[0], ends[1] - ends[3]])
        return float(ends[0]), float(ends[1]), float(np.max(np.where(np.isnan(gaps), 0.0, np.maximum(gaps, 0.0))))

    def arm(self, form: Canonical, arm: int) -> tuple[float, float]:
        """(low, high) of z of one arm."""
        if self.is_empty:
            return inf, -inf
        ends = []
        for sign in (-1.0, 1.0):  # of u = sign z + shift
            parts: list[Function] = [np.zeros_like, np.zeros_like]
            parts[arm] = partial(self._predictor, sign)
            ends.append(self._largest(*parts)[0])
        low, high = sorted((form.sign * (-ends[0] - form.shift), form.sign * (ends[1] - form.shift)))
        return low, high

    def _predictor(self, sign: float, m: Array) -> Array:
        return sign * self.pair.predictors(m)

    def _largest(self, F: Function, H: Function) -> tuple[float, float]:
        if self.outline is not None:
            return self.outline.largest(F, H)
        with np.errstate(invalid="ignore"):  # one of the arms was never observed
            at = np.array([self.low, self.high])
            found = float(F(at[:, 0]).max() + H(at[:, 1]).max())
        return (inf if np.isnan(found) else found), -inf


# -- rows of questions ----------------------------------------------------------------------------------------------


def has_pairs(s: LikelihoodSet) -> bool:
    """Whether pairs of arms were announced."""
    questions = s._questions
    return isinstance(questions, Questions) and questions.measured is None and questions.contrasts.minus is not None


def refuted_by_pairs(s: LikelihoodSet) -> bool:
    """Whether one of the pairs that share one set leaves no two means: then no parameter is plausible."""
    if s._family is None or not has_pairs(s):
        return False
    assert isinstance(s._questions, Questions)
    if not s._questions.one_set or not s.n_observations:
        return False
    contrasts = s._questions.contrasts
    for x, y in zip(*(s.space.covariates(rows, "A") for rows in (contrasts.A, contrasts.minus)), strict=True):
        pair = _pair(s, s._questions, x, y)
        if pair is None or pair.values(pair.most_likely()[None])[0] <= pair.level:  # one point tells, as a rule
            continue
        answers = answers_of_pair(s, s._family, x, y)
        if answers is not None and answers.ends is None:
            return True
    return False


def announced_pairs(s: LikelihoodSet, X: Array, Y: Array) -> Mask:
    """Which rows are announced pairs of arms with a set that is not empty."""
    found = np.zeros(len(X), dtype=bool)
    if s._family is not None and has_pairs(s):
        for row in range(len(X)):
            pair = answers_of_pair(s, s._family, X[row], Y[row])
            found[row] = pair is not None and pair.ends is not None
    return found


def within_pairs(s: LikelihoodSet, X: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds of x'theta that announced pairs with the arm x know to be narrower: all that one set says holds at once.

    A pair's set knows two arms, and pays for them only. Where two such bounds exclude each other, so that the data
    refute the model, they are left as they were.
    """
    if s._family is None or not has_pairs(s):
        return low, high
    assert isinstance(s._questions, Questions)
    if not s._questions.one_set:
        return low, high
    contrasts = s._questions.contrasts
    narrower, lower = high.copy(), low.copy()
    for a, b in zip(*(s.space.covariates(rows, "A") for rows in (contrasts.A, contrasts.minus)), strict=True):
        at = [(row == X).all(axis=1) for row in (a, b)]
        if at[0].any() or at[1].any():
            pair = answers_of_pair(s, s._family, a, b)
            for rows, ends in zip(at, () if pair is None else pair.arms, strict=False):
                lower[rows], narrower[rows] = np.maximum(lower[rows], ends[0]), np.minimum(narrower[rows], ends[1])
    fits = lower <= narrower
    return np.where(fits, lower, low), np.where(fits, narrower, high)


def of_announced_pairs(s: LikelihoodSet, family: Family, X: Array, Y: Array, of: str) -> tuple[Mask, Bounds]:
    """Which rows are announced pairs of arms, and bounds for these."""
    n = len(X)
    asked, found = np.zeros(n, dtype=bool), Bounds(np.zeros(n), np.zeros(n), np.zeros(n))
    if not has_pairs(s):
        return asked, found
    for row in range(n):
        pair = answers_of_pair(s, family, X[row], Y[row])
        if pair is None:
            continue
        if pair.ends is None:
            raise EmptySetError(s.alpha)
        scale_of(family, of)  # a typed error where it makes no sense
        asked[row] = True
        found.lower[row], found.upper[row], found.gap[row] = pair.ends[of]
    return asked, found


def evidence_of_pairs(s: LikelihoodSet, x: Array, limits: Array, hypothesis: str) -> tuple[Mask, Array, Array]:
    """Rows that ask about z - z' of two announced arms, and bounds of the evidence there.

    A row is such a question if it is a multiple of the difference of the two.
    """
    n = len(x)
    asked, low, high = np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n)
    family, questions = s._family, s._questions
    if family is None or not has_pairs(s) or not isinstance(s.space, Linear):
        return asked, low, high
    assert isinstance(questions, Questions)
    exact = exact_contrast(family)
    if exact is None:
        return asked, low, high
    of, slope = exact
    first, second = (s.space.covariates(rows, "A") for rows in (questions.contrasts.A, questions.contrasts.minus))
    number = announced(questions.contrasts, s.space, x)
    for row in np.flatnonzero(number >= 0):
        a, b = first[number[row]], second[number[row]]
        pair = answers_of_pair(s, family, a, b)
        times = float(x[row] @ (a - b)) / float((a - b) @ (a - b))  # x = times (a - b)
        with np.errstate(over="ignore"):
            apart = np.float64(slope * limits[row] / times)
            limit = float(apart if of == "difference" else np.exp(apart))
        if pair is None or not (of == "difference" or 0.0 < limit < inf):
            continue
        found = pair.evidence(of, limit, hypothesis if slope * times > 0.0 else OPPOSITE[hypothesis])
        if found is not None:
            asked[row] = True
            low[row], high[row] = found
    return asked, low, high


def evidence_of_contrasts(
    s: LikelihoodSet, X: Array, Y: Array, of: str, limits: Array, hypothesis: str
) -> tuple[Mask, Array, Array]:
    """Which rows are announced pairs of arms, and bounds of the evidence against what is said of a contrast there."""
    n = len(X)
    asked, low, high = np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n)
    if s._family is None or not has_pairs(s):
        return asked, low, high
    for row in range(n):
        pair = answers_of_pair(s, s._family, X[row], Y[row])
        found = None if pair is None else pair.evidence(of, float(limits[row]), hypothesis)
        if found is not None:
            asked[row] = True
            low[row], high[row] = found
    return asked, low, high
