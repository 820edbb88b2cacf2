r"""The game of a trial once more, played by the weighted set: what its regret is bounded by.

The paper states in words that Theorem 6 holds for weighted sets with a factor of sup 1/w. Here is that bound on a
stream that the weighted set has chosen itself, and a sharper one that does not look at the worst weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from likeset.bandits import simulate
from likeset.paper.theory import ball, bandit, gain, online
from likeset.paper.theory.geometry import Curvature, penalised_estimate
from likeset.paper.theory.track import Track
from likeset.predictors import FTRL
from likeset.weights import BiasWeighting

if TYPE_CHECKING:
    from likeset.paper.theory.trial import Trial

_FORMS = {"worst weight": "Theorem 6 times sup 1/w", "lengths": "the same without sup 1/w (ours)"}
_SAMPLES = 2048


def weighted_tracks(trial: Trial, alpha: float, delta: float) -> Iterator[Track]:
    """UCB with bias weights (those of Theorem 2) among the arms of the trial, and the two bounds on its regret."""
    model, marks, rng = trial.model, trial.marks, trial.rng
    sequence = trial.sequence(FTRL(model.penalty), BiasWeighting("bound", model.penalty))
    trace = simulate(
        trial.policy(sequence), trial.environment, trial.rounds, rng, coverage=False, on_empty="explore"
    )  # fmt: skip
    x, y, w = trace.x, trace.y, sequence.ledger.weights.rows
    curvature = Curvature.of(model.family, model.bound, x)
    settings = {"nu": model.penalty, "bound": model.bound}
    gains = np.empty(len(marks))
    for i, t in enumerate(marks):
        centre = penalised_estimate(model.family, x[:t], y[:t], w[:t], nu=model.penalty)
        found = gain.bregman_information_gain(
            model.family, x[:t], centre, w[:t], nu=model.penalty, samples=_SAMPLES, rng=rng
        )
        gains[i] = found.value + 3 * found.standard_error  # sampled: on the safe side
    highest = np.maximum.accumulate(np.maximum(online.online_regret(model.family, sequence.ledger, trial.theta), 0.0))
    radius = ball.bregman_radius(
        gains, highest[marks - 1], curvature=curvature, alpha=alpha, delta=delta, **settings
    )  # fmt: skip
    rounds = np.arange(1, marks[-1] + 1)
    between = radius[np.searchsorted(marks, rounds)]  # that of the next mark, which is not smaller
    for form, name in _FORMS.items():
        bound = bandit.weighted_bandit_regret_bound(
            x[: marks[-1]], w[: marks[-1]], between, mu=curvature.mu, nu=model.penalty,
            lipschitz=model.lipschitz(curvature), form=form,  # type: ignore[arg-type]
        )  # fmt: skip
        yield Track(
            "bandit regret", "UCB, weighted", name, "proved", 1 - alpha - delta, marks,
            trace.cumulative_regret[marks - 1], bound[marks - 1],
        )  # fmt: skip
