r"""Evidence with directional voices: one more group for every announced contrast and prior precision.

    log R_jl(theta) = scale (b_j - g_j'theta)^2 / (2 (Q_j + lambda_jl)) + log(lambda_jl / (Q_j + lambda_jl)) / 2

is a quadratic term of z = g_j'theta with a gain, in a voice of its own: no kernel sees anything new. g_j moves with
every observation, so these groups are made anew for every snapshot (:mod:`~likeset.voices.directions`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from likeset._solver.problem import CurveTerms, VoiceTable
from likeset.evidence.evidence import Evidence
from likeset.voices.directions import SHARES, Measured


def with_directions(evidence: Evidence, measured: Measured, share: float, count: int) -> Evidence:
    """The average of ``evidence`` and of the voices of ``count`` contrasts, which have ``share`` of the error level.

    Contrasts that have not been ``measured`` yet have ratio one.
    """
    groups, terms, voices = evidence.groups, evidence.terms, evidence.voices
    assert isinstance(terms, CurveTerms)
    opened, each = measured.lambdas.shape
    owners = len(groups.covariates) + np.repeat(np.arange(opened), each)
    total = (measured.squares[:, None] + measured.lambdas).ravel()
    origins = np.zeros_like(terms.a) if terms.origins is None else terms.origins
    shares = np.log(share / count) + np.tile(np.log(SHARES), opened)
    first, have = len(terms.a), len(voices.members)
    starts, members = have + 1 + np.arange(opened * each), first + np.arange(opened * each)
    if opened < count:  # one voice that holds nothing, for all that are silent
        starts = np.concatenate([starts, starts[-1:] if opened else np.array([have])])
        shares = np.append(shares, np.log(share * (count - opened) / count))
    return replace(
        evidence,
        groups=replace(groups, owners=np.concatenate([groups.owners, owners]), loads=measured.loads),
        terms=CurveTerms(
            terms.curve,
            np.concatenate([terms.a, measured.scale / total]),
            np.concatenate([terms.s, np.zeros(len(total))]),
            np.concatenate([origins, np.repeat(measured.targets, each)]),
        ),
        gains=np.concatenate([evidence.gains, 0.5 * np.log(measured.lambdas.ravel() / total)]),
        voices=VoiceTable(
            np.concatenate([voices.starts, starts]).astype(np.int64),
            np.concatenate([voices.members, members]).astype(np.int64),
            np.concatenate([voices.log_shares + np.log1p(-share), shares]),
        ),
    )
