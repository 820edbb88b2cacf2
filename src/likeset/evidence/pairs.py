r"""Evidence about two arms: everything that depends on their two linear predictors alone.

Let x and x' be two covariates, the *arms* of an announced pair, and z, z' their linear predictors. Observations
elsewhere are masked (a mask known before y), so that two kinds of ratios are functions of (z, z') only:

    the voices of the sequence, cut down to the two arms        prod_{s: x_s in {x, x'}} q_s(y_s) / p(y_s | z_s)
    directional voices                                          ∫ prod_s p(y_s | z_s + u v_s) / p(y_s | z_s) dnu(u)

with v_s = t at x, -t' at x', 0 elsewhere, t + t' = 1. For an exponential family counts suffice: only sums of a(y) and
s(y) at the two arms enter. nu is a finite mixture, hence exactly valid: over effects u of four sizes (in units of the
natural parameter: log odds, log rates; standard deviations of noise), each with a discretised normal law, and over five
ways t to share the effect among the arms, since the best one depends on how observations are allocated. Both are fixed
before the first row. Where the question is one of order (may x be better than x'?), the half of the effects that speak
against it has all of the weight.
"""

from __future__ import annotations

from functools import cache
from math import inf, log

import numpy as np

from likeset._solver.pairs import PairSet
from likeset._typing import Array
from likeset.curves import Curve, curve_derivatives, curve_heights
from likeset.evidence.evidence import Evidence
from likeset.families.canonical import Canonical

SIZES = ((1.0, 0.25), (0.3, 0.35), (0.1, 0.25), (0.03, 0.15))  # of effects, with their shares
TILTS = ((0.5, 0.4), (0.8, 0.2), (0.2, 0.2), (0.97, 0.1), (0.03, 0.1))  # t, with their shares
_GRID = np.arange(-9, 10) / 3.0  # of standard deviations


@cache
def effects(falling: bool = False) -> tuple[Array, Array]:
    """The nodes (u t, -u (1 - t)) of nu, and the logs of their weights, which add up to one; ``falling``: u < 0."""
    grid = _GRID[_GRID < 0.0] if falling else _GRID
    weights = np.exp(-0.5 * grid**2)
    weights /= weights.sum()
    nodes, logs = [], []
    for size, share in SIZES:
        for tilt, part in TILTS:
            u = size * grid
            nodes.append(np.column_stack([tilt * u, (tilt - 1.0) * u]))
            logs.append(np.log(share * part * weights))
    return np.vstack(nodes), np.concatenate(logs)


def pair_set(
    evidence: Evidence,
    arms: tuple[int | None, int | None],
    lengths: Array,
    share: float,
    odds: float,
    form: Canonical,
    falling: bool = False,
) -> PairSet | None:
    """The set of two arms, given by their numbers among the covariates seen (None: not yet), at alpha by ``odds``.

    ``lengths`` are |x| and |x'|, ``share`` is that of the directional voices, ``form`` says which curve is meant, and
    what the unknowns are; ``falling``: only effects that make the first of them smaller and the second larger. None if
    the terms are of another kind.
    """
    terms, groups, voices = form.terms(evidence.terms), evidence.groups, evidence.audible
    if terms is None:
        return None
    # phi counted from an origin o, as one of a A(z) - s z.
    o = np.zeros_like(terms.a) if terms.origins is None else terms.origins
    s = terms.s
    constants = np.where(np.isneginf(evidence.gains), 0.0, evidence.gains)
    if terms.origins is not None:
        slope = curve_derivatives(terms.curve, o)[0]
        constants = constants - terms.a * (curve_heights(terms.curve, o) - slope * o) + terms.s * o
        s = terms.s + terms.a * slope
    where = np.column_stack([groups.owners == (-1 if arm is None else arm) for arm in arms]).astype(float)
    total_a, total_s = terms.a @ where, s @ where
    # Sums of every voice over its members at the two arms.
    members, owners, k = voices.members, voices.owners, len(voices.log_shares)
    a, slopes = np.zeros((k, 2)), np.zeros((k, 2))
    own = np.zeros(k)
    np.add.at(a, owners, (terms.a[:, None] * where)[members])
    np.add.at(slopes, owners, (s[:, None] * where)[members])
    np.add.at(own, owners, (constants * where.sum(axis=1))[members])
    shares = voices.log_shares + log(1.0 - share)
    nodes, log_nodes = effects(falling)
    endless = not evidence.bound < inf
    # Beyond, means are no numbers of the computer; where noise is around z, no data can be that far away.
    end = 1e150 if terms.curve is Curve.QUADRATIC else 700.0
    reach = np.full(2, end) if endless else evidence.bound * lengths * (1.0 + 1e-12)
    return PairSet(
        terms.curve, shares + own, a, slopes, form.unit * nodes, log_nodes + log(share), total_a, total_s,
        evidence.threshold + log(odds), form.shift - reach, form.shift + reach, endless,
    )  # fmt: skip
