"""Plain evaluation of the terms phi_k(z_k): membership, log ratios, and sets with reweighted covariates."""

from __future__ import annotations

import numpy as np

from likeset.support.terms import Array, CallableTerms, Curve, CurveTerms, PointTerms, Terms


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


def reweighted(terms: Terms, weights: Array) -> Terms:
    """The terms v_k phi_k for covariate weights v_k in [0, 1]."""
    if isinstance(terms, CurveTerms):
        return CurveTerms(terms.curve, weights * terms.a, weights * terms.s)
    if isinstance(terms, PointTerms):
        count = len(terms.starts) - 1
        owner = np.repeat(np.arange(count), np.diff(terms.starts))
        keep = weights[owner] > 0
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner[keep], minlength=count))]).astype(np.int64)
        return PointTerms(starts, terms.points[keep], (weights[owner] * terms.weights)[keep])
    evaluate = terms.evaluate

    def scaled(Z: Array) -> tuple[Array, Array, Array]:
        value, first, second = evaluate(Z)
        return weights * value, weights * first, weights * second

    return CallableTerms(scaled)
