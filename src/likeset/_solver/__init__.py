"""The exact support function  h(a) = max { a'theta : theta in C }  of a likelihood set, with certificates.

``prepare`` does the work shared by all directions (is the set empty? where is its centre?) and returns a
:class:`~likeset._solver.problem.Kernel`, whose ``solve`` answers any number of directions. Which one depends on the
shape of the terms and on the number of voices. One voice, a joint set:

* :mod:`~likeset._solver.quadratic.kernel`   an ellipsoid cut with a ball (Gaussian noise)
* :mod:`~likeset._solver.smooth.kernel`      other exponential families and users' own
* :mod:`~likeset._solver.absolute.kernel`    Laplace noise

Several, likelihood ratios averaged:

* :mod:`~likeset._solver.smooth.mixture`     Newton's method on the log-sum-exp, for exponential families
  (`mixture_unlimited`: no ball)
* :mod:`~likeset._solver.absolute.mixture`   an interior point method, for Laplace noise (`mixture_unlimited`: no ball)
* :mod:`~likeset._solver.quadratic.mixture`  the same for Gaussian noise: few rows for many, with or without a ball
* :mod:`~likeset._solver.dual`               weighted joint sets, for everything else

And :mod:`~likeset._solver.ball` where nothing has been said yet.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from likeset._solver.ball import Ball
from likeset._solver.evaluate import reweighted, term_values
from likeset._solver.problem import (
    CompiledTerms,
    CurveTerms,
    Kernel,
    LevelSet,
    MixtureSet,
    PointTerms,
    VoiceTable,
    directionless,
    is_quadratic,
)
from likeset._solver.quadratic import kernel as quadratic_kernel
from likeset._solver.smooth import kernel as smooth_kernel
from likeset._typing import EPS, Array, Mask

__all__ = ["Kernel", "has_closed_form", "prepare", "prepare_joint", "prepare_reduced", "reduced"]

_NEARLY_ALL = 1e-6  # voices without data that leave less than this of 1/alpha stay where they are


def prepare_joint(level_set: LevelSet) -> Kernel:
    """Prepare a level set of one sum with the kernel that fits its terms."""
    terms = level_set.terms
    if isinstance(terms, PointTerms):
        from likeset._solver.absolute import kernel  # a large one, loaded when needed: importing likeset stays quick

        return kernel.prepare(level_set)
    if is_quadratic(terms):
        return quadratic_kernel.prepare(level_set)
    return smooth_kernel.prepare(level_set)


def prepare(target: MixtureSet) -> Kernel:
    """Prepare a set of any number of voices; one alone is a joint set."""
    return prepare_reduced(reduced(target))


def reduced(target: MixtureSet) -> MixtureSet | Ball:
    """The same set without groups and voices that say nothing about theta; the ball if none is left."""
    all_heard = _is_joint(target) and target.voices.heard == len(target.X) and target.level < math.inf
    if all_heard and is_quadratic(target.terms) and np.count_nonzero(target.X):
        return target  # the usual case, cheaply; single rows of zeros do no harm there
    target = _without_flat_groups(target)
    if len(target.voices.members) == 0 and len(target.voices.log_shares):
        return Ball(target.X.shape[1], target.bound, empty=_is_above(target.voices.log_shares, target.level))
    target = _without_silent_voices(target)
    voices = target.voices
    if target.level == math.inf or len(voices.log_shares) == 0:
        return Ball(target.X.shape[1], target.bound)
    return _without_idle_groups(target)


def has_closed_form(target: MixtureSet | Ball) -> bool:
    """Whether the kernel of a reduced set will have a closed form: known before it is prepared."""
    if isinstance(target, Ball):
        return target.closed_form
    return _is_joint(target) and is_quadratic(target.terms) and quadratic_kernel.Prepared.closed_form


def prepare_reduced(target: MixtureSet | Ball) -> Kernel:
    """Prepare what :func:`reduced` returned."""
    if isinstance(target, Ball):
        return target
    if _is_joint(target):
        # The sum of the gains was rounded; the sum of their sizes is at most this root.
        rounding = 64 * EPS * math.sqrt(len(target.gains) * float(target.gains.dot(target.gains)))
        level = target.level - float(target.voices.log_shares[0]) - float(target.gains.sum()) + rounding
        return prepare_joint(LevelSet(target.X, target.terms, level, target.bound))
    from likeset._solver import dual
    from likeset._solver.absolute import mixture as absolute_mixture
    from likeset._solver.absolute import mixture_unlimited
    from likeset._solver.quadratic import mixture as quadratic_mixture
    from likeset._solver.smooth import mixture as smooth_mixture
    from likeset._solver.smooth import mixture_unlimited as smooth_unlimited

    def otherwise(other: MixtureSet) -> Kernel:
        return dual.prepare(other, prepare_joint)

    if is_quadratic(target.terms):
        return quadratic_mixture.prepare(target, otherwise)
    if isinstance(target.terms, CompiledTerms) and target.bound < math.inf:
        return smooth_mixture.prepare(target)
    if isinstance(target.terms, CurveTerms):
        return smooth_unlimited.prepare(target, otherwise)
    if isinstance(target.terms, PointTerms):
        limited = target.bound < math.inf
        return absolute_mixture.prepare(target) if limited else mixture_unlimited.prepare_unlimited(target)
    return otherwise(target)


def _is_joint(target: MixtureSet) -> bool:
    return len(target.voices.log_shares) == 1


def _without_flat_groups(target: MixtureSet) -> MixtureSet:
    """The same set without groups whose covariate is zero: what they say is the same for every theta.

    pi_k exp [sum_{b in W_k} gain_b + phi_b(0)]  is then the share of voice k; voices that now hold the same are one.
    """
    flat: Mask = directionless(target.X, None)
    voices = target.voices
    if not np.count_nonzero(flat) or not flat[voices.members].any():
        return target
    constants = np.where(flat, target.gains + term_values(target.terms, np.zeros(len(flat))), 0.0)
    owners, kept = voices.owners, ~flat[voices.members]
    shares = voices.log_shares + np.bincount(owners, constants[voices.members], len(voices.log_shares))
    merged: dict[bytes, list[int]] = {}
    for k in range(len(shares)):
        held = voices.members[voices.starts[k] : voices.starts[k + 1]][kept[voices.starts[k] : voices.starts[k + 1]]]
        merged.setdefault(held.tobytes(), []).append(k)
    members = [np.frombuffer(held, dtype=np.int64) for held in merged]
    starts = np.concatenate([[0], np.cumsum([len(held) for held in members])]).astype(np.int64)
    log_shares = np.array([float(np.logaddexp.reduce(shares[same])) for same in merged.values()])
    # Constants were rounded: outwards.
    level = target.level + 64 * EPS * (1.0 + float(np.abs(constants).sum()))
    return replace(target, voices=VoiceTable(starts, np.concatenate(members), log_shares), level=level)


def _is_above(log_shares: Array, level: float) -> bool:
    """Whether voices that hold nothing are above the level by themselves."""
    return float(np.logaddexp.reduce(log_shares)) > level


def _without_silent_voices(target: MixtureSet) -> MixtureSet:
    """The same set without voices that hold nothing, whose ratio is one: what they take is taken off 1/alpha.

    rho + sum_k pi_k exp M_k <= e^level   <=>   log sum_k pi_k exp M_k <= level + log(1 - rho e^-level)
    """
    speaking, log_silent = target.voices.speaking
    if speaking is target.voices or not log_silent - target.level < math.log1p(-_NEARLY_ALL):
        return target
    taken = math.exp(log_silent - target.level)
    # Outwards: what is taken was rounded, and what is left of one may be little.
    level = target.level + math.log1p(-taken) + 8 * EPS * (1.0 + abs(target.level)) / (1.0 - taken)
    return replace(target, voices=speaking, level=level)


def _without_idle_groups(target: MixtureSet) -> MixtureSet:
    """The same set, described by the groups that some voice holds."""
    windows, count = target.voices, len(target.X)
    if windows.heard == count:
        return target
    used = np.zeros(count, dtype=bool)
    used[windows.members] = True
    number = np.cumsum(used) - 1
    table = VoiceTable(windows.starts, number[windows.members], windows.log_shares)
    terms = reweighted(target.terms, np.ones(count), used)
    owners = None if target.owners is None else target.owners[used]
    return replace(target, X=target.X[used], terms=terms, gains=target.gains[used], voices=table, owners=owners)
