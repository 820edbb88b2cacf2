"""Evidence where outcomes are large: log R and bands against arithmetic with 60 digits, through the public API."""

import math
from decimal import Decimal, getcontext, localcontext
from functools import cache

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import likeset as ls

DIGITS = 60
FAR = 1e6  # mean over noise


def exact(x) -> Decimal:
    return Decimal(float(x))


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


@cache
def log_scale(sigma: Decimal, precision: int) -> Decimal:
    return sigma.ln() + (2 * PI).ln() / 2


def log_normal(y: Decimal, z: Decimal, sigma: Decimal) -> Decimal:
    return -(((y - z) / sigma) ** 2) / 2 - log_scale(sigma, getcontext().prec)


def log_factorial(n: int) -> Decimal:
    """Stirling's series, far beyond sixty digits from n = 1e6 on."""
    x = Decimal(n)
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7) + 1 / (1188 * x**9)
    return x * x.ln() - x + (2 * PI * x).ln() / 2 + series


def log_poisson(y: Decimal, z: Decimal) -> Decimal:
    return y * z - z.exp() - log_factorial(int(y))


def row_evidence(sequence, theta, log_density) -> list[Decimal]:
    """w (log q - log p_theta) of every row, from the recorded log q."""
    ledger, parts = sequence.ledger, []
    theta = [exact(t) for t in theta]
    for x, y, w, log_q in zip(
        ledger.x.rows, ledger.y.rows, ledger.weights.rows, ledger.log_q.rows, strict=True
    ):  # fmt: skip
        z = sum(exact(a) * b for a, b in zip(x, theta, strict=True))
        parts.append(exact(w) * (exact(log_q) - log_density(exact(y), z)))
    return parts


def exact_log_ratio(sequence, theta) -> float:
    """log R in sixty digits; with windows the log of the average of their ratios."""
    with localcontext() as context:
        context.prec = DIGITS
        if isinstance(sequence.family, ls.Poisson):
            log_density = log_poisson
        else:
            sigma = exact(sequence.family.sigma)

            def log_density(y, z):
                return log_normal(y, z, sigma)

        parts = row_evidence(sequence, theta, log_density)
        if sequence.windows is None:
            return float(sum(parts))
        covariate = sequence.ledger.covariate.rows
        membership = sequence._running.membership
        total = Decimal(0)
        for mask, log_share in zip(membership.masks, membership.log_shares, strict=True):
            inside = [p for p, k in zip(parts, covariate, strict=True) if mask[int(k)]]
            total += exact(log_share).exp() * sum(inside, Decimal(0)).exp()
        return float(total.ln())


class Weights:
    """Any weights that do not depend on y."""

    def weight(self, phi):
        return 0.25 + 0.5 * abs(math.sin(phi.x[0]))

    def observe(self, phi, y):
        pass


def covariates(dim, many, n, rng):
    pool = rng.normal(size=(n if many else 1, dim)) if dim > 1 else rng.uniform(0.5, 2.0, (n if many else 1, 1))
    return pool[np.arange(n) % len(pool)]


def far_away(dim, many, seed, n=60, windows=None, sigma=0.3, weighting=None, reverse=False, bound=1e8):
    rng = np.random.default_rng(seed)
    X = covariates(dim, many, n, rng)
    truth = FAR * sigma * np.ones(dim)
    y = X @ truth + sigma * rng.normal(size=n)
    if reverse:
        X, y = X[::-1], y[::-1]
    table = ls.Windows(X[:4], 0.4, joint_share=0.3) if windows else None
    sequence = ls.ConfidenceSequence(
        ls.Gaussian(sigma), ls.Linear(dim, bound), 0.1, weighting=weighting, windows=table
    )  # fmt: skip
    sequence.update(X, y)
    return sequence, truth, X, y


@pytest.mark.parametrize("windows", [False, True], ids=["joint", "windows"])
@pytest.mark.parametrize("many", [False, True], ids=["one covariate", "many covariates"])
@pytest.mark.parametrize("dim", [1, 3])
def test_log_ratio_far_from_zero(dim, many, windows):
    for seed, weighting, reverse in [(0, None, False), (1, None, True), (2, Weights(), False), (3, Weights(), True)]:
        sequence, truth, _, _ = far_away(dim, many, seed, windows=windows, weighting=weighting, reverse=reverse)
        for theta in (truth, truth * (1 + 0.3 / FAR), truth + np.linspace(0.1, -0.2, dim)):
            assert sequence.set.log_ratio(theta) == pytest.approx(exact_log_ratio(sequence, theta), abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_truth_is_kept_or_refuted_by_what_happened_and_not_by_rounding(seed):
    # At every time and for every run: the library's log R of the truth is the exact one, and so is its verdict.
    rng = np.random.default_rng(seed)
    family, x = ls.Gaussian(1.0), np.array([[1.0]])
    sequence = ls.ConfidenceSequence(family, ls.Linear(1, 1e7), 0.05, windows=None)
    for t in range(400):
        sequence.update(x, FAR + rng.normal())
        if t % 80 == 79:
            log_ratio = exact_log_ratio(sequence, [FAR])
            assert sequence.set.log_ratio([FAR]) == pytest.approx(log_ratio, abs=1e-6)
            assert sequence.set.contains([FAR]) == (log_ratio <= math.log(20))


def ellipsoid_interval(sequence, X, y, direction):
    """The exact interval of direction'theta over { log R <= log 1/alpha } where the ball does not matter."""
    with localcontext() as context:
        context.prec = DIGITS
        sigma, dim = exact(sequence.family.sigma), X.shape[1]
        rows = [[exact(v) for v in x] for x in X]
        outcomes = [exact(v) for v in y]
        H = [[sum(x[i] * x[j] for x in rows) for j in range(dim)] for i in range(dim)]
        b = [sum(x[i] * v for x, v in zip(rows, outcomes, strict=True)) for i in range(dim)]
        a = [exact(v) for v in direction]
        centre, solved = solve(H, b), solve(H, a)
        parts = row_evidence(sequence, [float(c) for c in centre], lambda y, z: log_normal(y, z, sigma))
        # Rounding of the centre to doubles is harmless: the minimum is flat.
        room = exact(1 / sequence.alpha).ln() - sum(parts)
        middle = sum(p * q for p, q in zip(a, centre, strict=True))
        half = (2 * room * sum(p * q for p, q in zip(a, solved, strict=True))).sqrt() * sigma
        return float(middle - half), float(middle + half)


def solve(H, b):
    """Gaussian elimination in the precision of the context."""
    d = len(b)
    M = [[*H[i], b[i]] for i in range(d)]
    for i in range(d):
        for k in range(i + 1, d):
            factor = M[k][i] / M[i][i]
            M[k] = [p - factor * q for p, q in zip(M[k], M[i], strict=True)]
    x = [Decimal(0)] * d
    for i in reversed(range(d)):
        x[i] = (M[i][d] - sum(M[i][j] * x[j] for j in range(i + 1, d))) / M[i][i]
    return x


@pytest.mark.parametrize(("dim", "many"), [(1, False), (1, True), (3, True)])
def test_bands_far_from_zero_are_as_wide_as_the_evidence_says(dim, many):
    for seed in range(4):
        sequence, _, X, y = far_away(dim, many, seed, n=200)
        for direction in np.eye(dim):
            low, high = (float(v[0]) for v in sequence.set.interval(direction[None]))
            exact_low, exact_high = ellipsoid_interval(sequence, X, y, direction)
            assert low <= exact_low and exact_high <= high  # outer
            assert high - low <= 1.01 * (exact_high - exact_low)


def test_correlated_covariates_far_from_zero():
    # The weakest curvature is a millionth of the strongest: the centre has to be solved for with care.
    rng = np.random.default_rng(5)
    X = np.array([1.0, 1.0]) + 1e-3 * rng.normal(size=(100, 2))
    y = X @ [FAR, FAR] + rng.normal(size=100)
    sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, 1e9), 0.1, windows=None)
    sequence.update(X, y)
    for direction in (np.array([1.0, 1.0]), np.array([1.0, -1.0])):
        low, high = (float(v[0]) for v in sequence.set.interval(direction[None]))
        exact_low, exact_high = ellipsoid_interval(sequence, X, y, direction)
        assert low <= exact_low and exact_high <= high
        assert high - low <= 1.01 * (exact_high - exact_low)


def window_bands(shift, seed):
    """Bands around the shift of y = shift + noise at four covariates, two windows, numerator fixed at the shift.

    Everything is a function of y - shift and theta - shift, but for the ball, which is far away.
    """
    rng = np.random.default_rng(seed)
    X = np.eye(4)[np.arange(80) % 4]
    noise = np.round(rng.normal(size=80) * 2.0**20) / 2.0**20  # shift + noise is exact
    masks = [[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]]
    sequence = ls.ConfidenceSequence(
        ls.Gaussian(1.0), ls.Linear(4, 1e9), 0.1, predictor=ls.Fixed(np.full(4, shift + 0.5)),
        windows=ls.Windows.from_masks(np.eye(4), masks),
    )  # fmt: skip
    sequence.update(X, shift + noise)
    low, high = sequence.set.interval(np.eye(4))
    return low - shift, high - shift


@pytest.mark.parametrize("seed", range(3))
def test_window_bands_move_with_the_data(seed):
    low, high = window_bands(0.0, seed)
    far_low, far_high = window_bands(2.0**20, seed)
    np.testing.assert_allclose(far_low, low, rtol=0, atol=1e-5)
    np.testing.assert_allclose(far_high, high, rtol=0, atol=1e-5)
    assert np.all(far_high - far_low <= 1.01 * (high - low))


def test_order_of_rows_does_not_matter():
    # One fixed numerator, so that log R is the same number in any order.
    rng = np.random.default_rng(7)
    X, noise = rng.normal(size=(90, 3)), rng.normal(size=90)
    theta = np.full(3, FAR)
    answers = []
    for order in (np.arange(90), np.arange(90)[::-1], rng.permutation(90)):
        sequence = ls.ConfidenceSequence(
            ls.Gaussian(1.0), ls.Linear(3, 1e8), predictor=ls.Fixed(theta + 0.2), windows=None
        )
        sequence.update(X[order], (X @ theta + noise)[order])
        answers.append((sequence.set.log_ratio(theta), *sequence.set.upper(np.eye(3)) - FAR))
    np.testing.assert_allclose(answers[1], answers[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(answers[2], answers[0], rtol=0, atol=1e-6)


def test_a_saved_sequence_continues(tmp_path):
    sequence, truth, X, y = far_away(3, True, 11, n=40)
    sequence.save(tmp_path / "a")
    loaded = ls.load(tmp_path / "a")
    for s in (sequence, loaded):
        s.update(X[::-1], y[::-1])
    assert loaded.set.log_ratio(truth) == sequence.set.log_ratio(truth)
    assert loaded.set.log_ratio(truth) == pytest.approx(exact_log_ratio(sequence, truth), abs=1e-6)
    np.testing.assert_array_equal(loaded.set.upper(X[:5]), sequence.set.upper(X[:5]))


@pytest.mark.parametrize("mean", [0.0, FAR])
def test_many_rows_at_one_covariate(mean):
    # Sums added plainly drift by their number times eps: here by 1e-12 of themselves and more.
    rng = np.random.default_rng(2)
    n = 20_000
    sequence = ls.ConfidenceSequence(
        ls.Gaussian(0.7), ls.Linear(1, 1e7), predictor=ls.Fixed([mean + 0.3]), weighting=Weights(), windows=None
    )
    sequence.update(np.ones((n, 1)), mean + 0.7 * rng.normal(size=n))
    assert sequence.set.log_ratio([mean + 2.5]) == pytest.approx(exact_log_ratio(sequence, [mean + 2.5]), rel=1e-14)


def test_large_counts():
    rng = np.random.default_rng(3)
    rate = math.log(1e9)
    X = rng.uniform(0.9, 1.1, size=(4, 1))[np.arange(40) % 4]
    y = rng.poisson(np.exp(X[:, 0] * rate)).astype(float)
    for predictor in (ls.Fixed([rate + 2e-5]), None):
        sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(1, 40.0), 0.1, predictor, windows=None)
        sequence.update(X, y)
        for theta in (rate, rate + 3e-6, rate - 1e-5):
            assert sequence.set.log_ratio([theta]) == pytest.approx(exact_log_ratio(sequence, [theta]), abs=1e-6)
        # The numerator itself, where it is the family's own density.
        if predictor is not None:
            with localcontext() as context:
                context.prec = DIGITS
                for x, v, log_q in zip(X[:, 0], y, sequence.ledger.log_q.rows, strict=True):
                    z = exact(float(x * (rate + 2e-5)))
                    assert log_q == pytest.approx(float(log_poisson(exact(v), z)), abs=1e-6)


# -- Successes and failures at enormous z -----------------------------------------------------------------------------


def exact_binomial_log_ratio(sequence, theta) -> float:
    with localcontext() as context:
        context.prec = DIGITS
        total, n = Decimal(0), sequence.family.trials
        for x, y, log_q in zip(
            sequence.ledger.x.rows, sequence.ledger.y.rows, sequence.ledger.log_q.rows, strict=True
        ):  # fmt: skip
            z = sum(exact(a) * exact(b) for a, b in zip(x, theta, strict=True))
            softplus = max(z, Decimal(0)) + (1 + (-abs(z)).exp()).ln()
            total += exact(log_q) - (exact(y) * z - n * softplus + Decimal(math.comb(n, int(y))).ln())
        return float(total)


@pytest.mark.parametrize("bound", [1e15, 1e17, 1e18, 1e20])
@pytest.mark.parametrize("family", [ls.Binomial(3), ls.Bernoulli()], ids=repr)
def test_members_at_enormous_bounds_are_kept(family, bound):
    n = family.trials
    cases = {
        (1.0,): [n], (0.7, 0.7): [n, n], (1.0, 0.3): [n, n], (1.0, 1.1): [0, 0], (1.0, 1.0, 1.0): [n, 0, n],
    }  # fmt: skip
    for x, y in cases.items():
        sequence = ls.ConfidenceSequence(family, ls.Linear(1, bound), 0.05, windows=None)
        sequence.update(np.array(x)[:, None], y)
        low, high = (float(v[0]) for v in sequence.set.interval([[1.0]]))
        for share in (1.0, 0.9, 0.2, 1e-3, 1e-9, 1e-16, 0.0):
            for theta in (share * bound, -share * bound):
                log_ratio = exact_binomial_log_ratio(sequence, [theta])
                assert sequence.set.log_ratio([theta]) == pytest.approx(log_ratio, rel=1e-12, abs=1e-9)
                if log_ratio <= math.log(20):
                    assert sequence.set.contains([theta])
                    assert low <= theta <= high
                elif log_ratio > 4:
                    assert not sequence.set.contains([theta])


def test_members_at_enormous_bounds_in_three_dimensions():
    # All trials succeed along the first axis, all fail along the second; nothing is known of the third.
    family = ls.Binomial(3)
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, 1e18), 0.05, windows=None)
    sequence.update(np.eye(3)[[0, 1, 0]] + 0.1 * np.eye(3)[[1, 1, 2]], [3, 0, 3])
    for theta in 0.99e18 * np.array([[1, 0, 0], [0.7, -0.7, 0], [0.6, -0.6, 0.5], [0.5, -0.1, -0.8]]):
        inside = exact_binomial_log_ratio(sequence, theta) <= math.log(20)
        assert sequence.set.contains(theta) == inside
        if inside:
            for direction in (*np.eye(3), theta / 1e18):
                assert sequence.set.upper(direction[None])[0] >= direction @ theta


# -- Outcomes that were forecast with density zero ------------------------------------------------------------------


class Certain:
    """Half of the probability on each of y = 0 and y = 1: other counts were ruled out."""

    def log_density(self, y):
        with np.errstate(divide="ignore"):
            return np.log(np.where(np.asarray(y) <= 1, 0.5, 0.0))


class CertainForecaster:
    def forecast(self, phi):
        return Certain()

    def observe(self, phi, y):
        pass


class Removes:
    """Weight zero for covariates with a second coordinate."""

    def weight(self, phi):
        return 0.0 if phi.x[1] else 1.0

    def observe(self, phi, y):
        pass


IMPOSSIBLE = [900.0, 0.0]  # e^900 counts expected: p(y) = 0 in double precision, whatever y


def test_a_forecast_of_density_zero_is_evidence_against_nothing():
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1e4), predictor=CertainForecaster(), windows=None)
    sequence.update([[1.0, 0.0], [1.0, 1.0]], [1, 0])
    assert sequence.set.log_ratio(IMPOSSIBLE) == np.inf and not sequence.set.contains(IMPOSSIBLE)
    sequence.update([1.0, 0.0], 7)
    for theta in ([0.5, 0.1], IMPOSSIBLE, [0.0, 900.0]):
        assert sequence.set.log_ratio(theta) == -np.inf
        assert sequence.set.contains(theta)
    assert np.array_equal(sequence.set.log_ratio([[0.5, 0.1], IMPOSSIBLE]), [-np.inf, -np.inf])
    assert sequence.set.upper([[1.0, 0.0]])[0] >= 1e4
    parts = sequence.set.log_ratio_by_covariate(IMPOSSIBLE)[0]
    assert parts[0] == -np.inf and parts[1] == np.inf


def test_a_forecast_of_density_zero_silences_the_windows_that_hold_it():
    arms = np.array([[1.0, 0.0], [0.0, 1.0]])
    sequence = ls.ConfidenceSequence(
        ls.Poisson(), ls.Linear(2, 1e4), predictor=CertainForecaster(),
        windows=ls.Windows.from_masks(arms, np.eye(2)),
    )  # fmt: skip
    sequence.update(arms, [7, 1])
    other = math.log(0.5) - float(ls.Poisson().log_density(np.array(1.0), np.array(0.3)))
    nobody = math.log(1 / 3)  # the window of covariates outside has seen nothing: its ratio is one
    for theta in ([0.2, 0.3], [900.0, 0.3]):  # the second is impossible, but only where the window is silent
        expected = np.logaddexp(math.log(1 / 3) + other, nobody)
        assert sequence.set.log_ratio(theta) == pytest.approx(expected, abs=1e-12)
        assert sequence.set.contains(theta)
    assert sequence.set.log_ratio([0.2, 900.0]) == np.inf and not sequence.set.contains([0.2, 900.0])


def test_a_weight_of_zero_removes_an_outcome_of_density_zero():
    sequence = ls.ConfidenceSequence(
        ls.Poisson(), ls.Linear(2, 1e4), predictor=CertainForecaster(), weighting=Removes(), windows=None
    )
    sequence.update([[1.0, 0.0], [1.0, 1.0]], [1, 9])
    expected = math.log(0.5) - float(ls.Poisson().log_density(np.array(1.0), np.array(0.3)))
    assert sequence.set.log_ratio([0.3, 0.1]) == pytest.approx(expected, abs=1e-12)
    assert sequence.set.log_ratio([0.3, 5.0]) == pytest.approx(expected, abs=1e-12)
    assert sequence.set.log_ratio([900.0, 0.0]) == np.inf


# -- A fixed numerator in a function space --------------------------------------------------------------------------


def test_fixed_values_on_a_domain_are_looked_up():
    space = ls.RKHS(RBF(0.3), 3.0, domain=np.linspace(0, 1, 5))
    values = np.array([0.1, -0.4, 0.3, 0.9, -0.2])
    family = ls.Gaussian(0.5)
    given = ls.ConfidenceSequence(family, space, predictor=ls.Fixed(values))
    points, y = space.domain[[3, 0, 3, 1]], np.array([0.8, 0.0, 1.1, -0.3])
    given.update(points, y)
    expected = family.log_density(y, values[[3, 0, 3, 1]])
    np.testing.assert_allclose(given.ledger.log_q.rows, expected, rtol=1e-14)


def test_fixed_values_on_a_domain_of_one_point_or_two_inputs():
    two = ls.RKHS(RBF(0.3), 3.0, domain=[[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), two, predictor=ls.Aggregate(ls.Fixed([0.3, 0.1, -0.2])))
    sequence.update([0.0, 1.0], 0.1)
    assert sequence.ledger.log_q.rows[0] == pytest.approx(-math.log(0.5 * math.sqrt(2 * math.pi)), rel=1e-12)
    one = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.RKHS(RBF(0.3), 3.0, domain=[2.0]), predictor=ls.Fixed([0.7]))
    one.update(2.0, 0.7)  # 0.7 is the value there, not a slope
    assert one.ledger.log_q.rows[0] == pytest.approx(-math.log(0.5 * math.sqrt(2 * math.pi)), rel=1e-12)


def test_fixed_values_need_a_domain_of_their_length(tmp_path):
    nowhere = ls.RKHS(RBF(0.3), 3.0, dim=1)
    with pytest.raises(ls.InvalidArgumentError, match=r"theta.*no domain.*function itself"):
        ls.ConfidenceSequence(ls.Gaussian(0.5), nowhere, predictor=ls.Fixed([0.5]))
    with pytest.raises(ls.ShapeError, match="theta"):
        ls.ConfidenceSequence(ls.Gaussian(0.5), ls.RKHS(RBF(0.3), 3.0, domain=[0.0, 1.0]), predictor=ls.Fixed([0.5]))
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), nowhere, predictor=ls.Fixed(lambda x: 2 * x[0]))
    sequence.update(0.3, 0.6)
    assert sequence.ledger.log_q.rows[0] == pytest.approx(-math.log(0.5 * math.sqrt(2 * math.pi)), rel=1e-12)
    space = ls.RKHS(RBF(0.3), 3.0, domain=[0.0, 1.0])
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), space, predictor=ls.Fixed([0.5, -0.1]))
    sequence.update(1.0, 0.6)
    sequence.save(tmp_path / "a")
    loaded = ls.load(tmp_path / "a")
    for either in (sequence, loaded):
        either.update(0.0, 0.2)
    np.testing.assert_array_equal(loaded.ledger.log_q.rows, sequence.ledger.log_q.rows)
