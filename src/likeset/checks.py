r"""The contract suite: what every family, predictor and weighting must satisfy, built-in or your own.

The central check needs no simulation. A ratio process is valid if, from *any* state and for *every* theta,

    growth(theta) = ∫ [ R_{t+1}(theta; y) / R_t(theta) ] p_theta(y | x) dy  <=  1.

:func:`one_step_growth` copies the sequence, feeds it every possible y (counts are enumerated, real numbers
integrated) and adds up. A forecast that has seen y, a weight on one side only and an unnormalised mixture all push it
above one.

>>> import likeset as ls
>>> check_predictor(ls.FTRL(penalty=0.5), ls.Bernoulli())      # silent when all is well
"""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from likeset._solver.problem import CompiledTerms
from likeset._typing import Array
from likeset.arguments import choice, one_row, real_array, rows
from likeset.embedded import NOTHING, Given
from likeset.errors import InvalidArgumentError, LikesetError, ShapeError
from likeset.evidence.intake import given_rows
from likeset.evidence.own_pieces import is_built_in
from likeset.families import FAMILIES
from likeset.families.answers import merged_sums
from likeset.families.base import Family, checked_family
from likeset.families.nuisance_family import NuisanceFamily
from likeset.families.shifted import law_of
from likeset.model_sequence import ModelSequence
from likeset.persistence.descriptions import describe
from likeset.persistence.files import load
from likeset.predictors import PREDICTORS, Forecaster, Predictor
from likeset.predictors.base import is_piece
from likeset.sequence import ConfidenceSequence
from likeset.spaces import Embedded, Linear
from likeset.spaces.base import checked_space
from likeset.weights import WEIGHTINGS

TOLERANCE = 1e-4  # allowed above 1: the quadrature does not know the kinks of a forecast; leaks show at 1e-2 and more
GIVEN = ("offset", "exposure", "trials", "entry")  # what may be known of a row besides x
_PROBES = np.array([[0.8, 0.1], [-0.3, 0.9], [0.8, 0.1], [0.5, 0.5], [0.2, -0.7], [-0.3, 0.9]])


class ContractError(LikesetError, AssertionError):
    """A piece broke the contract; the message says which part and by how much."""


def built_in_families() -> list[Family]:
    """One example of every family the package lists."""
    return [_example(cls) for cls in FAMILIES]


def built_in_predictors() -> list[Any]:
    """One example of every predictor the package lists."""
    return [_example(cls) for cls in PREDICTORS]


def built_in_weightings() -> list[Any]:
    """Examples of every weighting the package lists."""
    return [piece for cls in WEIGHTINGS for piece in (cls.examples() if hasattr(cls, "examples") else [_example(cls)])]


def one_step_growth(
    sequence: ConfidenceSequence, x: Any, theta: Any, nuisance: float | None = None, **given: Any
) -> float:
    """Expected factor by which R(theta) grows at x if theta is true; at most 1 for a valid construction.

    Where a number of the family is unknown, R(theta, nuisance) is looked at, for one value of it. ``given``: offset,
    exposure, trials or entry of the row (``update`` takes entries as the first of three numbers y).
    """
    covariate = _one_covariate(sequence, x)
    parameter = one_row("theta", theta, covariate.shape[1])[None, :]
    return float(_growths(sequence, covariate, parameter, nuisance, given)[0])


def check_growth(
    sequence: ConfidenceSequence, x: Any, thetas: Any, nuisance: float | None = None, **given: Any
) -> None:
    """Raise unless R(theta) is a supermartingale step at x for every row of ``thetas``; ``given`` as for ``update``."""
    covariate = _one_covariate(sequence, x)
    parameters = rows("thetas", thetas, covariate.shape[1])
    for theta, growth in zip(parameters, _growths(sequence, covariate, parameters, nuisance, given), strict=True):
        if not growth <= 1.0 + TOLERANCE:
            raise ContractError(
                f"one-step growth of R(theta) at x = {np.ravel(x)}, theta = {theta} is {growth:.6f} > 1 for "
                f"{sequence!r}: "
                "the numerator is not a normalised, predictable density or the weights differ between the two sides."
            )


def _growths(
    sequence: ConfidenceSequence, covariate: Array, thetas: Array, nuisance: Any, given: dict[str, Any]
) -> Array:
    """One-step growth for every row of ``thetas``: each outcome is tried once, for all of them."""
    family, value = one_law(sequence.family, nuisance)
    z, growth = thetas @ covariate[0], np.zeros(len(thetas))
    for name in given:
        choice("given", name, GIVEN)
    known = Given(*given_rows(sequence.family, 1, **given)[0].tolist())
    law = law_of(family, known) or family
    if not len(thetas):
        return growth
    reach = min(sequence.space.bound * float(np.linalg.norm(covariate)), 3.0)
    y, v = law.outcomes(np.array([min(z.min(), -reach), *z, max(z.max(), reach)]))
    before, ready = sequence.set.log_ratio(thetas, value), _ready(sequence, covariate[0], known)
    log_density = np.array([law.log_density(y, np.full(len(v), one)) for one in z]).T
    entry, rest = given.get("entry"), {name: value for name, value in given.items() if name != "entry"}
    for outcome, weight, log_p in zip(y, v, log_density, strict=True):
        possible = log_p > -700.0  # beyond, the outcome has no probability under theta, and the ratio no meaning
        if possible.any():
            after = copy.deepcopy(ready)
            row = outcome[None] if entry is None else np.concatenate([[entry], outcome])[None]
            after.update(covariate, row, **rest)
            steps = np.where(possible, log_p + after.set.log_ratio(thetas, value) - before, -np.inf)
            growth += weight * np.exp(steps)
    return growth


def model_growth(sequence: ModelSequence, x: Any, theta: Any, outcomes: Any, volumes: Any = None) -> float:
    """The same for any model: expected growth of R(theta) at x if theta is true, over all ``outcomes``.

    ``outcomes`` are all possible y, or the nodes of a quadrature rule with the weights ``volumes``.

    >>> import likeset as ls
    >>> coin = ls.ModelSequence(lambda y, x, p: np.log(p[:, 0] if y else 1 - p[:, 0]), np.array([[0.3], [0.6]]))
    >>> coin.update(None, 1)
    >>> round(model_growth(coin, None, [0.45], [0, 1]), 6)
    1.0
    """
    if not isinstance(sequence, ModelSequence):
        raise InvalidArgumentError("sequence", sequence, "is not a ModelSequence", "pass the sequence to check")
    if not isinstance(outcomes, (list, tuple, np.ndarray)) or not len(outcomes):
        raise InvalidArgumentError("outcomes", outcomes, "is no list of outcomes", "pass all possible y")
    weights = np.ones(len(outcomes)) if volumes is None else real_array("volumes", volumes)
    if weights.shape != (len(outcomes),):
        raise ShapeError("volumes", volumes, f"has shape {weights.shape}", "pass one weight per outcome")
    before, growth = sequence.log_ratio(theta), 0.0
    if np.ndim(before) != 0:
        raise ShapeError("theta", theta, "is more than one parameter", "pass one")
    for y, weight in zip(outcomes, weights, strict=True):
        after = copy.deepcopy(sequence)
        after.update(x, y)
        # log R goes up by log q - log p, so p times the growth of R is q: where p is zero there is nothing to add.
        step = after.log_numerator - sequence.log_numerator
        log_p = step - (after.log_ratio(theta) - before)
        growth += float(weight) * float(np.exp(log_p + after.log_ratio(theta) - before)) if log_p > -700.0 else 0.0
    return growth


def check_family(family: Family, z_values: Any = (-1.5, -0.3, 0.0, 0.7, 1.6)) -> None:
    """Raise unless densities are normalised, derivatives are right, and mean, samples and flags agree."""
    rng = np.random.default_rng(0)
    checked_family(family)
    for z in np.ravel(real_array("z_values", z_values)):
        y, v = family.outcomes(np.array([z]))
        mass = float(np.sum(v * np.exp(family.log_density(y, np.full(len(v), z)))))
        _require(abs(mass - 1.0) < 1e-6, family, f"density at z = {z:g} integrates to {mass:.8f}, not 1")

        draws = family.sample(np.full(4000, z), rng)
        canonical = family.observations(draws)
        _require(canonical.shape == (4000, *family.observation_shape), family, "samples have the wrong shape")
        numbers = canonical[:, 0] if family.observation_shape else canonical
        spread = 6 * numbers.std() / np.sqrt(len(numbers)) + 1e-9
        _require(
            abs(numbers.mean() - float(family.mean(np.asarray(z)))) < spread,
            family,
            f"mean({z:g}) disagrees with the mean of samples",
        )
        _check_derivatives(family, canonical[:20], z)
    mu, L = family.curvature_bounds(1.5)
    _require(0 <= mu <= L and L > 0, family, f"curvature bounds ({mu}, {L}) are not 0 <= mu <= L")
    for bad in (np.nan, np.inf, "a", None):
        try:
            family.observations(bad)
        except LikesetError:
            continue
        _require(False, family, f"observations({bad!r}) was accepted")


def check_predictor(predictor: Any, family: Family, weighting: Any = None) -> None:
    """Raise unless a sequence with this predictor is predictable, normalised, valid and can be saved."""
    sequence = _exercised(predictor, family, weighting)
    x = np.array([0.6, -0.4])
    check_predictability(sequence, x)
    check_growth(sequence, x, [[0.3, 0.2], [-0.9, 0.8]])
    check_round_trip(sequence)


def check_weighting(weighting: Any, family: Family) -> None:
    """Raise unless weights are in [0, 1], do not depend on the y they weigh, and the ratio stays valid."""
    check_predictor(None, family, weighting)


def check_predictability(sequence: ConfidenceSequence, x: Any) -> None:
    """Raise unless weight and forecast at x are the same whatever y comes, and the forecast is a density."""
    covariate = _one_covariate(sequence, x)
    phi = _embedded(sequence, covariate[0])
    forecast = copy.deepcopy(sequence)._running.forecaster.forecast(phi)
    y, v = one_law(sequence.family, None)[0].outcomes(np.linspace(-3.0, 3.0, 5))
    mass = float(np.sum(v * np.exp(forecast.log_density(y))))
    _require(mass <= 1.0 + TOLERANCE, sequence, f"the forecast at x = {x} integrates to {mass:.6f} > 1")
    weights, changes = set(), []
    for outcome in y[:: max(1, len(y) // 5)]:
        after = copy.deepcopy(sequence)
        after.update(covariate, outcome[None])
        weights.add(float(after.ledger.weights.rows[-1]))
        changes.append(float(after.ledger.log_q.rows[-1]) - float(forecast.log_density(outcome)))
    _require(len(weights) == 1, sequence, f"the weight at x = {x} depends on y: {sorted(weights)}")
    # A density that is not ours may be charged for the error of its integral: a little less, never more.
    within = all(-TOLERANCE < change < 1e-9 for change in changes)
    _require(within, sequence, f"the forecast at x = {x} changed once y was known: log q by {changes}")


def check_round_trip(sequence: ConfidenceSequence) -> None:
    """Raise unless a saved and loaded copy continues bit for bit; pieces of the user's own are passed again, fresh."""
    _checked_sequence(sequence)
    roles = ("family", "space", "predictor", "weighting")
    own = {role: copy.deepcopy(getattr(sequence, role)) for role in roles if "own" in describe(getattr(sequence, role))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sequence.likeset"
        sequence.save(path)
        loaded = load(path, **own)
    original = copy.deepcopy(sequence)
    rng = np.random.default_rng(1)
    for _ in range(3):
        x = rng.normal(size=original.space.covariate_shape)
        y = one_law(original.family, None)[0].sample(np.array([0.1]), rng)
        original.update(x, y)
        loaded.update(x, y)
    for name in ("log_q", "weights", "y", "x"):
        same = np.array_equal(getattr(original.ledger, name).rows, getattr(loaded.ledger, name).rows)
        _require(same, sequence, f"{name} differs between the original and its loaded copy")
    if original.family.convex and not original.set.is_empty:
        same = np.array_equal(original.set.upper(_PROBES), loaded.set.upper(_PROBES))
        _require(same, sequence, "upper bounds differ between the original and its loaded copy")


def applicable(predictor: Any, family: Family, space: Any = None) -> bool:
    """Whether a predictor can be used with a family (VAW needs a log-partition function)."""
    checked_family(family)
    where = Linear(dim=2, bound=1.5) if space is None else checked_space(space)
    if not is_piece(predictor, Predictor, Forecaster):
        raise InvalidArgumentError("predictor", predictor, "is not a predictor", "pass e.g. FTRL()")
    try:
        if isinstance(predictor, Predictor):
            predictor.start(family, where)
    except InvalidArgumentError:
        return False
    return True


def one_law(family: Family, nuisance: Any) -> tuple[Family, float | None]:
    """The law of y given z, and the value of the unknown number that it has: ``nuisance``, or any, if there is one."""
    if not isinstance(family, NuisanceFamily):
        if nuisance is not None:
            raise InvalidArgumentError(
                "nuisance", nuisance, f"is no number of {family!r}, in which nothing is unknown", "leave it out"
            )
        return family, None
    value = family.typical if nuisance is None else family.unknown.checked("nuisance", nuisance)
    return family.known(value), value


def _checked_sequence(sequence: Any) -> ConfidenceSequence:
    if not isinstance(sequence, ConfidenceSequence):
        raise InvalidArgumentError("sequence", sequence, "is not a ConfidenceSequence", "pass the sequence to check")
    return sequence


def _one_covariate(sequence: Any, x: Any) -> Array:
    covariate = _checked_sequence(sequence).space.covariates(x)
    if len(covariate) != 1:
        raise ShapeError("x", x, f"has {len(covariate)} rows", "pass one covariate")
    return covariate


def _example(cls: Any) -> Any:
    return cls.example() if hasattr(cls, "example") else cls()


def _exercised(predictor: Any, family: Family, weighting: Any) -> ConfidenceSequence:
    sequence = ConfidenceSequence(family, Linear(dim=2, bound=1.5), 0.1, predictor, weighting)
    rng = np.random.default_rng(7)
    for x in _PROBES:
        sequence.update(x, one_law(family, None)[0].sample(np.array([x @ [0.5, -0.4]]), rng))
    return sequence


def _embedded(sequence: ConfidenceSequence, x: Array, given: Given = NOTHING) -> Embedded:
    return sequence._running.ledger.embed(sequence._running.basis, x, given)[1]


def _ready(sequence: ConfidenceSequence, x: Array, given: Given) -> ConfidenceSequence:
    """A copy whose built-in forecaster is fitted to what was seen: once, and not again for every outcome at x.

    What is not the library's own is left alone: asking it once more may be what it answers differently to.
    """
    ready = copy.deepcopy(sequence)
    if is_built_in(ready.predictor):
        ready._running.forecaster.forecast(_embedded(ready, x, given))
    return ready


def _check_derivatives(family: Family, y: Array, z: float) -> None:
    h = 1e-5
    grid = np.full(len(y), z)
    first, second = family.derivatives(y, grid)
    above, below = family.log_density(y, grid + h), family.log_density(y, grid - h)
    numeric = (above - below) / (2 * h)
    kink = np.abs(numeric - first) > 1e-5 * (1 + np.abs(first))
    if isinstance(merged_sums(family).terms(0), CompiledTerms):  # solved by kernels that rely on both derivatives
        slopes = [family.derivatives(y, grid + s)[0] for s in (h, -h)]
        curvature = (slopes[0] - slopes[1]) / (2 * h)
        _require(not kink.any(), family, f"first derivative at z = {z:g} is off by {np.abs(numeric - first).max():.2g}")
        wrong = np.abs(curvature - second) > 1e-5 * (1 + np.abs(second))
        _require(
            not wrong.any(), family, f"second derivative at z = {z:g} is off by {np.abs(curvature - second).max():.2g}"
        )
    _require(kink.mean() <= 0.05, family, f"first derivative at z = {z:g} does not match differences")
    if family.convex:
        _require(
            bool((second <= 1e-9).all()), family, f"declared convex, but curvature at z = {z:g} has the wrong sign"
        )


def _require(condition: bool, piece: object, problem: str) -> None:
    if not condition:
        raise ContractError(f"{piece!r}: {problem}.")
