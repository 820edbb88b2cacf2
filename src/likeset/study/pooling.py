r"""Pooling: rows of one level in a block of rows, scored as one row with so many trials, or so much exposure.

Successes in n trials have the likelihood of their n rows, and so have counts over n units of exposure. A mixture does
not mind the pooling either: with mu the belief about z at the beginning of the block,

    q(y_1, ..., y_n) = ∫ prod_i p(y_i | z) dmu(z)

is the product of the forecasts of the rows one by one, each made from the belief and the rows of the level before it in
the block. It is predictable, whatever decided which level comes next; so the set is as valid, under adaptive choice of
the levels, too. This needs outcomes that add up to one of the same kind (successes, counts of a Poisson law), levels
whose beliefs do not touch each other (one factor, one column of the design each), and ratios that hear every row of a
level or none (no voices whose classes would depend on how many rows a block has of a level).

Announced pairs of arms are such ratios. A pair masks whole levels, so that what its ratio of forecasts hears is, level
by level, the product above. For that forecasts must know nothing of the other levels' rows in the block, whose number
may depend on outcomes that are forecast. Beliefs about levels share the weights of their priors, and the accuracy of a
fit; so all forecasts of a block are made at its beginning. Its tilts compare the two arms with z + u and z' + u', for
fixed numbers u and u': by rows,

    prod_s p(y_s | z_s + u_s) / p(y_s | z_s) = exp [ u S - N (A(z + u) - A(z)) + u' S' - N' (A(z' + u') - A(z')) ],

where only the sums of successes S and of trials N (counts and exposure) of the two levels enter. Each factor of the
left side has expectation one given the past, whatever chose the level; the right side does not know how rows were
pooled.

The first rows are scored one by one; later blocks have a small part of the rows before them, so that looks at earlier
times stay fine-grained, and a million rows cost a few hundred scores.
"""

from __future__ import annotations

import numpy as np

from likeset._typing import Array
from likeset.families.answers import size_name
from likeset.families.binomial import Bernoulli, Binomial
from likeset.families.poisson import Poisson
from likeset.predictors import Mixture
from likeset.sequence import ConfidenceSequence
from likeset.study.definition import Batch, Definition
from likeset.study.factors import Levels
from likeset.voices.contrasts import Contrasts

ALONE = 500  # rows that are scored one by one
PART = 25  # of the rows before, this part is the next block
LONGEST = 100_000
_ADD_UP = (Bernoulli, Binomial, Poisson)  # the sum of two rows has the law of one with the sum of their sizes


def poolable(definition: Definition) -> bool:
    """Whether rows of a level can be scored as one."""
    one_factor = definition.formula is None and len(definition.factors) == 1
    return (
        one_factor
        and isinstance(definition.factors[0], Levels)
        and "offset" not in definition.roles
        and type(definition.family) in _ADD_UP
    )


def can_pool(definition: Definition, sequence: ConfidenceSequence) -> bool:
    """Whether pooling changes nothing about the guarantee."""
    voices = sequence.voices
    pairs = type(voices) is Contrasts and voices.minus is not None and voices.others is None
    return poolable(definition) and (voices is None or pairs) and type(sequence.predictor) is Mixture


def blocks(before: int, count: int) -> list[tuple[int, int]]:
    """Where blocks of ``count`` rows begin and end, with so many rows before them.

    >>> blocks(498, 4), blocks(1000, 100)
    ([(0, 1), (1, 2), (2, 4)], [(0, 40), (40, 81), (81, 100)])
    """
    found, start = [], 0
    while start < count:
        told = before + start
        length = 1 if told < ALONE else min(max(told // PART, 1), LONGEST)
        found.append((start, min(start + length, count)))
        start = found[-1][1]
    return found


def pooled(definition: Definition, batch: Batch, before: int) -> tuple[Batch, Array, list[int]]:
    """The batch with rows of one level in one block as one row, how many rows each of those stands for, and which of
    them begin a block.
    """
    size = size_name(definition.family)
    assert size is not None
    levels = batch.x.argmax(axis=1)
    sizes = batch.options.get(size, np.full(len(batch), float(getattr(definition.family, "trials", 1))))
    parts: list[tuple[Array, ...]] = []
    begins: list[int] = []
    singles = max(0, min(ALONE - before, len(batch)))
    if singles:
        alone = slice(0, singles)
        parts.append((levels[alone], batch.y[alone], sizes[alone], np.ones(singles)))
    made = singles
    for start, stop in blocks(before + singles, len(batch) - singles):
        block = slice(singles + start, singles + stop)
        seen, first = np.unique(levels[block], return_index=True)
        seen = seen[np.argsort(first)]  # in the order in which they came
        chosen = levels[block]
        sums = (np.bincount(chosen, weights=w, minlength=batch.x.shape[1]) for w in (batch.y[block], sizes[block]))
        y, units = (part[seen] for part in sums)
        parts.append((seen, y, units, np.bincount(chosen, minlength=batch.x.shape[1])[seen].astype(np.float64)))
        begins.append(made)
        made += len(seen)
    level, y, units, told = (np.concatenate(part) for part in zip(*parts, strict=True))
    options = {size: units} if size in batch.options or (told > 1).any() else {}
    return Batch(np.eye(batch.x.shape[1])[level.astype(np.intp)], y, {}, None, options), told, begins
