"""Which setting to run next, and which to keep: a policy over the study's own sequence, in the user's names.

The policy is made anew for every question, from what the store holds: rows, runs that are out, and the seed. So any
process gives the same answer.
"""

from __future__ import annotations

import copy
import math
from itertools import product
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import positive_integer
from likeset.bandits.continuous import Box
from likeset.bandits.elimination import Elimination
from likeset.bandits.guarded import Guarded
from likeset.bandits.learnt_scales import LearntScales
from likeset.bandits.policy import Recommendation
from likeset.bandits.under_way import Choice
from likeset.bandits.until import Certificate, Until
from likeset.errors import InvalidArgumentError
from likeset.families import Bernoulli
from likeset.sequence import ConfidenceSequence
from likeset.study.advice import Claim, Recommended, setting_text
from likeset.study.asked import PENDING, TOLD, Run
from likeset.study.definition import Definition
from likeset.study.engine import Engine
from likeset.study.factors import Levels, Number
from likeset.study.surface import surface_of

MOST_SETTINGS, MOST_AT_ONCE = 1000, 100
_LOG_ODDS, _FAR = 4.0, 1e9
_FIRST = 2  # settings for each factor before choices go by beliefs


class Chooser:
    """A policy for one study as it is now."""

    def __init__(self, definition: Definition, engine: Engine, runs: list[Run]) -> None:
        self.definition, self.engine, self.runs = definition, engine, runs
        self.surface = surface_of(definition)
        self.settings = _settings(definition)
        sequence = engine.sequence
        if (
            sequence.n_observations == 0
        ):  # a policy tells a fresh sequence what it is for; the study has said it already
            sequence = copy.deepcopy(sequence)
        beside = engine.beside
        until = definition.campaign.until
        if until is not None and until.kind == "above":  # in units of the reward, which is -mean where small is good
            until = Until("above", self.surface.sign * until.amount, until.within)
        self.policy = Guarded(
            sequence,
            None if self.settings is None else self._encoded(self.settings),
            bounds=SettingsBox(definition, sequence.space) if self.settings is None else None,
            reward=self.surface.reward,
            safe=None if beside is None else beside.safety(sequence),
            success=self._success(sequence),
            belief=self._learner(),
            until=until,
            rng=np.random.default_rng([definition.campaign.seed, len(runs)]),
        )
        self._resume()

    def _learner(self) -> LearntScales | None:
        """In a smooth model of plain numbers choices go by scales that are learnt from them."""
        if not self.definition.smooth or self.surface.scale.link != "identity":
            return None
        factors = self.definition.factors
        return LearntScales([0.0 if isinstance(f, Levels) else 2.0 for f in factors])

    def ask(self, n: Any) -> list[Run]:
        """``n`` different settings to run next, each knowing of those before it and of those pending."""
        count = positive_integer("n", n, MOST_AT_ONCE, "a batch is chosen one by one")
        choices = self._deciding(count)
        if choices is None:
            choices = self._scattered(count)
        if choices is None:
            chosen = self.policy.ask(n=count)
            choices = self.policy._out.choices[-len(chosen) :]
        first = max((run.number for run in self.runs), default=0) + 1
        return [
            Run(first + i, self._named(choice.x), choice.width, choice.due, choice.optimistic)
            for i, choice in enumerate(choices)
        ]

    def _deciding(self, n: int) -> list[Choice] | None:
        """Where the aim is to know which settings are good, and not to gain on the way: those that decide soonest."""
        until = self.policy.until
        if until is None or until.kind == "gain" or self.settings is None or self.policy.safety.constraints:
            return None
        rows = self.policy.arms.rows(None)
        decider = Elimination(self.policy.seq, rows, reward=self.surface.reward, until=until)
        if decider.stopped:
            return None
        return [Choice(rows[i]) for i in decider.ask(n=min(n, len(rows)))]

    def _scattered(self, n: int) -> list[Choice] | None:
        """The first settings of a box, two for each factor, spread evenly: before that there is little to believe."""
        box, done = self.policy.arms, len(self.engine) + len(self.policy._out.choices)
        if not isinstance(box, Box) or self.policy.safety.constraints or done >= _FIRST * len(box.values):
            return None
        shares = spread_evenly(done, n, len(box.values), self.definition.campaign.seed)
        points = box.box[:, 0] + shares * (box.box[:, 1] - box.box[:, 0])
        for j, values in enumerate(box.values):
            if values is not None:
                points[:, j] = values[(shares[:, j] * len(values)).astype(int)]
        return [Choice(x) for x in box.snapped(points)]

    def recommend(self) -> Recommended:
        """The setting with the best guarantee."""
        best = self.policy.recommend()
        x = best.x
        if self.settings is None:  # what is said holds at the setting that is named
            x = self._most_promising(self._encoded([self._named(x)])[0])
            best = self._at(x, best)
        definition = self.definition
        estimate = float(self.surface.sign * self.surface.reward(self._believed(x[None, :]))[0])
        return Recommended(
            self._named(x), self.surface.sign * best.lower, best.gap, estimate, definition.alpha, len(self.engine),
            best.searched, definition.outcome, definition.units, definition.goal,
        )  # fmt: skip

    def claim(self) -> Claim | None:
        """What ``until`` asks for, if the rows told so far make it certain."""
        certificate = self.policy.certificate
        if certificate is None:
            return None
        setting = None if certificate.x is None else self._named(certificate.x)
        parts = [tuple(self._arm(i) for i in part) for part in (certificate.above, certificate.below, certificate.near)]
        text = _claim_text(self.definition, certificate, setting, parts, self.surface.sign, len(self.engine))
        return Claim(certificate.claim, setting, text, certificate.alpha, len(self.engine), *parts)

    # -- names and numbers --------------------------------------------------------------------------------------------

    def _encoded(self, settings: list[dict[str, Any]]) -> Array:
        from likeset.study.frames import columns_of

        return self.definition.asked(columns_of(settings, "setting"))

    def _arm(self, number: int) -> dict[str, Any]:
        assert self.settings is not None
        return self.settings[number]

    def _named(self, x: Array) -> dict[str, Any]:
        """A covariate as a setting; numbers rounded to what can be set."""
        if self.settings is not None:
            rows = self.policy.arms.rows(None)
            return self.settings[int(np.argmin(np.abs(rows - x).sum(axis=1)))]
        return {f.name: f.read_back(value) for f, value in zip(self.definition.factors, x, strict=True)}

    def _most_promising(self, x: Array) -> Array:
        """x, or the setting run so far that beliefs rate best among those with the same guarantee, if it has none."""
        sequence = self.engine.sequence
        if not sequence.n_observations:
            return x
        points = np.vstack([x[None, :], sequence.ledger.distinct.rows])
        lowers = self.surface.reward.bounds(*self.policy.seq.set.interval(points))[0]
        width = float(np.ptp(self.surface.reward.of_scores(np.array([-_FAR, _FAR]))))
        same = np.flatnonzero(lowers >= lowers[0] - 1e-9 * width)
        return np.asarray(points[same[int(np.argmax(self.policy.reward.sign * self._believed(points[same])))]])

    def _at(self, x: Array, best: Recommendation) -> Recommendation:
        """The recommendation at a point that is near its own."""
        low, high = self.policy.reward.score_bounds(*self.policy.seq.set.interval(x[None, :]))
        lowers, uppers = self.policy.reward.band(low, high)
        top = max(best.lower + best.gap, float(uppers[0]))
        return self.policy._claim(None, x, float(lowers[0]), top, best.searched)

    def _believed(self, x: Array) -> Array:
        return np.asarray(self.policy._beliefs.now().moments(x)[0])

    # -- what is out --------------------------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Runs that are out, and how those that came back were chosen."""
        out = self.policy._out
        pending = [run for run in self.runs if run.state == PENDING]
        if pending:
            x = self._encoded([run.setting for run in pending])
            out.choices = [Choice(row, r.width, r.due, r.optimistic) for row, r in zip(x, pending, strict=True)]
        for run in self.runs:
            if run.state == TOLD:
                out.rounds, out.due = out.rounds + 1, out.due + run.due
                out.insured, out.widths = out.insured + run.optimistic, out.widths + run.width

    def _success(self, sequence: ConfidenceSequence) -> ConfidenceSequence | None:
        """A model of where runs work, once one has failed; made anew from all rows."""
        beside = self.engine.beside
        if beside is None or beside.worked().all():
            return None
        from likeset.spaces import RKHS, Linear

        space = sequence.space
        if isinstance(space, RKHS):
            kernel = copy.copy(space.kernel)
            kernel.scale = 1.0  # type: ignore[attr-defined]
            made = ConfidenceSequence(Bernoulli(), RKHS(kernel, _LOG_ODDS, dim=space.dim), voices=None)
        else:
            made = ConfidenceSequence(Bernoulli(), Linear(space.covariate_shape[0], _LOG_ODDS), voices=None)
        made.update(beside.covariates(), beside.worked().astype(np.float64))
        return made


def _settings(definition: Definition) -> list[dict[str, Any]] | None:
    """All settings on offer where they are finitely many; None for a box.

    A linear model is best at an end of every interval, so that only these are on offer.
    """
    if definition.formula is not None:
        raise InvalidArgumentError(
            "formula", definition.formula.text, "cannot be asked for settings", "begin a study with factors instead"
        )
    choices: list[list[Any]] = []
    for f in definition.factors:
        if isinstance(f, Levels):
            choices.append(list(f.values))
        elif not (isinstance(f, Number) and math.isfinite(f.low)):
            raise InvalidArgumentError(
                f"factors[{f.name!r}]", f.described(), "has no ends to choose between",
                f'begin a study with an interval, {{"{f.name}": (low, high)}}',
            )  # fmt: skip
        elif not definition.smooth:
            choices.append(f.shown(np.array([f.low, f.high])))
        else:
            return None
    if math.prod(map(len, choices)) > MOST_SETTINGS:
        raise InvalidArgumentError(
            "factors", [f.name for f in definition.factors], f"make more than {MOST_SETTINGS} settings to choose from",
            'use fewer levels, or model="smooth" with intervals',
        )  # fmt: skip
    names = [f.name for f in definition.factors]
    return [dict(zip(names, values, strict=True)) for values in product(*choices)]


def _box(definition: Definition) -> list[Any]:
    sides: list[Any] = []
    for f in definition.factors:
        if isinstance(f, Levels):
            sides.append(set(range(len(f.values))))
        else:
            assert isinstance(f, Number)
            whole = np.arange(f.low, f.high + 0.5) if f.whole else None
            sides.append((-1.0, 1.0) if whole is None else set(((whole - f.centre) / f.scale).tolist()))
    return sides


def spread_evenly(start: int, count: int, dimension: int, seed: int) -> Array:
    """Points number ``start`` and following of [0, 1)^dimension that fill it evenly: Halton's, shifted at random.

    >>> spread_evenly(0, 2, 1, seed=0).round(3).tolist() == spread_evenly(0, 4, 1, seed=0)[:2].round(3).tolist()
    True
    """
    shifts = np.random.default_rng([seed, 0]).uniform(size=dimension)
    primes = [p for p in range(2, 10 * dimension + 10) if all(p % q for q in range(2, p))][:dimension]
    points = np.zeros((count, dimension))
    for j, prime in enumerate(primes):
        for i in range(count):
            number, share = start + i + 1, 1.0 / prime
            while number:
                points[i, j] += share * (number % prime)
                number, share = number // prime, share / prime
    return np.asarray((points + shifts) % 1.0)


class SettingsBox(Box):
    """The box of a study's factors: intervals run from -1 to 1 in steps that can be set, levels by their numbers."""

    def __init__(self, definition: Definition, space: Any) -> None:
        super().__init__(space, _box(definition))
        self._factors = definition.factors

    def snapped(self, points: Array) -> Array:
        """The nearest settings, numbers rounded to three digits of their interval's width."""
        nearest = super().snapped(points)
        for j, f in enumerate(self._factors):
            if isinstance(f, Number) and not f.whole:
                values = np.round(f.centre + f.scale * nearest[:, j], f.digits)
                nearest[:, j] = f.encoded(np.clip(values, f.low, f.high))[:, 0]
        return nearest


def _claim_text(
    definition: Definition, made: Certificate, setting: dict[str, Any] | None, parts: list[Any], sign: float, rows: int
) -> str:
    units = f" {definition.units}" if definition.units else ""
    sure = f"with probability at least {1 - made.alpha:g}, after {rows:,} rows"
    if made.claim == "above":
        threshold = f"{definition.outcome} {sign * made.threshold:g}{units}"
        words = [f"{len(part)} setting{'s' * (len(part) != 1)}" for part in parts]
        near = f", {words[2]} within {made.epsilon:g} of it" if parts[2] else ""
        return f"{words[0]} better than {threshold}, {words[1]} not{near}, {sure}"
    assert setting is not None
    what = setting_text(setting)
    if made.claim == "gain":
        side = "at least" if sign > 0 else "at most"
        return (
            f"{what}: the mean of {definition.outcome} is {side} {sign * made.lower:.4g}{units}, and no setting is "
            f"better than that by more than {made.epsilon:g}{units}, {sure}"
        )
    best = "is best" if made.epsilon == 0 else f"is best up to {made.epsilon:g}{units}"
    ends = sorted((sign * made.lower, sign * made.upper))
    return f"{what} {best}, {sure}; its mean {definition.outcome} lies between {ends[0]:.4g} and {ends[1]:.4g}{units}"
