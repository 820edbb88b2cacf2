"""Plain evaluation of the terms phi_k(z_k): membership, log ratios, and sets with reweighted covariates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from likeset.support.terms import Array, CallableTerms, Curve, CurveTerms, PointTerms, Terms

_FEW = 8  # summands up to which adding them one by one is faster


def curve_heights(curve: Curve, Z: Array) -> Array:
    """A(Z), elementwise; infinite where e^z overflows."""
    if curve is Curve.QUADRATIC:
        return 0.5 * Z * Z
    if curve is Curve.EXPONENTIAL:
        with np.errstate(over="ignore"):
            return np.exp(Z)
    return np.logaddexp(0.0, Z)


def term_values(terms: Terms, Z: Array) -> Array:
    """phi_k(Z[..., k]) for Z of shape (..., K)."""
    if isinstance(terms, CurveTerms):
        height = curve_heights(terms.curve, Z)
        # a = 0 with an overflowing curve is 0, not NaN.
        return np.where(terms.a > 0, terms.a * np.where(terms.a > 0, height, 0.0), 0.0) - terms.s * Z
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


def reweighted(terms: Terms, weights: Array, keep: NDArray[np.bool_] | None = None) -> Terms:
    """The terms v_k phi_k for covariate weights v_k in [0, 1]; only those of the covariates to ``keep``, if given."""
    if isinstance(terms, CurveTerms):
        a, s = weights * terms.a, weights * terms.s
        return CurveTerms(terms.curve, a, s) if keep is None else CurveTerms(terms.curve, a[keep], s[keep])
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
