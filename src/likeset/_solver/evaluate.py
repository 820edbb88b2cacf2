"""Plain evaluation of the terms phi_k(z_k): membership, log ratios, and sets with reweighted covariates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likeset._solver.problem import CallableTerms, CurveTerms, PointTerms, Terms
from likeset._typing import Array
from likeset.curves import Curve

_FEW = 8  # summands up to which adding them one by one is faster


def curve_heights(curve: Curve, Z: Array) -> Array:
    """A(Z), elementwise; infinite where e^z overflows."""
    if curve is Curve.QUADRATIC:
        return 0.5 * Z * Z
    if curve is Curve.EXPONENTIAL:
        with np.errstate(over="ignore"):
            return np.exp(Z)
    return np.logaddexp(0.0, Z)


def curve_term_values(terms: CurveTerms, Z: Array) -> Array:
    """phi_k(Z[..., k]), written so that nothing large cancels; a = 0 with an overflowing curve is 0, not NaN."""
    a, s = terms.a, terms.s
    if terms.curve is Curve.SOFTPLUS:
        # log(1 + e^z) = max(z, 0) + log(1 + e^-|z|): for z > 0 the line and s z leave (a - s) z.
        return a * np.log1p(np.exp(-np.abs(Z))) + np.where(Z > 0, a - s, -s) * Z
    if terms.origins is None:
        heights, steps = curve_heights(terms.curve, Z), Z
    else:
        steps = Z - terms.origins
        with np.errstate(over="ignore"):
            heights = 0.5 * steps * steps if terms.curve is Curve.QUADRATIC else (
                np.exp(terms.origins) * (np.expm1(steps) - steps)
            )  # fmt: skip
    return np.where(a > 0, a * np.where(a > 0, heights, 0.0), 0.0) - s * steps


def term_values(terms: Terms, Z: Array) -> Array:
    """phi_k(Z[..., k]) for Z of shape (..., K)."""
    if isinstance(terms, CurveTerms):
        return curve_term_values(terms, Z)
    if isinstance(terms, PointTerms):
        count = len(terms.starts) - 1
        owner = np.repeat(np.arange(count), np.diff(terms.starts))
        values = np.zeros((*Z.shape[:-1], count))
        if len(owner):
            present, first = np.unique(owner, return_index=True)
            distances = terms.weights * np.abs(terms.points - Z[..., owner])
            values[..., present] = np.add.reduceat(distances, first, axis=-1)
        return values
    return terms.evaluate(Z)[0]


def values_and_slopes(terms: Terms, Z: Array) -> tuple[Array, Array]:
    """phi_k(Z[..., k]), and how steep phi_k is there at most."""
    if isinstance(terms, PointTerms):
        count = len(terms.starts) - 1
        owner = np.repeat(np.arange(count), np.diff(terms.starts))
        return term_values(terms, Z), np.broadcast_to(np.bincount(owner, terms.weights, minlength=count), Z.shape)
    if isinstance(terms, CurveTerms):
        slopes = np.where(terms.a > 0, np.abs(evaluate_terms(terms, Z)[1]), np.abs(terms.s))
        return term_values(terms, Z), slopes
    values, first, _ = terms.evaluate(Z)
    return values, np.abs(first)


def reweighted(terms: Terms, weights: Array, keep: NDArray[np.bool_] | None = None) -> Terms:
    """The terms v_k phi_k for covariate weights v_k in [0, 1]; only those of the covariates to ``keep``, if given."""
    if isinstance(terms, CurveTerms):
        return terms.scaled(weights) if keep is None else terms.scaled(weights).at(keep)
    if isinstance(terms, PointTerms):
        count = len(terms.starts) - 1
        owner = np.repeat(np.arange(count), np.diff(terms.starts))
        loud = weights[owner] > 0
        sizes = np.bincount(owner[loud], minlength=count)
        starts = np.concatenate([[0], np.cumsum(sizes if keep is None else sizes[keep])]).astype(np.int64)
        if keep is not None:
            loud &= keep[owner]
        return PointTerms(starts, terms.points[loud], (weights[owner] * terms.weights)[loud])
    evaluate, chosen = terms.evaluate, np.arange(len(weights)) if keep is None else np.flatnonzero(keep)

    def scaled(Z: Array) -> tuple[Array, Array, Array]:
        full = np.zeros((*Z.shape[:-1], len(weights)))
        full[..., chosen] = Z
        value, first, second = evaluate(full)
        return tuple((weights * x)[..., chosen] for x in (value, first, second))  # type: ignore[return-value]

    return CallableTerms(scaled)


def log_sum_exp(exponents: Array) -> Array:
    """log sum_k exp(exponents[..., k]), without overflow; -inf for no exponents at all, or where all are -inf."""
    if exponents.shape[-1] <= _FEW:
        return np.logaddexp.reduce(exponents, axis=-1)
    top = np.max(exponents, axis=-1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(np.sum(np.exp(exponents - safe), axis=-1)) + safe[..., 0])


def evaluate_terms(terms: CurveTerms | CallableTerms, Z: Array) -> tuple[Array, Array, Array]:
    """(phi_k, phi_k', phi_k'') at Z (..., K), each of the shape of Z; inf where e^z overflows."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if isinstance(terms, CallableTerms):
            return terms.evaluate(Z)
        a, s = terms.a, terms.s
        if terms.curve == Curve.SOFTPLUS:  # for z > 0 in terms of a - s, which is exact where all trials succeeded
            e, up = np.exp(-np.abs(Z)), Z > 0.0
            line, small = np.where(up, a - s, -s), e / (1.0 + e)
            return a * np.log1p(e) + line * Z, line + np.where(up, -a, a) * small, a * small / (1.0 + e)
        steps = Z if terms.origins is None else Z - terms.origins
        if terms.curve == Curve.QUADRATIC:
            return a * (0.5 * steps * steps) - s * steps, a * steps - s, a * np.ones_like(Z)
        second = np.exp(Z)
        if terms.origins is None:
            return a * second - s * Z, a * second - s, a * second
        base, growth = np.exp(terms.origins), np.expm1(steps)
        return a * (base * (growth - steps)) - s * steps, a * (base * growth) - s, a * second


def term_sizes(terms: CurveTerms, Z: Array) -> Array:
    """What the rounding error of phi_k(Z) is proportional to: the sum of the sizes of its parts."""
    if terms.curve == Curve.SOFTPLUS:
        line = np.where(Z > 0.0, terms.a - terms.s, terms.s) * Z
    else:
        line = terms.s * (Z if terms.origins is None else Z - terms.origins)
    with np.errstate(over="ignore"):
        return np.abs(evaluate_terms(terms, Z)[0]) + 2.0 * np.abs(line)
