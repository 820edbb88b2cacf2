"""Deaths known to lie between two visits: the recipe of docs/exposure.md, its convexity, bounds and validity.

With alpha = entry^p, beta = exit^p and u = (beta - alpha) e^z,

    -log[S(entry) - S(exit)] = alpha e^z - log(1 - e^-u),      S(t) = exp(-t^p e^z),

the time survived up to ``entry`` and, given that, a death before ``exit``: rows of their own in interim looks.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

import likeset as ls
from likeset import checks

SHAPE, THETA = 1.5, np.array([-0.4, 0.7])


def died_between_visits(y, z):
    u = np.exp(z)
    return np.where(y == 1, -np.log(-np.expm1(-u)), u)


VISITS = ls.CustomFamily(died_between_visits, support=[0, 1], convex=True, name="DiedBetweenVisits")


def visits(rng, patients, gap=0.6, most=4):
    """One row for each visit of each patient, until the one that finds them dead: (x, y, offset)."""
    rows = []
    for i in range(patients):
        x = np.array([1.0, float(i % 2)])
        lifetime = (rng.exponential() * np.exp(-(x @ THETA))) ** (1 / SHAPE)
        for k in range(most):
            died = k * gap < lifetime <= (k + 1) * gap
            rows.append((x, float(died), np.log(((k + 1) * gap) ** SHAPE - (k * gap) ** SHAPE)))
            if died:
                break
    x, y, offset = zip(*rows, strict=True)
    return np.array(x), np.array(y), np.array(offset)


def test_the_likelihood_of_an_interval_is_convex():
    z = np.linspace(-25.0, 5.5, 3001)
    u = np.exp(z)
    second = u * (u * np.exp(u) - np.expm1(u)) / np.expm1(u) ** 2  # of -log(1 - e^-u)
    small = u < 1e-4  # u e^u - e^u + 1 = u^2/2 + u^3/3 + ..., which cancels there
    second[small] = u[small] * (0.5 + u[small] / 3) / (1 + u[small] / 2) ** 2
    assert (second > 0.0).all()
    middle = np.linspace(-8.0, 3.0, 400)
    f, h = lambda z: -np.log(-np.expm1(-np.exp(z))), 1e-4
    numeric = (f(middle + h) - 2 * f(middle) + f(middle - h)) / h**2
    np.testing.assert_allclose(np.interp(middle, z, second), numeric, atol=5e-5)


def test_rows_of_visits_multiply_to_the_probability_of_the_interval():
    a, b, z = 0.7, 1.9, np.linspace(-2.0, 2.0, 9)
    survived = a**SHAPE * np.exp(z)
    died = died_between_visits(1.0, z + np.log(b**SHAPE - a**SHAPE))
    np.testing.assert_allclose(np.exp(-survived - died), np.exp(-survived) - np.exp(-(b**SHAPE) * np.exp(z)))


def test_bounds_and_one_step():
    x, y, offset = visits(np.random.default_rng(0), 30)
    sequence = ls.ConfidenceSequence(VISITS, ls.Linear(2, 3.0), voices=None)
    sequence.update(x, y, offset=offset)
    assert checks.one_step_growth(sequence, [1.0, 1.0], THETA, offset=0.3) == pytest.approx(1.0, abs=1e-6)
    for theta in (THETA, [1.0, -1.0], [0.0, 0.0]):
        assert checks.one_step_growth(sequence, [1.0, 0.0], theta, offset=-1.0) <= 1.0 + 1e-9
    log_q = sequence.ledger.log_q.rows.sum()

    def room(theta):
        return np.log(20) - log_q - died_between_visits(y, x @ theta + offset).sum()

    for a in np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]]):
        inside = [{"type": "ineq", "fun": room}, {"type": "ineq", "fun": lambda t: 9.0 - t @ t}]
        found = minimize(lambda t, a=a: -a @ t, THETA, method="SLSQP", constraints=inside, options={"ftol": 1e-12})
        assert found.success
        assert sequence.set.upper(a)[0] == pytest.approx(-found.fun, abs=1e-5)


@pytest.mark.slow
def test_coverage():
    # 200 runs at 10 %: more than 34 misses have probability 0.001 if each is one with 10 %.
    misses = 0
    for seed in range(200):
        x, y, offset = visits(np.random.default_rng(seed), 16)
        sequence = ls.ConfidenceSequence(VISITS, ls.Linear(2, 3.0), alpha=0.1)
        for start in range(0, len(x), 8):
            part = slice(start, start + 8)
            sequence.update(x[part], y[part], offset=offset[part])
            if not sequence.set.contains(THETA):
                misses += 1
                break
    assert misses <= 34
