"""Sets cut with half-spaces and other norms: certified bounds, equal to CVXPY's, attained in the cut."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest

import likeset as ls

THETA = np.array([0.5, 0.1, -0.3])


def filled(family, n=40, bound=2.0, seed=0, voices=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    sequence = ls.ConfidenceSequence(family, ls.Linear(3, bound), voices=voices)
    sequence.update(X, family.sample(X @ THETA, rng))
    return sequence


def cvxpy_upper(sequence, x, G, least):
    ledger, bound = sequence.ledger, sequence.space.bound
    theta = cp.Variable(3)
    z, y = ledger.x.rows @ theta, ledger.y.rows
    if isinstance(sequence.family, ls.Gaussian):
        sigma = sequence.family.sigma
        loss = cp.square(y - z) / (2 * sigma**2) + np.log(sigma * np.sqrt(2 * np.pi))
    else:
        a, s, h = sequence.family.statistics(y)
        curve = cp.exp(z) if int(sequence.family.curve) == 1 else cp.logistic(z)
        loss = cp.multiply(a, curve) - cp.multiply(s, z) - h
    constraints = [cp.sum(loss) + ledger.log_q.rows.sum() <= np.log(20), cp.norm(theta) <= bound, G @ theta >= least]
    problem = cp.Problem(cp.Maximize(x @ theta), constraints)
    problem.solve(solver=cp.CLARABEL)
    return problem.value


def check(cut, Q, exact, accuracy=1e-6):
    """Outer bounds that agree with CVXPY's, attained within the stated gap by members of the cut."""
    found, exact = cut.support(Q), np.asarray(exact)
    np.testing.assert_allclose(found.upper, exact, atol=accuracy)
    assert (found.upper >= exact - 1e-7).all()  # CVXPY's own error
    assert (found.gap >= 0.0).all() and (found.gap <= accuracy).all()
    np.testing.assert_allclose(np.einsum("ij,ij->i", Q, found.maximisers), found.values, atol=1e-8)
    slack = found.maximisers @ cut._G.T - cut._least
    assert (slack >= -1e-8).all() and cut.whole.contains(found.maximisers).all()


SEVERAL = {
    "one": (np.array([[0.0, 1.0, 0.0]]), np.array([0.05])),
    "box": (np.vstack([np.eye(3), -np.eye(3)]), np.array([0.0, 0.0, -1.0, -1.0, -0.3, 0.0])),
    "order": (np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]), np.array([0.3, 0.2])),
    "nearly the same, and repeated": (
        np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1e-9], [1.0, 2.0, 1e-3], [100.0, 200.0, 0.0], [0.0, 0.0, 0.0]]),
        np.array([0.5, 0.5, 0.5, 50.0, -1.0]),
    ),
    "an equality": (np.array([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]), np.array([0.55, -0.55])),
}


@pytest.mark.parametrize("case", SEVERAL)
@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson(), ls.Bernoulli()], ids=repr)
def test_several_half_spaces_agree_with_cvxpy(family, case):
    sequence = filled(family)
    G, least = SEVERAL[case]
    cut = sequence.set.given(G, at_least=least)
    Q = np.random.default_rng(1).normal(size=(3, 3))
    check(cut, Q, np.array([cvxpy_upper(sequence, x, G, least) for x in Q]))
    (low, high), (least_low, most_high) = cut.interval(Q), sequence.set.interval(Q)
    assert (high <= most_high + 1e-9).all() and (low >= least_low - 1e-9).all()
    assert (high - low < 0.999 * (most_high - least_low)).any()
    np.testing.assert_allclose(low, [-cvxpy_upper(sequence, -x, G, least) for x in Q], atol=1e-6)


def test_laplace_noise_and_ten_dimensions():
    rng = np.random.default_rng(0)
    X, theta = rng.normal(size=(60, 10)), 0.3 * rng.normal(size=10)
    sequence = ls.ConfidenceSequence(ls.Laplace(0.5), ls.Linear(10, 2.0), voices=None)
    sequence.update(X, X @ theta + rng.laplace(scale=0.5, size=60))
    s, Q, t = sequence.set, rng.normal(size=(3, 10)), cp.Variable(10)
    loss = cp.sum(cp.abs(sequence.ledger.y.rows - X @ t)) / 0.5 + 60 * np.log(1.0)
    inside = [loss + sequence.ledger.log_q.rows.sum() <= np.log(20), cp.norm(t) <= 2.0]
    signs = np.where(theta > 0, 1.0, -1.0)
    G = np.vstack([np.diag(signs), np.eye(10)[:-1] - np.eye(10)[1:]])
    least = np.concatenate([np.abs(theta) - 0.05, -np.abs(np.diff(theta)) - 0.02])
    for cut, more in (
        (s.given(G, at_least=least), [G @ t >= least]),
        (s.given(np.eye(10), at_most=0.9 * np.abs(theta).sum(), norm=1), [cp.norm1(t) <= 0.9 * np.abs(theta).sum()]),
    ):
        exact = []
        for x in Q:
            problem = cp.Problem(cp.Maximize(x @ t), inside + more)
            problem.solve(solver=cp.CLARABEL)
            exact.append(problem.value)
        check(cut, Q, np.array(exact))


@pytest.mark.parametrize("family", [ls.Gaussian(0.5), ls.Poisson()], ids=repr)
def test_other_norms(family):
    sequence = filled(family)
    s, Q = sequence.set, np.random.default_rng(1).normal(size=(4, 3))
    A = np.array([[1.0, 0.0, 0.0], [0.3, 2.0, 0.0], [0.0, -0.5, 1.0]])
    every = np.array(list(product([1.0, -1.0], repeat=3))) @ A
    check(s.given(A, at_most=0.8, norm=1), Q, [cvxpy_upper(sequence, x, -every, np.full(8, -0.8)) for x in Q])
    ball = s.given(np.eye(3), at_most=0.35, norm=np.inf)
    check(ball, Q, [cvxpy_upper(sequence, x, *_box(0.35)) for x in Q])
    both = ball.given(np.eye(3), at_most=0.7, norm=1)
    assert (both.upper(Q) <= np.minimum(ball.upper(Q), s.given(np.eye(3), at_most=0.7, norm=1).upper(Q)) + 1e-9).all()
    inner = both._bounds.inner
    assert both.contains(inner) and not both.contains(inner + np.array([0.0, 0.0, 0.75]))


def _box(r):
    return np.vstack([np.eye(3), -np.eye(3)]), np.full(6, -r)


def test_without_a_bound_half_spaces_may_bound_theta():
    empty = ls.ConfidenceSequence(ls.Poisson(), ls.Linear(3)).set
    Q = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 0.0]])
    box = empty.given(np.eye(3), at_least=-1.0, at_most=2.0)
    np.testing.assert_allclose(box.upper(Q), [2.0 + 2.0 + 1.0, 2.0], rtol=1e-9)
    np.testing.assert_allclose(empty.given(np.eye(3), at_most=2.0, norm=1).upper(Q), [4.0, 2.0], rtol=1e-6)
    half = empty.given([0.0, 1.0, 0.0], at_most=2.0)
    np.testing.assert_allclose(half.upper(Q), [np.inf, 2.0])
    sequence = filled(ls.Poisson(), bound=np.inf)
    G, least = SEVERAL["order"]
    exact = [cvxpy_upper(sequence, x, G, least) for x in Q]
    check(sequence.set.given(G, at_least=least), Q, exact)


@pytest.mark.parametrize("voices", [None, ls.Patience()], ids=repr)
def test_ellipsoids_voices_and_unknown_scales(voices):
    rng = np.random.default_rng(5)
    X = np.sort(rng.normal(size=(60, 3)), axis=0)
    y = X @ THETA + 0.5 * rng.normal(size=60)
    Q = rng.normal(size=(3, 3))
    pairs = [(ls.Gaussian(0.5), ls.LinearEllipsoid(np.diag([1.0, 0.5, 2.0]), 2.0))]
    if voices is None:
        pairs.append((ls.Gaussian(sigma=ls.Unknown()), ls.Linear(3)))
    for family, space in pairs:
        sequence = ls.ConfidenceSequence(family, space, voices=voices)
        sequence.update(X, y)
        cut = sequence.set.given(np.eye(3), at_least=THETA - 0.04, at_most=THETA + 0.2)
        found = cut.support(Q)
        assert (found.gap <= 1e-6).all() and sequence.set.contains(found.maximisers).all()
        points = rng.uniform(THETA - 0.04, THETA + 0.2, size=(4000, 3))
        values = points[sequence.set.contains(points)] @ Q.T
        assert len(values) > 20 and (values <= found.upper + 1e-9).all()
        assert (values.max(axis=0) > found.upper - 0.1).all()


def test_members_of_the_cut_stay_inside():
    s = filled(ls.Bernoulli(), voices="auto").set
    cut = s.given([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]], at_least=[0.2, 0.0])
    members = s.support(np.random.default_rng(2).normal(size=(400, 3))).maximisers
    inside = cut.contains(members)
    assert 10 < inside.sum() < 400
    Q = np.random.default_rng(3).normal(size=(5, 3))
    low, high = cut.interval(Q)
    values = members[inside] @ Q.T
    assert (low <= values + 1e-9).all() and (values <= high + 1e-9).all()
    assert cut.contains(THETA) is True and cut.contains(-THETA) is False


def test_a_cut_that_is_empty_says_so():
    s = filled(ls.Gaussian(0.2), n=200).set
    assert s.given([1.0, 0.0, 0.0], at_most=-0.5).is_empty
    assert not s.given([1.0, 0.0, 0.0], at_least=0.0).is_empty
    with pytest.raises(ls.EmptySetError):
        s.given([1.0, 0.0, 0.0], at_most=-0.5).interval([1.0, 0.0, 0.0])
    between = np.array([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])  # both plausible, but not at once
    assert not s.given(between[0], at_most=0.56).is_empty and not s.given(between[1], at_most=0.36).is_empty
    assert s.given(between, at_most=[0.52, 0.32]).is_empty == (s.given([1.0, 0.0, 0.0], at_most=0.42).is_empty)
    assert s.given(np.eye(3), at_most=0.5, norm=1).is_empty
    assert s.given([0.0, 0.0, 0.0], at_least=1.0).is_empty and not s.given([0.0, 0.0, 0.0], at_least=0.0).is_empty


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.given(np.eye(3)),
        lambda s: s.given(np.eye(3), at_least=[1.0, 2.0]),
        lambda s: s.given([1.0, 0.0], at_least=0.0),
        lambda s: s.given(np.eye(3), at_least=np.nan),
        lambda s: s.given(np.eye(3), at_least=0.0).upper([1.0]),
        lambda s: s.given(np.eye(3), at_most=1.0, norm=2),
        lambda s: s.given(np.eye(3), at_most=-1.0, norm=1),
        lambda s: s.given(np.eye(3), norm=1),
        lambda s: s.given(np.eye(3), at_least=0.0, at_most=1.0, norm=1),
    ],
)
def test_what_is_no_half_space_is_refused(call):
    with pytest.raises(ls.LikesetError):
        call(filled(ls.Poisson(), n=5).set)
