"""Values that users pass by mistake or out of malice, and live objects of every public kind: what test_fuzz.py draws from."""

import copy
import datetime
import decimal
import fractions
import functools
import pathlib

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import likeset as ls
from likeset import checks, comparison, environments, theory

HUGE = 10**5000  # more digits than Python is willing to print


class Unprintable:
    """Its repr raises, and so does everything else one might try on it."""

    def __repr__(self):
        raise RuntimeError("no repr")

    def __len__(self):
        raise RuntimeError("no length")

    def __float__(self):
        raise RuntimeError("no number")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array")

    def __bool__(self):
        raise RuntimeError("no truth")

    def __eq__(self, other):
        raise RuntimeError("no equality")

    __hash__ = None


class Chatty:
    """Its repr is long."""

    def __repr__(self):
        return "chatty " * 100_000


def _raises(*args, **kwargs):
    raise KeyError("a function of the user's own fails")


def _generator():
    yield from (0.1, 0.2)


def _self_containing():
    inside = []
    inside.append(inside)
    return inside


def _unprintable_entry():
    array = np.empty(1, dtype=object)
    array[0] = Unprintable()
    return array


def hostile_values():
    """Makers of hostile values, so that each call gets a fresh one."""
    plain = [
        None, float("nan"), float("inf"), -float("inf"), -0.0, 0, 0.0, -1, -1.5, 1e-320, 1e200, 1e308, -1e308, HUGE, -HUGE, 10**12, 1e12,
        2**63, 2**64, 10**400, True, False, "", "a", "1", "0.5", "no", "auto", "mean", "a" * 3_000_000, b"", b"1", 1j, 1 + 0j, 0.5 + 1j,
        complex("nan"), ".", "/", "..", "\0", "x\0y", "n" * 300, "/nowhere/at/all", pathlib.Path("."), pathlib.Path("/proc/x/y"), [], (),
        {}, set(), [[]], [None], ["a"], [1, [2, 3]], [[1.0], [1.0, 2.0]], [[1.0, 2.0], 3.0], [[[1.0]]], [float("nan"), 1.0],
        [[1.0, float("inf")]], [HUGE, 1], [[HUGE, 1.0]], [1j, 2.0], [[1j, 0.0]], [True, "a"], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
        [[0.1] * 9], [[1e99, 1e99]], [1e99], [[1e-99, 1e-99]], [1e-320, 0.0], [[0.0, 0.0]], {"a": 1.0}, {1.0, 2.0}, frozenset([1]),
        range(3), range(10**12), decimal.Decimal("0.5"), decimal.Decimal("NaN"), decimal.Decimal("1e9999"), fractions.Fraction(1, 3),
        datetime.date(2020, 1, 1), NotImplemented, ..., slice(3), int, float, list, np.ndarray, ls.Gaussian, ls.Linear, ls.UCB,
        ls.ConfidenceSequence, ls, np, type, len, lambda: 1, lambda *a, **k: None, lambda *a, **k: "rubbish", lambda *a, **k: np.nan,
        lambda *a, **k: np.zeros(3), lambda *a, **k: [[1], [2, 3]], lambda *a, **k: 1j, _raises, np.random.default_rng, np.exp, np.sin,
        functools.partial(_raises, 1), np.random.RandomState, np.nan, np.bool_(True), np.str_("a"), np.datetime64("2020-01-01"),
        np.timedelta64(3, "s"), np.datetime64("NaT"), np.clongdouble(1j), np.ma.masked,
    ]  # fmt: skip
    scalars = [np.dtype(code).type(1) for code in "bBhHiIlLqQefdgFD"]
    bare = [np.array(v) for v in (0.5, np.nan, 3, True, "a", b"a", 1j)] + [np.array(None), np.array(HUGE)]
    arrays = [
        np.zeros(0), np.zeros((0, 2)), np.zeros((2, 0)), np.zeros((1, 2)), np.zeros((3, 3, 3)), np.ones(7), np.ones((2, 5)),
        np.full((1, 2), np.nan), np.array([[0.1, 0.2]], dtype=np.float32), np.array([[1, 2]], dtype=np.int8), np.array([["a", "b"]]),
        np.array([1j, 2.0]), np.array([[1j, 2.0]]), np.array([None, 1.0], dtype=object), np.array([[0.1, 0.2]], dtype=object),
        np.array([[1.0, [2]]], dtype=object), _unprintable_entry(), np.array([HUGE], dtype=object),
        np.array(["2020-01-01"], dtype="datetime64[D]"), np.array([1, 2], dtype="timedelta64[s]"), np.zeros(2, dtype=[("a", float)]),
        np.ma.masked_array([1.0, 2.0], [True, False]), np.ma.masked_array([[0.1, 0.2]], [[False, False]]), np.matrix([[0.1, 0.2]]),
        np.array([[0.1, 0.2]]).astype(">f8"), np.broadcast_to(0.5, (10**9,)), np.broadcast_to(0.5, (10**9, 2)),
        np.broadcast_to(np.float32(0.5), (2, 10**9)), np.broadcast_to(1, (10**5, 10**5)), np.broadcast_to("a", (10**9,)),
        np.broadcast_to(np.array(None), (10**9,)), np.ones(40_000)[::-2], np.ones((1, 1, 1, 1, 1)), np.array([1e200, 1.0]),
        np.array([[5e-324, 0.0]]), np.array([False, True]), np.recarray((1,), dtype=[("x", float)]),
    ]  # fmt: skip
    makers = [lambda v=v: v for v in (*plain, *scalars, *bare, *arrays)]
    return [
        *makers,
        _generator,
        Unprintable,
        Chatty,
        _self_containing,
        lambda: iter([1.0]),
        lambda: memoryview(b"12345678"),
        object,
    ]


# -- live objects -----------------------------------------------------------------------------------------------------------


def logistic_noise(y, z):
    u = np.abs(y - z)
    return u + 2 * np.log1p(np.exp(-u))


class LiveObjects:
    """A few small objects of every public kind; sequences and policies are handed out as copies."""

    def __init__(self, folder):
        self.folder = folder
        self.rng = np.random.default_rng(5)
        self.own = ls.CustomFamily(logistic_noise, support="real", convex=True, name="Logistic")
        self.families = [*checks.built_in_families(), ls.Weibull(2.0), ls.LogWeibull(0.7), self.own]
        self.plane = ls.Linear(dim=2, bound=1.5)
        self.grid = ls.RKHS(RBF(0.3), bound=2.0, domain=np.linspace(0.0, 1.0, 7))
        self.line = ls.RKHS(RBF(0.3), bound=2.0)
        self.spaces = [self.plane, ls.Linear(1, 2.0), ls.Linear(2, np.inf), ls.Linear(3, 1.0), self.grid, self.line]
        self.predictors = checks.built_in_predictors()
        self.weightings = checks.built_in_weightings()
        around = ls.Windows([[1.0, 0.0], [0.0, 1.0]], joint_share=0.3)
        listed = ls.Windows.from_masks([[0.8, 0.1], [0.3, 0.9]], [[True, False]])
        self.windows = [around, listed, ls.Windows.covering(self.grid)]
        self.sequences = [self._fed(f, self.plane) for f in self.families]
        self.sequences += [self._fed(ls.Gaussian(0.3), s) for s in self.spaces[1:]]
        self.sequences += [self._fed(ls.Poisson(), self.plane, predictor=p) for p in self.predictors]
        self.sequences += [self._fed(ls.Bernoulli(), self.plane, weighting=w) for w in self.weightings]
        self.sequences += [self._fed(f, self.plane, windows=w) for f in self.families[:4] for w in (around, listed)]
        self.sequences += [
            ls.ConfidenceSequence(ls.Poisson(), self.grid),
            ls.ConfidenceSequence(ls.Gaussian(), self.plane),
        ]
        self.refuted = ls.ConfidenceSequence(ls.Gaussian(0.1), self.plane)
        self.refuted.update([[1.0, 0.0]] * 3, [50.0] * 3)
        self.sequences.append(self.refuted)
        rivals = [*comparison.applicable(ls.Gaussian(0.5), self.plane, 0.1).values()]
        rivals += comparison.applicable(ls.Poisson(), self.plane, 0.1).values()
        rivals += comparison.applicable(ls.Laplace(0.5), self.grid, 0.1).values()
        self.comparisons = [self._feed(c) for c in rivals]
        self.sets = [s.set for s in (*self.sequences, *self.comparisons)]
        self.environments = [
            environments.linear(dim=2, n_arms=4), environments.contexts(dim=2, n_arms=3),
            environments.from_function(np.sin, np.linspace(0.0, 1.0, 7), RBF(0.5)),
        ]  # fmt: skip
        self.policies = self._make_policies()
        policy = ls.UCB(self.environments[0].sequence(), self.environments[0].arms)
        self.traces = [ls.simulate(policy, self.environments[0], 3, 0, width_every=2)]
        x = self.rows(self.plane)
        self.small = comparison.compare(ls.Gaussian(0.5), self.plane, [0.4, -0.3], np.eye(2), rounds=3, repeats=1)
        self.results = [
            *self.traces, self.small, self.sequences[0].set.support([[1.0, 0.0]]), self.policies[2].certificate, ls.Reward(np.exp),
            theory.LogPartition(ls.Poisson(), x, nu=1.0), theory.Curvature.of(ls.Poisson(), 1.5, x),
            theory.bregman_information_gain(ls.Gaussian(), x, nu=1.0),
            theory.vaw_regret_bound(ls.Gaussian(), x, np.ones(len(x)), [0.1, 0.2], penalty=1.0, bound=1.5, delta=0.1),
            self.grid.norm(np.ones(7)), ls.PlugIn(ls.Poisson(), 0.3), ls.Embedded(x[0], x[0], 0), *comparison_constants(rivals),
        ]  # fmt: skip
        self.saved = str(folder / "saved.likeset")
        self.sequences[0].save(self.saved)

    def rows(self, space):
        if getattr(space, "domain", None) is not None:
            return space.domain[[1, 4, 1]]
        return np.array([[0.8, 0.1, 0.4], [0.3, 0.9, -0.2], [0.8, 0.1, 0.4]])[:, : space.covariate_shape[0]]

    def outcome(self, family, count):
        return family.sample(np.full(count, 0.2), np.random.default_rng(3))

    def all(self):
        return [
            *self.families, *self.spaces, *self.predictors, *self.weightings, *self.windows, *self.sequences, *self.comparisons,
            *self.sets, *self.environments, *self.policies, *self.results,
        ]  # fmt: skip

    def handed_out(self, thing):
        """What a call may do as it likes to: a copy of what can change."""
        return copy.deepcopy(thing) if can_change(thing) else thing

    def _fed(self, family, space, **options):
        return self._feed(ls.ConfidenceSequence(family, space, 0.1, **options))

    def _feed(self, sequence):
        x = self.rows(sequence.space)
        sequence.update(x, self.outcome(sequence.family, len(x)))
        return sequence

    def _make_policies(self):
        def fresh(space, **options):
            return ls.ConfidenceSequence(ls.Gaussian(0.3), space, 0.1, **options)

        arms = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]
        certain = ls.Elimination(fresh(self.plane), np.eye(2))
        while not certain.stopped:
            certain.tell(certain.ask(), [1.0, -1.0][certain.ask()])
        policies = [
            ls.UCB(fresh(self.plane), arms), ls.UCB(fresh(self.line), bounds=[[0.0, 1.0]]), certain, ls.UCB(fresh(self.plane)),
            ls.UCB(self._fed(ls.Poisson(), self.grid), reward="mean", rng=1), ls.Elimination(fresh(self.plane), arms),
            ls.LowerBound(fresh(self.plane), arms), ls.UCB(fresh(self.plane), arms, running_intersection=False, reward="decreasing"),
            ls.UCB(self.comparisons[0], arms),
        ]  # fmt: skip
        policies[0].tell(policies[0].ask(), 0.3)
        return policies


def comparison_constants(rivals):
    return [c.constants for c in rivals if hasattr(c, "constants")][:1]


def can_change(thing):
    return isinstance(thing, (ls.ConfidenceSequence, comparison.Comparison, ls.UCB, ls.Elimination, ls.LowerBound))


def fingerprint(thing):
    """Everything of a sequence, comparison set or policy that an error must leave alone."""
    if hasattr(thing, "ask"):
        return (
            *fingerprint(thing.seq), getattr(thing, "certificate", None) is None, np.array(getattr(thing, "active", 0)).tobytes(),
            b"" if thing.arms.current is None else thing.arms.current.tobytes(),
        )  # fmt: skip
    ledger = thing.ledger if isinstance(thing, ls.ConfidenceSequence) else thing._stream.ledger
    record = tuple(array.tobytes() for _, array in sorted(ledger.state().items()))
    space = thing.space
    probe = np.full(space.covariate_shape if getattr(space, "domain", ()) is not None else (0,), 0.01)
    if getattr(space, "domain", None) is not None:
        probe = np.full(len(space.domain), 0.01)
    ratio = thing.set.log_ratio(probe) if len(probe) and hasattr(thing.set, "log_ratio") else 0.0
    return (thing.n_observations, repr(getattr(thing, "windows", None)), *record, ratio)
