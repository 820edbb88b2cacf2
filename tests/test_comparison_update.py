"""Updates of comparison sets happen or do not: interrupts, errors in the middle of a batch, threads."""

import copy
import sys
import threading

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset.comparison import COMPARISONS, Comparison, applicable
from likeset.comparison.likelihood import level_snapshot
from test_update import interrupted

GRID = np.linspace(0.0, 1.0, 9)
PLANE, LINE = ls.Linear(2, 1.5), ls.RKHS(RBF(0.2), 2.0, domain=GRID)
ARMS = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, np.pi, 8, endpoint=False)])
OWN_FAMILY = ls.CustomFamily(lambda y, z: 0.5 * (y - z) ** 2 + 0.5 * np.log(2 * np.pi), support="real", convex=True)


class AgainstZero(Comparison):
    """A set of the user's own, which writes into its attributes, makes new ones, and says nothing of keeping them."""

    name, provable, anytime = "against zero", True, True
    assumptions, source = "the family, theta* in Theta", "a test"

    def __init__(self, space, alpha, family):
        super().__init__(space, alpha, family)
        self.losses, self.record = np.zeros(1), {"seen": []}

    @classmethod
    def for_model(cls, family, space, alpha):
        return cls(space, alpha, family)

    def _observe(self, phi, y):
        self.losses[0] -= float(self.family.log_density(y, 0.0))
        self.record["seen"].append(float(np.ravel(y)[0]))
        self.newest = phi.index

    def _snapshot(self):
        return level_snapshot(self._stream, self.alpha, float(self.losses[0]))


def cases():
    models = [(ls.Gaussian(0.3), PLANE), (ls.Poisson(), PLANE), (ls.Laplace(0.3), LINE), (ls.Weibull(2.0), PLANE)]
    models.append((ls.Gaussian(ls.Unknown()), PLANE))
    found = {(type(one), family, space) for family, space in models for one in applicable(family, space, 0.1).values()}
    found |= {(AgainstZero, ls.Poisson(), PLANE), (AgainstZero, OWN_FAMILY, PLANE)}
    found |= {(ls.comparison.SequentialMixing, OWN_FAMILY, PLANE)}
    assert {cls for cls, *_ in found} == {*COMPARISONS, AgainstZero}
    named = {f"{cls.name}-{family!r}-{type(space).__name__}": (cls, family, space) for cls, family, space in found}
    return [pytest.param(*case, id=name) for name, case in sorted(named.items())]


def rows(family, space, n, seed):
    rng = np.random.default_rng(seed)
    x = ARMS[rng.integers(len(ARMS), size=n)] if space is PLANE else GRID[rng.integers(len(GRID), size=n)]
    law = family.known(0.3) if hasattr(family, "known") else family
    return x, law.sample(np.full(n, 0.1), rng)


def begun(cls, family, space):
    one = cls.for_model(family, space, 0.1)
    one.update(*rows(family, space, 5, seed=1))
    return one


def fingerprint(one):
    """Everything that decides what a set will say, as text; first its answer, which finishes what was left undone."""
    bounds = one.set.upper(ARMS if isinstance(one.space, ls.Linear) else GRID)
    own = {k: _plain(v) for k, v in sorted(vars(one).items()) if k not in ("_lock", "_set", "space", "family")}
    return repr((one.n_observations, bounds.tobytes(), own))


def _plain(value):
    if isinstance(value, np.ndarray):
        value = np.trim_zeros(value, "b") if value.ndim == 1 else value  # room for more covariates is no difference
        return value.shape, value.tobytes()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items())}
    if isinstance(value, ls.comparison.base.Stream):
        return _plain({"ledger": value.ledger, "basis": value.basis})
    if hasattr(value, "state"):
        return {k: _plain(v) for k, v in sorted(value.state().items())}
    if isinstance(value, ls.comparison.least_squares.LeastSquares):
        return _plain(vars(value))
    return repr(value)


def check_interrupts(cls, family, space, n, share, seed, twice=False, instructions=False):
    """Interrupt an update of n rows at a random share of its steps; each time, all or nothing, bit for bit."""
    rng = np.random.default_rng(seed)
    batch, following = rows(family, space, n, seed=2), rows(family, space, 2, seed=3)
    start = begun(cls, family, space)
    before, done = copy.deepcopy(start), copy.deepcopy(start)
    total, _ = interrupted(done, batch, at=(), instructions=instructions)
    old, new = fingerprint(before), fingerprint(done)
    assert old != new and total > 50
    ends = {}
    for one, state in [(before, old), (done, new)]:
        one.update(*following)
        ends[state] = fingerprint(one)
    outcomes = []
    for k in np.flatnonzero(rng.random(total) < share) + 1:
        one = copy.deepcopy(start)
        at = (int(k), int(k + rng.integers(1, 40))) if twice else (int(k),)
        steps, stopped = interrupted(one, batch, at, instructions)
        found = fingerprint(one)
        # Copies share the buffer of a kernel's basis, so a later one may take a few steps less, and end before.
        assert stopped or steps < k, f"interrupt {at} of {total}: swallowed"
        assert found in ((old, new) if stopped else (new,)), f"interrupt {at} of {total}: a torn state"
        outcomes.append(found == old)
        one.update(*following)
        assert fingerprint(one) == ends[found], f"interrupt {at} of {total}: it goes on differently"
    return outcomes


@pytest.mark.parametrize(("cls", "family", "space"), cases())
def test_an_interrupt_leaves_the_old_state_or_the_new_one(cls, family, space):
    share = 0.01 if family is OWN_FAMILY else 0.05
    once = check_interrupts(cls, family, space, 2, share, seed=0)
    assert any(once + check_interrupts(cls, family, space, 2, share, seed=1, twice=True))


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "family", "space"), cases())
def test_interrupts_everywhere(cls, family, space):
    share = 0.1 if family is OWN_FAMILY else 1.0
    check_interrupts(cls, family, space, 1, share, seed=0)
    check_interrupts(cls, family, space, 3, 0.3 * share, seed=0, twice=True)
    check_interrupts(cls, family, space, 2, 0.1 * share, seed=0, instructions=True)


@pytest.mark.parametrize(("cls", "family", "space"), cases())
def test_an_invalid_row_in_the_middle_of_a_batch_leaves_the_old_state(cls, family, space):
    one = begun(cls, family, space)
    old, (x, y) = fingerprint(one), rows(family, space, 5, seed=2)
    torn = y.copy()
    torn[2] = np.nan
    far = x.copy()
    far[2] = np.nan
    for bad in ((x, torn), (far, y), (x, y[:-1])):
        with pytest.raises(ls.LikesetError):
            one.update(*bad)
        assert fingerprint(one) == old


@pytest.mark.parametrize("cls", [AgainstZero, ls.comparison.SequentialMixing, ls.comparison.ClassicalRatio])
def test_a_function_that_fails_in_the_middle_of_a_batch_leaves_the_old_state(cls):
    """What cannot be checked beforehand: a family of the user's own that fails at one outcome."""

    def fails_somewhere(y, z):
        if np.any(y == 0.123456):
            raise RuntimeError("no")
        return 0.5 * (y - z) ** 2 + 0.5 * np.log(2 * np.pi)

    family = ls.CustomFamily(fails_somewhere, support="real", convex=True)
    one = begun(cls, family, PLANE)
    old = fingerprint(one)
    with pytest.raises(ls.PieceError):
        one.update(ARMS[:3], [0.2, 0.123456, 0.3])
    assert fingerprint(one) == old


def test_a_set_that_cannot_be_copied_says_so():
    one = begun(AgainstZero, ls.Poisson(), PLANE)
    one.door = threading.Lock()
    with pytest.raises(ls.PieceError, match="_remember"):
        one.update(ARMS[0], 1)
    del one.door
    one.update(ARMS[0], 1)
    assert one.n_observations == len(one.record["seen"]) == 6


def test_a_set_cannot_be_asked_in_the_middle_of_its_own_update():
    class Curious(AgainstZero):
        def _observe(self, phi, y):
            super()._observe(phi, y)
            if len(self.record["seen"]) > 5:
                _ = self.set

    one = begun(Curious, ls.Poisson(), PLANE)
    with pytest.raises(ls.LikesetError, match="middle of its own update"):
        one.update(ARMS[0], 1)
    assert one.n_observations == len(one.record["seen"]) == 5


@pytest.mark.parametrize("cls", [AgainstZero, ls.comparison.SequentialMixing, ls.comparison.RegretGLM])
def test_threads_may_share_a_set(cls):
    one, errors, switch = begun(cls, ls.Poisson(), PLANE), [], sys.getswitchinterval()

    def write(seed):
        try:
            for x, y in zip(*rows(ls.Poisson(), PLANE, 100, seed), strict=True):
                one.update(x, y)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert not errors
    assert one.n_observations == 405
    replayed, ledger = cls.for_model(ls.Poisson(), PLANE, 0.1), one._stream.ledger
    replayed.update(ledger.x.rows[:5], ledger.y.rows[:5])
    for x, y in zip(ledger.x.rows[5:], ledger.y.rows[5:], strict=True):
        replayed.update(x, y)
    assert fingerprint(replayed) == fingerprint(one)
