"""The paper's results as numbers: evaluate them on a stream and compare with what happened.

Covariates are plain arrays, one row per observation (of a sequence: ``seq.ledger.x.rows``); arrays over time have one
entry per t = 1, 2, ... Where the printed statement differs from what its proof shows, the corrected one has the plain
name and the printed one the ending ``_as_printed``; docs/paper-to-code.md lists the differences.

>>> import numpy as np
>>> import likeset as ls
>>> from likeset import theory
>>> family, truth, rng = ls.Gaussian(0.5), np.array([0.6, -0.3]), np.random.default_rng(0)
>>> x = rng.normal(size=(50, 2))
>>> x /= np.linalg.norm(x, axis=1, keepdims=True)
>>> seq = ls.ConfidenceSequence(family, ls.Linear(2, 1.0), predictor=ls.FTRL(penalty=4.0), windows=None)
>>> seq.update(x, family.sample(x @ truth, rng))
>>> realised = theory.online_regret(family, seq.ledger, truth)
>>> bound = theory.ftrl_regret_bound(family, x, penalty=4.0, bound=1.0, delta=0.1)
>>> bool((realised <= bound).all()), round(float(bound[-1] / realised[-1]))      # true, and how loose
(True, 30)
"""

from likeset.paper.theory.ball import (
    bregman_radius,
    bregman_radius_as_printed,
    deviation,
    deviation_bound,
    largest_divergence,
    type_two_error_bound,
)
from likeset.paper.theory.bandit import (
    abbasi_yadkori_regret_bound,
    bandit_regret_bound,
    linear_bandit_regret_bound,
    linear_bandit_regret_bound_as_printed,
    weighted_bandit_regret_bound,
)
from likeset.paper.theory.bias import (
    bias_bound,
    bias_bound_as_printed,
    error_free_estimate,
    sharper_bias_bound,
    squared_bias,
    worst_gaussian_squared_bias,
)
from likeset.paper.theory.gain import (
    Estimate,
    bregman_information_gain,
    bregman_information_gain_as_printed,
    information_gain,
    squared_lengths,
    worst_information_gain,
)
from likeset.paper.theory.geometry import Curvature, LogPartition, log_partition, penalised_estimate
from likeset.paper.theory.looseness import Looseness, study
from likeset.paper.theory.online import (
    ftrl_estimates,
    ftrl_regret_bound,
    ftrl_regret_bound_as_printed,
    ftrl_regret_bound_from_data,
    mixture_regret_bound,
    noise_bound,
    noise_bound_as_printed,
    noise_potential,
    online_regret,
    tail_bounds,
)
from likeset.paper.theory.reduction import Complement, reduction_growth, weighting_excess
from likeset.paper.theory.vaw import VAWBound, vaw_excess, vaw_regret_bound, vaw_regret_bound_as_printed

__all__ = [
    "Complement",
    "Curvature",
    "Estimate",
    "LogPartition",
    "Looseness",
    "VAWBound",
    "abbasi_yadkori_regret_bound",
    "bandit_regret_bound",
    "bias_bound",
    "bias_bound_as_printed",
    "bregman_information_gain",
    "bregman_information_gain_as_printed",
    "bregman_radius",
    "bregman_radius_as_printed",
    "deviation",
    "deviation_bound",
    "error_free_estimate",
    "ftrl_estimates",
    "ftrl_regret_bound",
    "ftrl_regret_bound_as_printed",
    "ftrl_regret_bound_from_data",
    "information_gain",
    "largest_divergence",
    "linear_bandit_regret_bound",
    "linear_bandit_regret_bound_as_printed",
    "log_partition",
    "mixture_regret_bound",
    "noise_bound",
    "noise_bound_as_printed",
    "noise_potential",
    "online_regret",
    "penalised_estimate",
    "reduction_growth",
    "sharper_bias_bound",
    "squared_bias",
    "squared_lengths",
    "study",
    "tail_bounds",
    "type_two_error_bound",
    "vaw_excess",
    "vaw_regret_bound",
    "vaw_regret_bound_as_printed",
    "weighted_bandit_regret_bound",
    "weighting_excess",
    "worst_gaussian_squared_bias",
    "worst_information_gain",
]
