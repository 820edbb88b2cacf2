"""Evidence against hypotheses: certified, in agreement with CVXPY and with the bounds of the set, valid at any time."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, norm
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks, comparison

FAMILIES = [
    ls.Gaussian(0.5),
    ls.Laplace(0.5),
    ls.Poisson(),
    ls.Bernoulli(),
    ls.Binomial(4),
    ls.Weibull(2.0),
    ls.LogWeibull(2.0),
    ls.Exponential(),
]
THETA = np.array([0.5, -0.4, 0.2])


def filled(family, bound=2.0, n=60, seed=0, alpha=0.05, voices=None, dim=3, **pieces):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim)) / np.sqrt(dim)
    sequence = ls.ConfidenceSequence(family, ls.Linear(dim, bound), alpha, voices=voices, **pieces)
    sequence.update(X, family.sample(X @ THETA[:dim], rng))
    return sequence


def cvxpy_evidence(sequence, x, c, sense):
    """min log R over the hypothesis from the raw rows; +inf if it leaves nothing of Theta."""
    ledger, family, bound = sequence.ledger, sequence.family, sequence.space.bound
    theta = cp.Variable(ledger.x.rows.shape[1])
    z = ledger.x.rows @ theta
    y = ledger.y.rows
    if isinstance(family, ls.Laplace):
        loss = cp.abs(y - z) / family.scale + np.log(2 * family.scale)
    elif isinstance(family, ls.Gaussian):
        loss = cp.square(y - z) / (2 * family.sigma**2) + np.log(family.sigma * np.sqrt(2 * np.pi))
    else:
        a, s, h = family.statistics(y)
        curve = cp.exp(z) if int(family.curve) == 1 else cp.logistic(z)
        loss = cp.multiply(a, curve) - cp.multiply(s, z) - h
    constraints = [{"below": x @ theta <= c, "above": x @ theta >= c, "equal": x @ theta == c}[sense]]
    if np.isfinite(bound):
        constraints.append(cp.norm(theta) <= bound)
    problem = cp.Problem(cp.Minimize(cp.sum(loss) + ledger.log_q.rows.sum()), constraints)
    for tolerance in (1e-11, 1e-9, 1e-8):
        try:
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
        except cp.error.SolverError:
            continue
        break
    else:
        return None
    assert problem.status in ("optimal", "optimal_inaccurate", "infeasible", "infeasible_inaccurate")
    return problem.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("bound", [0.75, 2.0, np.inf])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_agrees_with_cvxpy(family, bound):
    sequence = filled(family, bound)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4, 3))
    centre, limits = X @ THETA, np.array([-0.9, -0.4, 0.1, 0.5])
    answered = 0  # a conic solver gives up on some
    for sense in ("below", "above", "equal"):
        found = sequence.set.evidence(X, **{sense: centre + limits})
        assert (found.gap >= 0).all() and (found.gap <= 1e-6 * (1 + np.abs(found.log_e_value)))[
            found.gap < np.inf
        ].all()
        for value, x, c in zip(found.log_e_value, X, centre + limits, strict=True):
            reference = cvxpy_evidence(sequence, x, c, sense)
            answered += reference is not None
            if reference is None:
                continue
            if reference == np.inf:
                assert value == np.inf
            else:
                assert value == pytest.approx(reference, abs=2e-6 * (1 + abs(reference)))
    assert answered >= 9


@pytest.mark.parametrize("voices", ["auto", ls.Patience(), ls.Windows(np.eye(3))], ids=repr)
@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson(), ls.Bernoulli(), ls.Weibull(2.0)], ids=repr)
def test_agrees_with_a_local_search_for_every_kind_of_voices(family, voices):
    s = filled(family, voices=voices).set
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3, 3))
    c = X @ THETA + np.array([-0.8, -0.5, 0.2])
    found = s.evidence(X, below=c)
    assert (found.gap <= 1e-5).all()
    for value, x, limit in zip(found.log_e_value, X, c, strict=True):
        # The log-sum-exp is smooth: sequential quadratic programming from a point of the half-space.
        start = s.centre - max(x @ s.centre - limit, 0.0) * x / (x @ x)
        constraints = [
            {"type": "ineq", "fun": lambda t, x=x, limit=limit: limit - x @ t},
            {"type": "ineq", "fun": lambda t: 4.0 - t @ t},
        ]
        local = minimize(s.log_ratio, start, method="SLSQP", constraints=constraints, options={"ftol": 1e-12})
        inside = x @ local.x <= limit + 1e-9 and local.x @ local.x <= 4 + 1e-9
        assert inside
        assert value <= local.fun + 1e-6
        assert value == pytest.approx(local.fun, abs=1e-4)


def test_laplace_noise_with_windows_never_claims_more_than_a_grid_attains():
    s = filled(ls.Laplace(0.5), dim=2, voices=ls.Windows(np.eye(2))).set
    side = np.linspace(-2, 2, 401)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    grid = grid[np.linalg.norm(grid, axis=1) <= 2.0]
    ratios = s.log_ratio(grid)
    for x, c in (([1.0, 0.0], -0.2), ([0.6, -1.0], 0.4), ([0.0, 1.0], -0.9)):
        for sense, allowed in (("below", grid @ x <= c + 1e-12), ("above", grid @ x >= c - 1e-12)):
            found = s.evidence(x, **{sense: c})
            assert found.log_e_value[0] <= ratios[allowed].min() + 1e-9
            assert found.log_e_value[0] == pytest.approx(ratios[allowed].min(), abs=0.3)
            assert found.gap[0] < 1e-5


@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e6])
def test_an_unknown_scale(unit):
    """log R grows with the residual sum of squares: its least value over a half-space is least squares on the edge."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, 3))
    y = X @ THETA + 0.5 * rng.normal(size=50)
    sequence = ls.ConfidenceSequence(ls.Gaussian(sigma=ls.Unknown()), ls.Linear(3, 1e3 * unit), voices=None)
    sequence.update(X, unit * y)
    s = sequence.set
    Q = np.random.default_rng(9).normal(size=(6, 3))
    gram = X.T @ X
    best = np.linalg.solve(gram, X.T @ y)
    c = Q @ best + np.array([-0.9, -0.5, -0.2, 0.1, -0.05, -2.0])
    for x, limit, value, gap in zip(
        Q, c, *(lambda e: (e.log_e_value, e.gap))(s.evidence(Q, below=unit * c)), strict=True
    ):
        edge = best - np.linalg.solve(gram, x) * max(x @ best - limit, 0.0) / (x @ np.linalg.solve(gram, x))
        assert value == pytest.approx(s.log_ratio(unit * edge), abs=1e-6 * (1 + abs(value)))
        assert gap <= 1e-6 * (1 + abs(value))
    assert np.array_equal(s.evidence(Q, below=unit * c).e_value > 20, s.lower(Q) > unit * c)
    assert s.evidence(theta=unit * best).log_e_value == pytest.approx(s.log_ratio(unit * best))


def test_an_unknown_shape():
    """log R is the least over shapes: never above it at any of them, and about the least over a fine grid."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 2))
    y = ls.Weibull(1.5).sample(X @ THETA[:2], rng)
    sequence = ls.ConfidenceSequence(ls.Weibull(shape=ls.Unknown(0.5, 4.0)), ls.Linear(2, 2.0), voices=None)
    sequence.update(X, y)
    s = sequence.set
    x = np.array([[1.0, 0.0], [0.3, 1.0]])
    for c in (s.lower(x) - 0.1, s.lower(x) + 0.1):
        found = s.evidence(x, below=c)
        assert np.array_equal(found.e_value > 20, s.lower(x) > c)
        assert (found.gap <= 1e-4).all()
        for i in range(2):
            constraints = {"type": "ineq", "fun": lambda t, i=i, c=c: c[i] - x[i] @ t}
            local = minimize(s.log_ratio, s.centre, method="SLSQP", constraints=[constraints], options={"ftol": 1e-10})
            assert x[i] @ local.x <= c[i] + 1e-8
            assert found.log_e_value[i] == pytest.approx(local.fun, abs=2e-3)
            assert found.log_e_value[i] <= local.fun + 1e-5
    wider, narrower = s.interval(x, alpha=0.001), s.interval(x, alpha=0.3)
    assert (wider[0] < s.lower(x)).all() and (narrower[0] > s.lower(x)).all()


def test_the_equal_hypothesis_is_the_stronger_of_both_sides():
    s = filled(ls.Poisson()).set
    X, c = np.eye(3), np.array([0.2, -0.9, 0.9])
    both = [s.evidence(X, below=c).log_e_value, s.evidence(X, above=c).log_e_value]
    assert np.array_equal(s.evidence(X, equal=c).log_e_value, np.maximum(*both))
    # one of them holds the best parameter: it is the least of log R over Theta for every row alike
    assert np.ptp(np.minimum(*both)) <= 1e-6


@pytest.mark.parametrize("voices", [None, "auto", ls.Patience()], ids=repr)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_e_values_and_bounds_never_contradict_each_other(family, voices):
    """Both ways, at the bounds themselves and next to them."""
    s = filled(family, voices=voices, seed=3).set
    x = np.array([[0.7, -0.2, 0.4]])
    low, high = s.lower(x)[0], s.upper(x)[0]
    for offset in (-0.3, -1e-6, -1e-9, -1e-15, 0.0, 1e-15, 1e-9, 1e-6, 0.3):
        below, above = s.evidence(x, below=low + offset), s.evidence(x, above=high + offset)
        assert (below.e_value[0] > 20) == (low > low + offset) == (below.p_value[0] < 0.05)
        assert (above.e_value[0] > 20) == (high < high + offset) == (above.p_value[0] < 0.05)
    # at other levels: the bound at level 1/e is the hypothesis again, up to the gap
    for c in (low - 0.2, low + 0.1 * (high - low)):
        found = s.evidence(x, below=c)
        if found.log_e_value[0] > 0.01:
            back = s.lower(x, alpha=float(np.exp(-found.log_e_value[0])))[0]
            assert back == pytest.approx(c, abs=1e-4 * (high - low))


CONVEX = [family for family in checks.built_in_families() if family.convex]
SPACES = {
    "ball": lambda: ls.Linear(2, 1.5),
    "no bound": lambda: ls.Linear(2),
    "ellipsoid": lambda: ls.LinearEllipsoid([[1.0, 0.3], [0.3, 0.5]], 1.5),
    "functions": lambda: ls.RKHS(RBF(0.8), 1.5, dim=2),
}
VOICES = [None, "auto", ls.Patience(), ls.Windows(np.eye(2)), ls.Patience().within(ls.Windows(np.eye(2)))]


def matrix():
    """Every family in every space; one space each is quick, the others are left to the slow tests."""
    for i, family in enumerate(CONVEX):
        for j, where in enumerate(SPACES):
            marks = [] if (i - j) % len(SPACES) == 0 else [pytest.mark.slow]
            yield pytest.param(family, where, marks=marks, id=f"{family!r}-{where}")


@pytest.mark.parametrize(("family", "where"), list(matrix()))
def test_no_contradiction_for_any_family_space_and_voices(family, where):
    """Every family in every space; voices take turns, so that each meets every space and many families."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=(24, 2)), axis=0)
    x[6:10] = x[5]
    y = family.sample(x @ THETA[:2], rng)
    first = CONVEX.index(family) + list(SPACES).index(where)
    sequence = ls.ConfidenceSequence(family, SPACES[where](), voices=VOICES[first % len(VOICES)])
    sequence.update(x, y)
    s = sequence.set
    asked = np.array([[0.7, -0.2], [0.1, 1.1]])
    low, high = s.lower(asked), s.upper(asked)
    for off in (-0.2, 0.0, 1e-9):
        below, above = s.evidence(asked, below=low + off), s.evidence(asked, above=high + off)
        assert np.array_equal(below.e_value > 20, low > low + off)
        assert np.array_equal(above.e_value > 20, high < high + off)
        assert (below.gap >= 0.0).all() and (above.gap >= 0.0).all()
    found = s.evidence(asked, below=low - 0.2)
    finite = np.isfinite(low) & (found.log_e_value < 600.0)
    for i in np.flatnonzero(finite):  # the other way: back from the e-value to c
        back = s.lower(asked[i], alpha=float(np.exp(-found.log_e_value[i])))[0]
        assert back >= low[i] - 0.2 - 1e-4 - 2.0 * s.charge


@pytest.mark.parametrize("simultaneous", [True, False])
def test_announced_contrasts_answer_with_their_own_sets(simultaneous):
    voices = ls.Contrasts(np.eye(3), simultaneous=simultaneous)
    s = filled(ls.Gaussian(0.5), n=200, voices=voices).set
    rows = np.vstack([np.eye(3), [[0.3, -0.4, 1.0]]])
    low, high = s.interval(rows)
    found = s.evidence(rows, below=0.5 * (low + rows @ THETA))
    assert (found.e_value <= 20).all() and (found.gap <= 1e-5).all()
    assert (s.evidence(rows, below=low - 1e-6).e_value > 20).all()
    assert (s.evidence(rows, equal=high + 1e-6).e_value > 20).all()
    wider = s.interval(rows, alpha=0.001)
    assert (wider[0] < low).all() and (wider[1] > high).all()
    back = s.lower(rows[:1], alpha=float(np.exp(-s.evidence(rows[:1], below=low[:1] - 0.1).log_e_value[0])))
    assert back[0] == pytest.approx(low[0] - 0.1, abs=1e-5)


def test_points():
    sequence = filled(ls.Poisson())
    s = sequence.set
    rows = np.random.default_rng(0).normal(size=(200, 3))
    found = s.evidence(theta=rows)
    assert found.log_e_value == pytest.approx(s.log_ratio(rows), rel=1e-9)
    assert (found.log_e_value <= s.log_ratio(rows)).all()
    inside = np.linalg.norm(rows, axis=1) <= 2.0
    assert np.array_equal(s.contains(rows)[inside], found.e_value[inside] <= 20)
    one = s.evidence(theta=rows[0])
    assert one.log_e_value == found.log_e_value[0] and np.ndim(one.p_value) == 0


def test_levels_of_one_snapshot_are_those_of_sequences_at_these_levels():
    for voices in (None, ls.Patience(), ls.Windows(np.eye(3))):
        s = filled(ls.Bernoulli(), voices=voices).set
        widths = []
        for alpha in (0.5, 0.05, 0.001):
            other = filled(ls.Bernoulli(), voices=voices, alpha=alpha).set
            low, high = s.interval(np.eye(3), alpha=alpha)
            assert np.array_equal(np.array(other.interval(np.eye(3))), [low, high])
            assert np.allclose(s.lower(np.eye(3), alpha=alpha), low) and np.allclose(
                s.upper(np.eye(3), alpha=alpha), high
            )
            widths.append(high - low)
        assert (widths[0] < widths[1]).all() and (widths[1] < widths[2]).all()
    with pytest.raises(ls.InvalidArgumentError, match="alpha"):
        s.interval(np.eye(3), alpha=0)


def test_function_spaces():
    """With and without a domain, in and out of the span, with a charge: never more than members attain."""
    rng = np.random.default_rng(4)
    grid = np.linspace(0, 1, 25)
    for space in (ls.RKHS(RBF(0.3), 2.0), ls.RKHS(RBF(0.3), 2.0, domain=grid)):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.3), space, voices=None)
        x = rng.choice(grid, size=40)
        sequence.update(x[:, None], np.sin(3 * x) + 0.3 * rng.normal(size=40))
        s = sequence.set
        points = np.array([[grid[2]], [grid[12]], [grid[23]]])
        low, high = s.interval(points)
        for c in (low - 0.1, low + 0.1, high - 0.1):
            found = s.evidence(points, below=c)
            assert np.array_equal(found.e_value > 20, low > c)
            if getattr(space, "domain", None) is not None:
                for i, point in enumerate(points):  # members on the way: bounds at other levels
                    for level in (0.8, 0.3, 0.01, 1e-4):
                        member = s._at(level).support(point[None], sign=-1.0).maximisers[0]
                        if member[np.argmin(np.abs(grid - point[0]))] <= c[i]:
                            assert found.log_e_value[i] <= s.log_ratio(member) + 1e-6


def test_a_charge_is_taken_off():
    rng = np.random.default_rng(5)
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.RKHS(RBF(0.3), 4.0), voices=None)
    x = np.sort(rng.uniform(size=300))[:, None]
    sequence.update(x, np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=300))
    s = sequence.set
    assert s.charge > 0.0
    low = s.lower([[0.5]])
    found = s.evidence([[0.5]], below=low - 0.05)
    assert np.log(20) < found.log_e_value[0] < np.inf
    assert found.gap[0] >= 2 * s.charge * 0.5
    back = s.lower([[0.5]], alpha=float(np.exp(-found.log_e_value[0])))
    assert back[0] >= low[0] - 0.05 - 1e-6


def test_an_empty_set_refutes_every_hypothesis():
    sequence = ls.ConfidenceSequence(ls.Gaussian(0.1), ls.Linear(2, 1.0))
    sequence.update([[1.0, 0.0]] * 3, [50.0] * 3)
    assert sequence.set.is_empty
    for sense in ("below", "above", "equal"):
        assert (sequence.set.evidence(np.eye(2), **{sense: 0.3}).e_value > 20).all()


def test_without_data_there_is_no_evidence_except_against_the_impossible():
    s = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.0)).set
    found = s.evidence([[3.0, 4.0]], below=[-5.1, -4.9, 0.0, 7.0])
    assert found.log_e_value[0] == np.inf and found.p_value[0] == 0.0
    assert (found.p_value[1:] == 1.0).all() and found.log_e_value[1:] == pytest.approx(0.0, abs=1e-9)
    assert (found.gap < 1e-6).all()
    # A direction that no covariate has touched: half of Theta is always allowed.
    sequence = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(2, 1.0), alarm=False)  # twenty equal counts are suspicious
    sequence.update([[1.0, 0.0]] * 20, [1] * 20)
    assert sequence.set.evidence([0.0, 1.0], below=-0.5).p_value[0] == 1.0
    assert sequence.set.evidence([0.0, 1.0], below=-1.01).p_value[0] == 0.0


def test_unbounded_theta_with_directions_never_seen():
    sequence = ls.ConfidenceSequence(ls.Gaussian(1.0), ls.Linear(2, np.inf), voices=None)
    sequence.update([[1.0, 0.0]] * 30, np.linspace(0.5, 1.5, 30))
    found = sequence.set.evidence([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], above=[1e6, 0.0, 3.0])
    assert (found.p_value[:2] == 1.0).all() and found.p_value[2] < 1e-6
    assert (found.gap <= 1e-5).all()


def test_a_false_alarm_is_as_rare_as_promised_and_the_hypothesis_that_is_false_is_found():
    """250 adaptive runs, ten looks each; the null is true with equality. False-alarm probability of the test: 1e-6."""
    rng, alpha, runs = np.random.default_rng(6), 0.05, 250
    theta, contrast = np.array([0.6, 0.3]), np.array([1.0, -1.0])
    wrong = found = naive = 0
    for _ in range(runs):
        sequence = ls.ConfidenceSequence(ls.Gaussian(0.5), ls.Linear(2, 2.0), alpha, voices=None)
        sums, counts = np.zeros(2), np.zeros(2)
        rejected = powerful = fooled = False
        for _ in range(10):
            # Greedy and noisy: the arm that looks better is played, so means are biased.
            arms = np.argmax((sums / np.maximum(counts, 1)) + 0.3 * rng.normal(size=(4, 2)), axis=1)
            y = theta[arms] + 0.5 * rng.normal(size=4)
            sequence.update(np.eye(2)[arms], y)
            np.add.at(sums, arms, y)
            np.add.at(counts, arms, 1)
            found_now = sequence.set.evidence(contrast, below=[contrast @ theta, -0.6])
            rejected |= bool(found_now.p_value[0] <= alpha)
            powerful |= bool(found_now.p_value[1] <= alpha)
            if counts.min() > 0:
                z = (contrast @ (sums / counts) - contrast @ theta) / (0.5 * np.sqrt((1 / counts).sum()))
                fooled |= bool(norm.sf(z) <= alpha)
        wrong, found, naive = wrong + rejected, found + powerful, naive + fooled
    most = binom.ppf(1 - 1e-6, runs, alpha)
    assert wrong <= most
    assert naive > most  # a p-value that is not made for looking repeatedly would not pass
    assert found > runs / 2


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x": [1.0, 0.0, 0.0]},
        {"x": [1.0, 0.0, 0.0], "below": 0.0, "above": 1.0},
        {"x": [1.0, 0.0], "below": 0.0},
        {"x": [1.0, 0.0, 0.0], "below": np.nan},
        {"x": np.eye(3), "below": [0.0, 1.0]},
        {"x": np.eye(3), "below": [[0.0, 1.0, 2.0]]},
        {"theta": [0.0, 0.0]},
        {"theta": [0.0, 0.0, 0.0], "below": 1.0},
        {"theta": [0.0, 0.0, 0.0], "x": np.eye(3)},
        {"below": 0.0},
    ],
    ids=str,
)
def test_what_is_no_hypothesis_is_refused(arguments):
    with pytest.raises(ls.LikesetError):
        filled(ls.Poisson(), n=5).set.evidence(**arguments)


def test_one_row_serves_many_bounds():
    s = filled(ls.Poisson()).set
    many = s.evidence([1.0, 0.0, 0.0], above=[0.5, 1.0, 1.5])
    assert many.log_e_value.shape == (3,) and (np.diff(many.log_e_value) > 0).all()
    assert many.log_e_value[1] == pytest.approx(s.evidence([1.0, 0.0, 0.0], above=1.0).log_e_value[0], abs=1e-5)


def test_no_rows_have_no_evidence():
    found = filled(ls.Gaussian(0.5)).set.evidence(np.zeros((0, 3)), above=1.0)
    assert found.log_e_value.shape == found.gap.shape == (0,)


def test_no_rows_have_no_bounds_of_a_function():
    found = filled(ls.Gaussian(0.5)).set.bounds_of(lambda a, b: a - b, np.zeros((0, 3)), np.zeros((1, 3)))
    assert found.lower.shape == found.upper.shape == found.gap.shape == (0,)


def test_sets_that_are_no_e_processes_say_so():
    rival = comparison.applicable(ls.Gaussian(0.5), ls.Linear(2, 1.0), 0.1)
    levels = [c for c in rival.values() if hasattr(c.set, "has_other_levels")]
    assert levels
    for rival in levels:
        with pytest.raises(ls.InvalidArgumentError, match="e-process"):
            rival.set.evidence([1.0, 0.0], below=0.0)
        with pytest.raises(ls.InvalidArgumentError, match="alpha"):
            rival.set.interval([1.0, 0.0], alpha=0.01)
