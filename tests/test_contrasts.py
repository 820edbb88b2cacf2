"""Announced contrasts: what their voices are, validity, exact extrema, narrower intervals, files, undo, refusals."""

from __future__ import annotations

import copy

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import binom
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks
from likeset.voices.directions import HORIZONS, SHARES

ALPHA = 0.1
A = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]])


def observed(n=60, seed=0, voices=None, sigma=0.5, bound=2.0, weighting=None):
    rng = np.random.default_rng(seed)
    theta = np.array([0.7, -0.4, 0.2])
    x = rng.normal(size=(n, 3))
    voices = ls.Contrasts(A) if voices is None else voices
    sequence = ls.ConfidenceSequence(ls.Gaussian(sigma), ls.Linear(3, bound), ALPHA, voices=voices, weighting=weighting)
    sequence.update(x, x @ theta + sigma * rng.normal(size=n))
    return sequence, theta


def tilts_by_hand(x, a, ridge, steer=2.0):
    """The definition in docs/contrasts.md, one row at a time: v_s and lambda."""
    n, d = x.shape
    V, g, v, unit = ridge * np.eye(d), np.zeros(d), np.zeros(n), 0.0
    for s in range(n):
        V = V + np.outer(x[s], x[s])
        P = np.linalg.inv(V)
        q = a @ P @ a
        if unit:
            apart = g - a * (a @ P @ g) / q
            v[s] = x[s] @ P @ (a / q - steer * apart)
            g = g + v[s] * x[s]
        known = d - ridge * np.trace(P)
        if not unit and s + 1 > 2 * known and q < 0.25 * (a @ a) / ridge:
            unit = 1.0 / (q * (s + 1 - known))
    return v, unit * HORIZONS / 8.0


# -- what the voices are --------------------------------------------------------------------------------------------


def test_the_ratio_is_that_of_the_definition():
    """Tilts, sums and the integral over u by hand; the other voices from a sequence without contrasts."""
    sequence, _ = observed()
    plain, _ = observed(voices=ls.Patience())
    x, y, sigma = sequence.ledger.x.rows, sequence.ledger.y.rows, 0.5
    for theta in (np.array([0.1, 0.3, -0.2]), np.array([0.7, -0.4, 0.2])):
        logs = [np.log(0.3) + plain.set.log_ratio(theta)]
        for a in A:
            v, lambdas = tilts_by_hand(x, a, sigma**2 / 2.0**2)
            for share, lam in zip(SHARES, lambdas, strict=True):
                u = np.linspace(-1, 1, 20001) * 12 / np.sqrt(lam / sigma**2)
                z = x @ theta
                ratio = (u[:, None] * v * (y - z) - 0.5 * (u[:, None] * v) ** 2).sum(axis=1) / sigma**2
                prior = np.exp(-0.5 * u**2 * lam / sigma**2) * np.sqrt(lam / sigma**2 / (2 * np.pi))
                integral = np.sum(np.exp(ratio) * prior) * (u[1] - u[0])
                logs.append(np.log(0.7 / 2 * share) + np.log(integral))
        assert sequence.set.log_ratio(theta) == pytest.approx(np.logaddexp.reduce(logs), rel=1e-6)


def test_tilts_do_not_depend_on_any_outcome():
    sequence, _ = observed(n=30)
    other = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0), ALPHA, voices=ls.Contrasts(A))
    other.update(sequence.ledger.x.rows, np.random.default_rng(3).normal(size=30) * 7)
    for name in ("inverse", "pulls", "units", "squares", "loads"):
        np.testing.assert_array_equal(
            getattr(sequence._running.directions, name), getattr(other._running.directions, name)
        )


def test_log_normal_noise_is_gaussian_noise_of_the_logarithm():
    sequence, _ = observed()
    logs = ls.ConfidenceSequence(ls.LogNormal(0.5), ls.Linear(3, 2.0), ALPHA, voices=ls.Contrasts(A))
    logs.update(sequence.ledger.x.rows, np.exp(sequence.ledger.y.rows))
    np.testing.assert_allclose(logs.set.interval(A), sequence.set.interval(A), atol=1e-6)


def test_offsets_belong_to_z():
    sequence, _ = observed()
    shift = np.linspace(-3.0, 5.0, 60)
    other = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0), ALPHA, voices=ls.Contrasts(A))
    other.update(sequence.ledger.x.rows, sequence.ledger.y.rows + shift, offset=shift)
    np.testing.assert_allclose(other.set.interval(A), sequence.set.interval(A), atol=1e-7)


# -- validity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [None, ls.Patience(3, tail=0.0), ls.Windows(np.eye(3), correlation=0.6)], ids=repr)
@pytest.mark.parametrize("weighting", [None, ls.BiasWeighting()], ids=repr)
def test_one_step_growth_is_at_most_one(others, weighting):
    """From any state, for any theta, at a covariate of any kind: new, repeated, long."""
    sequence, theta = observed(n=12, voices=ls.Contrasts(A, others=others), weighting=weighting)
    assert (sequence._running.directions.units > 0).all()
    for x in ([0.3, -1.0, 0.5], sequence.ledger.x.rows[3], [20.0, 0.0, 1.0]):
        checks.check_growth(sequence, x, [theta, [0.0, 0.0, 0.0], [-1.0, 0.8, 0.3]])


def growth_of_directions(sequence, x, theta, contrast, peek=0.0):
    """∫ R_a after / R_a before p_theta dy for the voices of one contrast alone; ``peek`` lets v look at y."""
    z, sigma = float(np.dot(x, theta)), sequence.family.sigma
    y = z + sigma * np.linspace(-10, 10, 401)

    def log_ratio(directions):
        m = directions.measured().only(contrast)
        S = (
            m.targets
            - (
                sequence.ledger.distinct.rows @ theta
                if m.loads.shape[0] == len(sequence.ledger.distinct.rows)
                else np.append(sequence.ledger.distinct.rows @ theta, z)
            )
            @ m.loads
        )
        total = m.squares[0] + m.lambdas[0]
        return np.logaddexp.reduce(
            np.log(SHARES) + m.scale * S[0] ** 2 / (2 * total) + 0.5 * np.log(m.lambdas[0] / total)
        )

    before = log_ratio(sequence._running.directions)
    growth = 0.0
    for outcome in y:
        after = copy.deepcopy(sequence)
        directions = after._running.directions
        basis, phi = after._running.ledger.embed(after._running.basis, np.asarray(x, dtype=float))
        if peek:
            tilts = directions._tilts

            def peeking(b, p, o=outcome, f=tilts):
                found, variances = f(b, p)
                return found * (1.0 + peek * np.sign(o - z)), variances

            directions._tilts = peeking
        directions.record(basis, phi, np.asarray(outcome), 1.0)
        p = np.exp(-0.5 * ((outcome - z) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
        growth += p * np.exp(log_ratio(directions) - before) * (y[1] - y[0])
    return growth


def test_the_voices_alone_are_martingales_and_a_tilt_that_looks_at_y_is_not():
    sequence, theta = observed(n=15)
    for where in (theta, np.array([0.2, 0.1, -0.9])):
        assert growth_of_directions(sequence, [0.3, -1.0, 0.5], where, 0) == pytest.approx(1.0, abs=1e-6)
    assert growth_of_directions(sequence, [0.3, -1.0, 0.5], np.array([0.2, 0.1, -0.9]), 0, peek=0.5) > 1.01


@pytest.mark.parametrize("simultaneous", [True, False])
def test_adaptive_anytime_coverage(simultaneous):
    """x is chosen to hurt: the widest direction, with the sign of the error so far. False-alarm probability 1e-6."""
    runs, misses, missed = 60, np.zeros(2, dtype=int), 0
    for number in range(runs):
        rng = np.random.default_rng([31, number])
        theta = rng.normal(size=3)
        theta *= 1.4 / np.linalg.norm(theta)
        voices = ls.Contrasts(A, simultaneous, others=ls.Patience(3, tail=0.0))
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 1.5), ALPHA, voices=voices)
        lost, out = np.zeros(2, dtype=bool), False
        for step in range(10):
            x = rng.normal(size=(4, 3))
            if step % 2 and step > 2:
                low, high = sequence.set.interval(A)
                worst = int(np.argmin(np.minimum(A @ theta - low, high - A @ theta)))
                x = 0.3 * x + A[worst]
            sequence.update(x, x @ theta + 0.5 * rng.normal(size=4))
            low, high = sequence.set.interval(A)
            lost |= (A @ theta < low) | (A @ theta > high)
            out |= not sequence.set.contains(theta)
        misses += lost
        missed += out
    allowed = binom.ppf(1 - 1e-6, runs, ALPHA)
    assert (misses <= allowed).all() and missed <= allowed


def test_a_contrast_chosen_after_seeing_y_does_not_cover():
    """Negative control: the direction in which 30 equal arms look most different, as if it had been announced."""
    runs, wrong, right = 20, 0, 0
    for number in range(runs):
        rng = np.random.default_rng([32, number])
        x = np.tile(np.eye(30), (20, 1))
        y = rng.normal(size=len(x))
        chosen = y.reshape(20, 30).mean(axis=0)
        for voices in (ls.Contrasts(chosen, simultaneous=False, others=None), ls.Contrasts(np.eye(30), others=None)):
            sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(30, 3.0), ALPHA, voices=voices)
            sequence.update(x, y)
            apart = sequence.set.lower([chosen])[0] > 0.0
            wrong, right = wrong + (apart and not voices.simultaneous), right + (apart and voices.simultaneous)
    assert wrong > binom.ppf(1 - 1e-6, runs, ALPHA) >= right


# -- extrema --------------------------------------------------------------------------------------------------------


def cvxpy_upper(sequence, a):
    """max a'theta over the set, from the numbers of the definition."""
    e = sequence.set._evidence
    X, terms, voices = e.groups.rows[e.groups.owners], e.terms, e.audible
    theta = cp.Variable(X.shape[1])
    exponents = []
    for k in range(len(voices.log_shares)):
        members = voices.members[voices.starts[k] : voices.starts[k + 1]]
        z = X[members] @ theta - terms.origins[members]
        parts = cp.sum(cp.multiply(0.5 * terms.a[members], cp.square(z))) - terms.s[members] @ z
        exponents.append(voices.log_shares[k] + float(e.gains[members].sum()) + parts)
    problem = cp.Problem(
        cp.Maximize(sequence.set._basis.coordinates(np.asarray(a, dtype=float)[None])[0][0] @ theta),
        [cp.log_sum_exp(cp.hstack(exponents)) <= e.threshold, cp.norm(theta) <= e.bound],
    )
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # said by CVXPY of its own value
@pytest.mark.parametrize("bound", [2.0, 0.75])
def test_extrema_agree_with_cvxpy(bound):
    sequence, _ = observed(bound=bound, voices=ls.Contrasts(A, others=ls.Patience(3, tail=0.0)))
    asked = np.vstack([A, [[0.3, -1.0, 0.5]]])
    found = sequence.set.support(asked)
    for i, a in enumerate(asked):
        value = cvxpy_upper(sequence, a)
        assert found.upper[i] == pytest.approx(value, abs=1e-5)
        assert found.upper[i] >= value - 1e-6
    assert (found.gap <= 1e-6).all()
    assert (sequence.set.log_ratio(found.maximisers) <= -np.log(ALPHA) + 1e-9).all()
    inside = sequence.set.contains(sequence.set.centre + 0.999 * (found.maximisers - sequence.set.centre))
    assert inside.all() and not sequence.set.contains(1.2 * found.maximisers - 0.2 * sequence.set.centre).any()


def test_sets_of_their_own():
    """simultaneous=False: each question as if it alone had been announced; the rest belongs to the other voices."""
    sequence, theta = observed(voices=ls.Contrasts(A, simultaneous=False))
    plain, _ = observed(voices=ls.Patience())
    alone = [observed(voices=ls.Contrasts(a))[0] for a in A]
    low, high = sequence.set.interval(np.vstack([A, [[1.0, 1.0, 1.0]], -2.0 * A[1:]]))
    for j in range(2):
        np.testing.assert_allclose([low[j], high[j]], np.ravel(alone[j].set.interval(A[j])), rtol=1e-9)
    np.testing.assert_allclose([low[2], high[2]], np.ravel(plain.set.interval([1.0, 1.0, 1.0])), rtol=1e-9)
    np.testing.assert_allclose([low[3], high[3]], [-2.0 * high[1], -2.0 * low[1]], rtol=1e-6)
    np.testing.assert_allclose(sequence.set.upper_difference([[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]), high[1], rtol=1e-9)
    np.testing.assert_allclose(sequence.set.support(A).upper, high[:2], rtol=1e-9)
    assert sequence.set.log_ratio(theta) == plain.set.log_ratio(theta)
    assert not sequence.set.is_empty


def test_unannounced_questions_lose_at_most_the_share_of_the_other_voices():
    sequence, theta = observed()
    plain, _ = observed(voices=ls.Patience())
    for where in (theta, np.zeros(3), np.array([1.0, 1.0, -1.0])):
        assert sequence.set.log_ratio(where) >= plain.set.log_ratio(where) + np.log(0.3) - 1e-12


def test_differences_of_a_function_at_two_points():
    space = ls.RKHS(RBF(0.3), 3.0, domain=np.linspace(0, 1, 21))
    rng = np.random.default_rng(4)
    pair = (space.domain[[4]], space.domain[[15]])
    f = np.sin(4 * space.domain[:, 0])
    index = rng.integers(21, size=400)
    y = f[index] + 0.3 * rng.normal(size=400)
    width = {}
    for name, voices in (
        ("contrast", ls.Contrasts(pair[0], minus=pair[1], simultaneous=False)),
        ("point", ls.Contrasts(pair[0], simultaneous=False)),
        ("patience", ls.Patience()),
    ):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), space, 0.05, voices=voices)
        sequence.update(space.domain[index], y)
        s = sequence.set
        assert s.contains(f)
        assert s.upper_difference(*pair)[0] > f[4] - f[15] > -s.upper_difference(*pair[::-1])[0]
        width[name] = (
            s.upper_difference(*pair)[0] + s.upper_difference(*pair[::-1])[0],
            np.diff(s.interval(pair[0]), axis=0),
        )
    assert width["contrast"][0] < 0.9 * width["patience"][0] == pytest.approx(0.9 * width["point"][0], rel=1e-6)
    assert width["point"][1] < 0.9 * width["patience"][1]


# -- narrower -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bound", "most"), [(2.0, 2.2), (20.0, 2.2)])
def test_coefficients_of_the_diabetes_data(bound, most):
    """Mean width relative to fixed-sample OLS: about 2.04 and 2.10; with patience alone 2.96 and 3.13."""
    X, y = load_diabetes(return_X_y=True)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    X = np.column_stack([np.ones(len(X)), X])
    ols = 2 * 1.96 * 0.7 * np.sqrt(np.diag(np.linalg.inv(X.T @ X)))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(X))
        voices = ls.Contrasts(np.eye(11), simultaneous=False)
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.7), ls.Linear(11, bound), 0.05, voices=voices)
        sequence.update(X[order], y[order])
        low, high = sequence.set.interval(np.eye(11))
        assert ((high - low) / ols).mean() < most


@pytest.mark.parametrize("d", [5, 15])
def test_single_coefficients_are_a_fifth_narrower_than_with_patience(d):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(1000, d)) / np.sqrt(d)
    y = x @ np.full(d, 0.5 / np.sqrt(d)) + 0.3 * rng.normal(size=1000)
    width = []
    for voices in (ls.Contrasts(np.eye(d), simultaneous=False), ls.Patience()):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), ls.Linear(d, 1.0), 0.05, voices=voices)
        sequence.update(x, y)
        width.append(np.diff(sequence.set.interval(np.eye(d)[:4]), axis=0).mean())
    assert width[0] < 0.8 * width[1]


def test_units_of_measurement_do_not_matter():
    """Metres or millimetres, for covariates and for outcomes: the same answers in other units."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(80, 2))
    y = x @ [0.5, -0.2] + 0.3 * rng.normal(size=80)
    widths = []
    for unit_x, unit_y in ((1.0, 1.0), (1000.0, 1.0), (1.0, 1000.0)):
        space = ls.Linear(2, 2.0 * unit_y / unit_x)
        voices = ls.Contrasts(np.eye(2), simultaneous=False, others=None)
        mixture = ls.Mixture([p * (unit_x / unit_y) ** 2 for p in (0.1, 1.0, 10.0)])
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3 * unit_y), space, 0.05, mixture, voices=voices)
        sequence.update(unit_x * x, unit_y * y)
        widths.append(np.diff(sequence.set.interval(np.eye(2)), axis=0)[0] * unit_x / unit_y)
    np.testing.assert_allclose(widths, np.broadcast_to(widths[0], (3, 2)), rtol=1e-5)


# -- sequences, files, undo, refusals -------------------------------------------------------------------------------


def test_announcing():
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0))
    sequence.expect(contrasts=A)
    assert isinstance(sequence.voices, ls.Contrasts) and isinstance(sequence.voices.others, ls.Patience)
    with pytest.raises(ls.InvalidArgumentError, match="contrasts"):
        sequence.expect(contrasts=A)
    windows = ls.Windows(np.eye(3))
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0), voices=windows)
    sequence.expect(contrasts=A)
    assert sequence.voices.others is windows
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0))
    sequence.expect(contrasts=ls.Contrasts(A, simultaneous=False))
    assert not sequence.voices.simultaneous
    with pytest.raises(ls.InvalidArgumentError, match="before the first"):
        sequence.update([1.0, 0.0, 0.0], 1.0)
        sequence.expect(contrasts=A)


@pytest.mark.parametrize("simultaneous", [True, False])
@pytest.mark.parametrize("others", [None, ls.Patience(3, tail=0.0)], ids=repr)
def test_saved_and_durable_sequences_continue_bit_for_bit(tmp_path, simultaneous, others):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 3))[rng.integers(40, size=60)]
    y = x @ [0.7, -0.4, 0.2] + 0.5 * rng.normal(size=60)
    voices = ls.Contrasts([[1.0, 0, 0], [0, 1.0, 0]], simultaneous, minus=[[0, 0, 1.0]], others=others)
    made = dict(family=ls.Gaussian(0.5), space=ls.Linear(3, 1.5), alpha=ALPHA, voices=voices)
    whole = ls.ConfidenceSequence(**made)
    whole.update(x, y)
    half = ls.ConfidenceSequence(**made)
    half.update(x[:30], y[:30])
    half.save(tmp_path / "half")
    loaded = ls.load(tmp_path / "half")
    with ls.ConfidenceSequence.open(tmp_path / "journal", **made) as durable:
        durable.update(x[:30], y[:30])
    durable = ls.ConfidenceSequence.open(tmp_path / "journal", **made)
    for sequence in (loaded, durable, copy.deepcopy(half)):
        sequence.update(x[30:], y[30:])
        assert repr(sequence.voices) == repr(whole.voices)
        for name, array in whole._running.directions.state().items():
            np.testing.assert_array_equal(sequence._running.directions.state()[name], array)
        asked = np.array([[1.0, 0, -1.0], [0, 1.0, -1.0], [1.0, 1.0, 1.0]])
        np.testing.assert_array_equal(sequence.set.interval(asked), whole.set.interval(asked))
    durable.close()


def test_announced_contrasts_are_in_the_journal(tmp_path):
    with ls.ConfidenceSequence.open(tmp_path / "j", ls.Gaussian(0.5), ls.Linear(3, 1.5)) as durable:
        durable.expect(contrasts=A)
        durable.update(np.eye(3), [0.1, 0.2, 0.3])
    with ls.ConfidenceSequence.open(tmp_path / "j", ls.Gaussian(0.5), ls.Linear(3, 1.5)) as durable:
        np.testing.assert_array_equal(durable.voices.A, A)
        assert durable._running.directions.rows == 3


def test_a_failed_batch_leaves_the_sums_as_they_were():
    sequence, _ = observed(n=20)
    before = {k: v.copy() for k, v in sequence._running.directions.state().items()}
    bounds = sequence.set.interval(A)
    x = np.vstack([sequence.ledger.x.rows[:5], np.random.default_rng(1).normal(size=(30, 3))])
    original, calls = type(sequence)._checked_score, []

    def stumble(self, *arguments):
        calls.append(1)
        if len(calls) == 30:
            raise ZeroDivisionError
        return original(self, *arguments)

    type(sequence)._checked_score = stumble
    try:
        with pytest.raises(ZeroDivisionError):
            sequence.update(x, np.ones(35))
    finally:
        type(sequence)._checked_score = original
    for name, array in sequence._running.directions.state().items():
        np.testing.assert_array_equal(array, before[name])
    np.testing.assert_array_equal(sequence.set.interval(A), bounds)
    sequence.update(x, np.ones(35))
    fresh = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0), ALPHA, voices=ls.Contrasts(A))
    fresh.update(sequence.ledger.x.rows, sequence.ledger.y.rows)
    np.testing.assert_array_equal(fresh.set.interval(A), sequence.set.interval(A))


@pytest.mark.parametrize("order", ["sorted", "repeated", "clustered", "collinear"])
def test_awkward_designs(order):
    """Rows in an awkward order or nearly dependent: never wider than the other voices' share allows."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(90, 3))
    if order == "sorted":
        x = x[np.argsort(x[:, 0])]
    elif order == "repeated":
        x = np.repeat(x[:3], 30, axis=0)
    elif order == "clustered":
        x = x[:6].repeat(15, axis=0) + 1e-7 * x
    else:
        x[:, 2] = x[:, 1] + 1e-6 * x[:, 2]
    y = x @ [0.5, 0.2, -0.3] + 0.5 * rng.normal(size=90)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0), ALPHA, voices=ls.Contrasts(np.eye(3)))
    looser = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3, 2.0), 0.3 * ALPHA, voices=ls.Patience())
    sequence.update(x, y)
    looser.update(x, y)
    low, high = sequence.set.interval(np.eye(3))
    outer_low, outer_high = looser.set.interval(np.eye(3))
    assert (low >= outer_low - 1e-6).all() and (high <= outer_high + 1e-6).all() and (low < high).all()
    assert sequence.set.contains([0.5, 0.2, -0.3])


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: ls.Contrasts([]), "A"),
        (lambda: ls.Contrasts(np.ones((5000, 2))), "A"),
        (lambda: ls.Contrasts(A, simultaneous=1), "simultaneous"),
        (lambda: ls.Contrasts(A, share=1.0), "share"),
        (lambda: ls.Contrasts(A, minus=np.eye(3)), "minus"),
        (lambda: ls.Contrasts(A, others="joint"), "others"),
        (lambda: ls.Contrasts(A, others=ls.Contrasts(A)), "others"),
        (lambda: ls.Patience().beside(ls.Contrasts(A)), "second"),
        (lambda: ls.ConfidenceSequence(ls.Gaussian(), ls.Linear(2, 1.0), voices=ls.Contrasts(A)), "A"),
        (lambda: ls.ConfidenceSequence(ls.Gaussian(), ls.Linear(3, 1.0), voices=ls.Contrasts(A, minus=A)), "minus[0]"),
        (lambda: ls.ConfidenceSequence(ls.Gamma(2.0), ls.Linear(3, 1.0), voices=ls.Contrasts(A)), "voices"),
        (lambda: ls.ConfidenceSequence(ls.Laplace(1.0), ls.Linear(3, 1.0), voices=ls.Contrasts(A)), "voices"),
        (lambda: ls.ConfidenceSequence(ls.Poisson(), ls.RKHS(RBF(0.3), 1.0), voices=ls.Contrasts([[0.5]])), "voices"),
        (lambda: ls.ConfidenceSequence(ls.Gaussian(), ls.Linear(3, 1.0)).expect(contrasts=[0.0, 0.0, 0.0]), "A[0]"),
    ],
)
def test_bad_input(make, argument):
    with pytest.raises(ls.InvalidArgumentError) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize("policy", [ls.Elimination, ls.UCB, ls.Guarded, ls.LowerBound])
def test_policies_refuse_sets_that_do_not_hold_at_once(policy):
    """The leader of ten equal arms is falsely separated from the worst in half of the runs with alpha for each pair."""
    for simultaneous in (True, False):
        voices = ls.Contrasts([[1.0, -1.0]], simultaneous=simultaneous)
        seq = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 1.0), voices=voices)
        if simultaneous:
            policy(seq, np.eye(2))
        else:
            with pytest.raises(ls.InvalidArgumentError, match="simultaneous=True"):
                policy(seq, np.eye(2))


@pytest.mark.parametrize("seed", range(6))
def test_covariates_closer_than_rounding_without_a_bound(seed):
    """Weighted joint sets are endless there, and their maximisers nowhere: voices were weighted by NaN, aloud.

    Whether the third direction is seen at all is decided by rounding, and where it is not, no bound is finite; those of
    the covariates themselves are about one wide where they are.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, 3))[[0, 0, 1, 1, 0, 1]] + 1e-9 * rng.normal(size=(6, 3))
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(3), 0.1, voices=ls.Contrasts(np.eye(3)))
    y = x @ [0.5, -1.0, 0.3] + 0.5 * rng.normal(size=6)
    sequence.update(x, y)
    asked = np.vstack([np.eye(3), x[:2]])
    low, high = sequence.set.interval(asked)
    assert (high[:3] - low[:3] > 1e6).all()
    assert ((high[3:] - low[3:] < 100.0) | np.isinf(high[3:])).all()
    member = np.linalg.pinv(x, rcond=1e-6) @ y
    assert sequence.set.contains(member)
    assert (low <= asked @ member).all() and (asked @ member <= high).all()
