r"""One game, every bound: a UCB bandit is played once, and each result of the paper is evaluated on what it saw.

The covariates are chosen by the confidence sets themselves, so the data are as adaptive as the theorems allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.bandits import UCB, environments, simulate
from likeset.bandits.environments import Environment
from likeset.comparison import AbbasiYadkori
from likeset.families import Gaussian, Poisson
from likeset.families.curve_family import CurveFamily
from likeset.paper.theory import ball, bandit, bias, gain, online, reduction, vaw
from likeset.paper.theory.geometry import Curvature, LogPartition, penalised_estimate
from likeset.paper.theory.track import Track
from likeset.paper.theory.weighted_game import weighted_tracks
from likeset.predictors import FTRL, VAW, Mixture
from likeset.predictors.base import Predictor
from likeset.sequence import ConfidenceSequence
from likeset.weights import BiasWeighting, Weighting

DIM, ARMS, ALPHA, DELTA = 2, 20, 0.1, 0.1
CHECKPOINTS = 24
GAIN_SAMPLES = 2048


@dataclass(frozen=True)
class Model:
    """A family with |theta*| <= bound, the penalty lambda = nu of all estimates, and what regret is counted in."""

    name: str
    family: CurveFamily
    bound: float
    penalty: float
    reward: str

    def lipschitz(self, curvature: Curvature) -> float:
        """How fast the reward changes with z."""
        return curvature.L if isinstance(self.family, Poisson) else 1.0


MODELS = (
    Model("linear Gaussian", Gaussian(0.5), 1.0, 4.0, "increasing"),
    Model("Poisson GLM", Poisson(), 1.0, 1.0, "mean"),
)


class Trial:
    """One run of one model, and its tracks."""

    def __init__(self, model: Model, rounds: int, seed: list[int]) -> None:
        self.model, self.rounds = model, rounds
        lottery = np.random.default_rng(seed)
        self.environment: Environment = environments.linear(
            DIM, model.family, ARMS, int(lottery.integers(2**31)), model.bound, model.reward
        )
        self.theta = self.environment.theta
        self.rng = lottery
        self.marks = np.unique(np.geomspace(2, rounds, CHECKPOINTS).astype(int))

        policy = self.policy(self.sequence(FTRL(model.penalty)))
        trace = simulate(policy, self.environment, rounds, lottery, coverage=False, on_empty="explore")
        self.x, self.y, self.bandit_regret = trace.x, trace.y, trace.cumulative_regret
        self.t = np.arange(1, rounds + 1)
        self.curvature = Curvature.of(model.family, model.bound, self.x)
        self.gains = np.array([self._gain(t) for t in self.marks])
        self.ftrl = self._fed(FTRL(model.penalty))
        self.regret = online.online_regret(model.family, self.ftrl.ledger, self.theta)

    def tracks(self) -> Iterator[Track]:
        """Every bound on this run."""
        yield from self._online()
        yield from self._size()
        yield from self._bandit()
        yield from weighted_tracks(self, ALPHA, DELTA)
        yield from self._ingredients()

    # -- panels ------------------------------------------------------------------------------------------------------

    def _online(self) -> Iterator[Track]:
        m, common = self.model, self._settings
        theorem = "Theorem 4" if self.curvature.smooth_everywhere else "Theorem 7"
        panel = "online regret"
        plain = online.ftrl_regret_bound(m.family, self.x, weighted=False, **common)
        yield Track(panel, "FTRL", theorem, "proved", 1 - DELTA, self.t, self.regret, plain)
        if self.curvature.smooth_everywhere:
            local = online.ftrl_regret_bound(m.family, self.x, smoothness="local", **common)
            yield Track(panel, "FTRL", "Theorem 7", "proved", 1 - DELTA, self.t, self.regret, local)
        from_data = online.ftrl_regret_bound_from_data(
            m.family, self.x, self.y, penalty=m.penalty, bound=m.bound
        )  # fmt: skip
        yield Track(panel, "FTRL", "curvature of the data (ours)", "proved", 1.0, self.t, self.regret, from_data)
        if self.curvature.smooth_everywhere:  # which Theorems 4 and 5 and Lemma 10 assume
            printed = online.ftrl_regret_bound_as_printed(m.family, self.x, **common)
            yield Track(panel, "FTRL", "Theorem 4 as printed", "printed", 1 - DELTA, self.t, self.regret, printed)

        weighting = BiasWeighting("bound", m.penalty)
        weighted = self._fed(FTRL(m.penalty), weighting)
        realised = online.online_regret(m.family, weighted.ledger, self.theta)
        bound = online.ftrl_regret_bound(m.family, self.x, weighted=True, **common)
        yield Track(panel, "FTRL, weighted", theorem, "proved", 1 - DELTA, self.t, realised, bound)
        excess = reduction.weighting_excess(m.family, weighted.ledger, self.theta)
        level = np.full(len(self.t), np.log(1 / DELTA))
        yield Track("cost of weights", "FTRL", "Lemma 11", "proved", 1 - DELTA, self.t, excess, level)

        seq = self._fed(VAW(m.penalty), weighting)
        realised = online.online_regret(m.family, seq.ledger, self.theta)
        w = seq.ledger.weights.rows
        five = vaw.vaw_regret_bound(m.family, self.x, self.y, self.theta, w, **common)
        who = "VAW, weighted"
        yield Track(panel, who, "Theorem 5", "assumed", 1 - DELTA, self.t, realised, five.values)
        yield Track(
            panel, who, "Theorem 5, weights in all terms (ours)", "assumed", 1 - DELTA, self.t, realised,
            five.weight_dependent,
        )  # fmt: skip
        yield Track(
            panel, who, "Theorem 5, excess realised", "proved", 1 - DELTA, self.t, realised, five.assumption_free
        )
        if self.curvature.smooth_everywhere:
            printed = vaw.vaw_regret_bound_as_printed(m.family, self.x, w, **common)
            yield Track(panel, who, "Theorem 5 as printed", "printed", 1 - DELTA, self.t, realised, printed)
        yield Track("excess", who, "assumption of Theorem 5", "assumed", 1.0, self.t, five.excess, five.allowance)

        mixed = self._fed(Mixture([m.penalty]))
        realised = online.online_regret(m.family, mixed.ledger, self.theta)[self.marks - 1]
        bound = online.mixture_regret_bound(self.gains, nu=m.penalty, bound=m.bound)
        status = "proved" if isinstance(m.family, Gaussian) else "assumed"
        yield Track(panel, "Mixture", "exact Bayes (ours)", status, 1.0, self.marks, realised, bound)

    def _size(self) -> Iterator[Track]:
        growing = self.sequence(FTRL(self.model.penalty))
        realised, seen = [], 0
        for t in self.marks:
            growing.update(self.x[seen:t], self.y[seen:t])
            Z = LogPartition(self.model.family, self.x[:t], nu=self.model.penalty)
            s = growing.set  # with probability at most alpha empty, hence of no size
            realised.append(0.0 if s.is_empty else ball.largest_divergence(s, Z, self.theta, starts=8))
            seen = t
        at = self.regret[self.marks - 1]
        size, radius = np.array(realised), self._radius(at)
        printed = ball.bregman_radius_as_printed(
            self.gains, at, curvature=self.curvature, alpha=ALPHA, delta=DELTA, nu=self.model.penalty,
            bound=self.model.bound,
        )  # fmt: skip
        yield Track("set size", "FTRL", "Theorem 3", "proved", 1 - DELTA, self.marks, size, radius)
        yield Track("set size", "FTRL", "Theorem 3 as printed", "printed", 1 - DELTA, self.marks, size, printed)

    def _bandit(self) -> Iterator[Track]:
        m, c, panel = self.model, self.curvature, "bandit regret"
        gamma = gain.information_gain(self.x, c.mu, m.penalty)[self.marks - 1]
        realised = self.bandit_regret[self.marks - 1]
        speed = m.lipschitz(c)
        worst = online.ftrl_regret_bound(m.family, self.x, weighted=False, **self._settings)[self.marks - 1]
        before = bandit.bandit_regret_bound(gamma, self._radius(worst), mu=c.mu, lipschitz=speed, t=self.marks)
        highest = np.maximum.accumulate(np.maximum(self.regret, 0.0))[self.marks - 1]  # R_0 = 0
        after = bandit.bandit_regret_bound(gamma, self._radius(highest), mu=c.mu, lipschitz=speed, t=self.marks)
        if isinstance(m.family, Gaussian):
            settings = {"sigma": m.family.sigma, "penalty": m.penalty, "bound": m.bound, "delta": DELTA}
            six = bandit.linear_bandit_regret_bound(self.x, **settings)
            printed = bandit.linear_bandit_regret_bound_as_printed(self.x, **settings)
            yield Track(panel, "UCB, FTRL", "Theorem 6", "proved", 1 - 3 * DELTA, self.t, self.bandit_regret, six)
            yield Track(
                panel,
                "UCB, FTRL",
                "Theorem 6 as printed",
                "printed",
                1 - 3 * DELTA,
                self.t,
                self.bandit_regret,
                printed,
            )
            yield self._abbasi_yadkori(m.family.sigma)
        else:
            yield Track(panel, "UCB, FTRL", "Theorem 6 for GLMs", "proved", 1 - 3 * DELTA, self.marks, realised, before)
        yield Track(
            panel, "UCB, FTRL", "Theorem 6 with realised R_t", "proved", 1 - 2 * DELTA, self.marks, realised, after
        )

    def _abbasi_yadkori(self, sigma: float) -> Track:
        m = self.model
        rival = AbbasiYadkori(self.environment.space, DELTA, sigma, penalty=m.penalty)
        trace = simulate(
            self.policy(rival), self.environment, self.rounds, self.rng, coverage=False, on_empty="explore"
        )
        bound = bandit.abbasi_yadkori_regret_bound(
            self.t, DIM, sigma=sigma, bound=m.bound, delta=DELTA, penalty=m.penalty * sigma**2
        )
        return Track(
            "bandit regret", "UCB, AY 2011", "AY 2011", "proved", 1 - DELTA, self.t, trace.cumulative_regret, bound
        )

    def _ingredients(self) -> Iterator[Track]:
        m, marks = self.model, self.marks
        own = {"penalty": m.penalty, "bound": m.bound}
        size = np.array([
            ball.deviation(m.family, self.x[:t], self.y[:t], self.theta, nu=m.penalty) for t in marks
        ])  # fmt: skip
        allowed = ball.deviation_bound(self.gains, nu=m.penalty, bound=m.bound, delta=DELTA)
        yield Track("deviation", "penalised estimate", "Proposition 1", "proved", 1 - DELTA, marks, size, allowed)

        noise = online.noise_potential(m.family, self.x, self.y, self.theta, **own)
        lemma = "Lemma 10" if self.curvature.smooth_everywhere else "Lemma 10 by tails (ours)"
        bound = online.noise_bound(m.family, self.x, **self._settings)
        yield Track("noise", "score at the truth", lemma, "proved", 1 - DELTA, self.t, noise, bound)
        if self.curvature.smooth_everywhere:
            bound = online.noise_bound_as_printed(m.family, self.x, **self._settings)
            where = "noise", "score at the truth", "Lemma 10 as printed"
            yield Track(*where, "printed", 1 - DELTA, self.t, noise, bound)

        def along(f: object, **settings: float) -> Array:
            values = [f(m.family, self.x[: t - 1], self.x[t - 1], **settings)[0] for t in marks]  # type: ignore[operator]
            return np.array(values)

        realised = along(
            lambda family, past, x, **s: bias.squared_bias(family, past, x, self.theta, **s), penalty=m.penalty
        )
        who = "FTRL"
        yield Track("squared bias", who, "Theorem 2", "proved", 1.0, marks, realised, along(bias.bias_bound, **own))
        sharp = along(bias.sharper_bias_bound, **own)
        yield Track("squared bias", who, "Theorem 2 halved (ours)", "proved", 1.0, marks, realised, sharp)
        printed = along(bias.bias_bound_as_printed, **own)
        yield Track("squared bias", who, "Theorem 2 as printed", "printed", 1.0, marks, realised, printed)
        if isinstance(m.family, Gaussian):
            exact = np.array([
                bias.worst_gaussian_squared_bias(
                    self.x[: t - 1], self.x[t - 1], sigma=m.family.sigma, **own
                )[0] for t in marks
            ])  # fmt: skip
            yield Track("squared bias", who, "exact worst case", "proved", 1.0, marks, realised, exact)

    # -- helpers -----------------------------------------------------------------------------------------------------

    @property
    def _settings(self) -> dict[str, Any]:
        return {"penalty": self.model.penalty, "bound": self.model.bound, "delta": DELTA}

    def _radius(self, regret: Array) -> Array:
        return ball.bregman_radius(
            self.gains, regret, curvature=self.curvature, nu=self.model.penalty, bound=self.model.bound, alpha=ALPHA,
            delta=DELTA,
        )  # fmt: skip

    def _gain(self, t: int) -> float:
        m = self.model
        centre = penalised_estimate(m.family, self.x[:t], self.y[:t], nu=m.penalty)
        found = gain.bregman_information_gain(
            m.family, self.x[:t], centre, nu=m.penalty, samples=GAIN_SAMPLES, rng=self.rng
        )
        return found.value + 3 * found.standard_error  # sampled: on the safe side

    def sequence(self, predictor: Predictor, weighting: Weighting | None = None) -> ConfidenceSequence:
        """An empty sequence of the model: the joint set, as in the theorems."""
        return ConfidenceSequence(self.model.family, self.environment.space, ALPHA, predictor, weighting, windows=None)

    def _fed(self, predictor: Predictor, weighting: Weighting | None = None) -> ConfidenceSequence:
        sequence = self.sequence(predictor, weighting)
        sequence.update(self.x, self.y)
        return sequence

    def policy(self, sequence: object) -> UCB:
        """Optimism with this sequence among the arms of the game."""
        # Ties at random: before the first observation every arm looks alike.
        return UCB(sequence, self.environment.arms, reward=self.environment.reward, rng=self.rng)
