"""Plain evaluation of the terms phi_k(z_k): membership, log ratios, and sets with reweighted covariates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from likeset._solver.problem import CallableTerms, CurveTerms, LossTerms, PointTerms, SmoothTerms, Terms
from likeset._typing import Array, IntArray, Mask
from likeset.curves import term_derivatives, term_heights, term_lines

_FEW = 8  # summands up to which adding them one by one is faster


def term_values(terms: Terms, Z: Array) -> Array:
    """phi_k(Z[..., k]) for Z of shape (..., K)."""
    if isinstance(terms, CurveTerms):
        return term_heights(terms.curve, terms.a, terms.s, terms.origins, Z)
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


def reweighted(terms: Terms, weights: Array, keep: Mask | None = None) -> Terms:
    """The terms v_k phi_k for covariate weights v_k in [0, 1]; only those of the covariates to ``keep``, if given."""
    if isinstance(terms, CurveTerms):
        return terms.scaled(weights) if keep is None else terms.scaled(weights).at(keep)
    if isinstance(terms, PointTerms | LossTerms):
        count = len(terms.starts) - 1
        owner = np.repeat(np.arange(count), np.diff(terms.starts))
        loud = weights[owner] > 0
        sizes = np.bincount(owner[loud], minlength=count)
        starts = np.concatenate([[0], np.cumsum(sizes if keep is None else sizes[keep])]).astype(np.int64)
        if keep is not None:
            loud &= keep[owner]
        points, scaled = terms.points[loud], (weights[owner] * terms.weights)[loud]
        if isinstance(terms, LossTerms) and terms.shifts is not None:
            return replace(terms, starts=starts, points=points, weights=scaled, shifts=terms.shifts[loud])
        return replace(terms, starts=starts, points=points, weights=scaled)
    chosen = np.arange(len(weights)) if keep is None else np.flatnonzero(keep)
    return CallableTerms(ReweightedFunction(terms.evaluate, weights, chosen))


@dataclass(frozen=True)
class ReweightedFunction:
    """v_k phi_k and derivatives of the ``chosen`` k, from a function of all of them; can be pickled."""

    evaluate: Callable[[Array], tuple[Array, Array, Array]]
    weights: Array
    chosen: IntArray

    def __call__(self, Z: Array) -> tuple[Array, Array, Array]:
        """At Z (..., number chosen)."""
        full = np.zeros((*Z.shape[:-1], len(self.weights)))
        full[..., self.chosen] = Z
        value, first, second = ((self.weights * x)[..., self.chosen] for x in self.evaluate(full))
        return value, first, second


def log_sum_exp(exponents: Array) -> Array:
    """log sum_k exp(exponents[..., k]), without overflow; -inf for no exponents at all, or where all are -inf."""
    if exponents.shape[-1] <= _FEW:
        return np.logaddexp.reduce(exponents, axis=-1)
    top = np.maximum.reduce(exponents, axis=-1, keepdims=True)
    if np.isfinite(top).all():
        return np.asarray(np.log(np.add.reduce(np.exp(exponents - top), axis=-1)) + top[..., 0])
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.log(np.sum(np.exp(exponents - safe), axis=-1)) + safe[..., 0])


def evaluate_terms(terms: SmoothTerms, Z: Array) -> tuple[Array, Array, Array]:
    """(phi_k, phi_k', phi_k'') at Z (..., K), each of the shape of Z; inf where e^z overflows."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if isinstance(terms, CurveTerms):
            return term_derivatives(terms.curve, terms.a, terms.s, terms.origins, Z)
        return terms.evaluate(Z)


def term_sizes(terms: SmoothTerms, Z: Array, values: Array) -> Array:
    """What the rounding error of ``values``, phi_k(Z), is proportional to: the sum of the sizes of its parts."""
    if isinstance(terms, CurveTerms):
        with np.errstate(over="ignore"):
            return np.abs(values) + 2.0 * np.abs(term_lines(terms.curve, terms.a, terms.s, terms.origins, Z))
    return terms.sizes(Z) if isinstance(terms, LossTerms) else np.abs(values)
