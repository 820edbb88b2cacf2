"""Intake: rows as the user gives them, checked and in canonical form, before anything else happens."""

from __future__ import annotations

from typing import Any

import numpy as np

from likeset._typing import Array
from likeset.arguments import has_shape, real_array
from likeset.embedded import NOTHING
from likeset.errors import InvalidArgumentError, ShapeError
from likeset.families.answers import has_entries, largest_offset, size_name
from likeset.families.base import Family, refuse
from likeset.spaces.base import Space

MOST_TRIALS = 10**6  # of one row; checks of forecasts enumerate the outcomes
_SIZES = {"exposure": "counts with a log link, such as Poisson", "trials": "Bernoulli and Binomial"}


def checked_rows(
    family: Family, space: Space, x: Any, y: Any, offset: Any = None, exposure: Any = None, trials: Any = None
) -> tuple[Array, Array, Array]:
    """Covariates, observations and what else is given (offset, size, entry), one row each; a typed error if not."""
    X = space.covariates(x)
    entry = None
    if has_entries(family):
        entry, y = _split_entries(y, len(X))
    nothing = offset is None and exposure is None and trials is None and entry is None
    given = given_rows(family, len(X), offset, exposure, trials, entry)
    if family.observation_shape and len(X) == 1 and has_shape(y, family.observation_shape):
        y = [y]  # one pair for one covariate, not two times
    Y = family.observations(y) if nothing else observations(family, y, given)
    if len(X) != len(Y):
        raise ShapeError(
            "y",
            y,
            f"has {len(Y)} observations for {len(X)} covariates",
            "pass one observation for each row of x",
        )
    return X, Y, given


def given_rows(
    family: Family, count: int, offset: Any = None, exposure: Any = None, trials: Any = None, entry: Any = None
) -> Array:
    """Offset, size and entry of so many rows, as :class:`~likeset.embedded.Given` has them."""
    given = np.empty((count, len(NOTHING)))
    given[:] = NOTHING
    if offset is None and exposure is None and trials is None and entry is None:
        return given
    if entry is not None:
        given[:, 2] = entry if isinstance(entry, np.ndarray) else _per_row("entry", entry, count)
    if offset is not None:
        given[:, 0] = _per_row("offset", offset, count)
    for name, value in (("exposure", exposure), ("trials", trials)):
        if value is not None:
            if size_name(family) != name:
                raise InvalidArgumentError(
                    name, value, f"means nothing for {family!r}", f"it is for {_SIZES[name]}; leave it out"
                )
            given[:, 1] = _per_row(name, value, count)
    check_given(family, given)
    return given


def observations(family: Family, y: Any, given: Array) -> Array:
    """y in canonical form; of a family whose rows may have trials of their own, against these."""
    sizes, entries = given[:, 1], given[:, 2]
    if (entries > NOTHING.entry).any():
        Y = family.observations(y)
        if len(Y) == len(entries):
            refuse(Y, Y[:, 0] <= entries, "is not after its entry", "pass (entry, exit, event) with exit > entry")
        return Y
    if size_name(family) == "trials" and sizes.any():
        return family._observations_of(y, sizes)  # type: ignore[attr-defined, no-any-return]
    return family.observations(y)


def check_given(family: Family, given: Array) -> None:
    """Refuse offsets, exposures and trials that no law can be made of."""
    offsets, sizes, entries = given.T
    if not (given != NOTHING).any():
        return
    name, most = size_name(family) or "size", largest_offset(family)
    _refuse("offset", offsets, ~np.isfinite(offsets), "is not finite", "pass a finite number")
    if has_entries(family):
        bad = ~((entries < np.inf) & np.isfinite(family._entry_power(entries)))  # type: ignore[attr-defined]
        _refuse(
            "entry", entries, bad, "is not a time", "pass times from 0 on, in a unit in which they are of order one"
        )
    else:
        _refuse("entry", entries, entries != NOTHING.entry, f"means nothing for {family!r}", "leave it out")
    if name == "trials":
        whole = (sizes >= 0) & (sizes == np.floor(sizes)) & (sizes <= MOST_TRIALS)
        _refuse(name, sizes, ~whole, f"is no whole number up to {MOST_TRIALS:,}", "split the row into several")
        shifts = offsets
    elif name == "exposure":
        _refuse(name, sizes, ~(sizes >= 0), "is not positive", "pass exposures > 0")
        logs = np.log(np.where(sizes > 0, sizes, 1.0))
        _refuse(name, sizes, ~(np.abs(logs) <= most), "is out of range", "use another unit of exposure")
        shifts = offsets + logs
    else:
        _refuse(name, sizes, sizes != 0, f"means nothing for {family!r}", "leave it out")
        shifts = offsets
    if not most:
        _refuse("offset", offsets, offsets != 0, f"cannot be taken by {family!r}", "leave it out")
    far = ~(np.abs(shifts) <= most)
    _refuse("offset", offsets, far, f"is beyond {most:g}", "use units in which offsets are of order one")


def _split_entries(y: Any, count: int) -> tuple[Array | None, Any]:
    """(entry, exit, event) triples as entries and pairs; what is no array of triples stays as it is."""
    if count == 1 and has_shape(y, (3,)):
        y = [y]
    if not has_shape(y, (count, 3)):
        return None, y
    raw = np.asarray(y)
    if raw.dtype.kind not in "biuf":
        raw = real_array("y", y)
    alive = np.isneginf(raw[:, 0])  # for a logarithm: watched from the beginning
    triples = real_array("y", np.where(alive[:, None] & (np.arange(3) == 0), 0.0, raw))
    return np.where(alive, NOTHING.entry, triples[:, 0]), triples[:, 1:]


def _per_row(name: str, value: Any, count: int) -> Array:
    array = real_array(name, value)
    if array.shape not in ((), (count,), (count, 1)):
        raise ShapeError(
            name, value, f"has shape {array.shape}", f"pass one number, or one for each of the {count} rows of x"
        )
    array = np.broadcast_to(array.ravel() if array.ndim else array, (count,))
    if name in _SIZES:
        _refuse(name, array, array <= 0, "is not positive", f"pass {name} > 0")
    return array


def _refuse(name: str, values: Array, bad: Any, problem: str, remedy: str) -> None:
    if np.any(bad):
        index = int(np.argmax(bad))
        raise InvalidArgumentError(f"{name}[{index}]", float(values[index]), problem, remedy)
