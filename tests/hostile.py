"""Values that users pass by mistake or out of malice; test_fuzz.py draws from them."""

import datetime
import decimal
import fractions
import functools
import pathlib

import numpy as np

import likeset as ls

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
        None, float("nan"), float("inf"), -float("inf"), -0.0, 0, 0.0, -1, -1.5, 1e-320, 1e200, 1e308, -1e308, HUGE,
        -HUGE, 10**12, 1e12, 2**63, 2**64, 10**400, True, False, "", "a", "1", "0.5", "no", "auto", "mean",
        "a" * 3_000_000, b"", b"1", 1j, 1 + 0j, 0.5 + 1j, complex("nan"), ".", "/", "..", "\0", "x\0y", "n" * 300,
        "/nowhere/at/all", pathlib.Path("."), pathlib.Path("/proc/x/y"), [], (), {}, set(), [[]], [None], ["a"],
        [1, [2, 3]], [[1.0], [1.0, 2.0]], [[1.0, 2.0], 3.0], [[[1.0]]], [float("nan"), 1.0], [[1.0, float("inf")]],
        [HUGE, 1], [[HUGE, 1.0]], [1j, 2.0], [[1j, 0.0]], [True, "a"], [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
        [[0.1] * 9], [[1e99, 1e99]], [1e99], [[1e-99, 1e-99]], [1e-320, 0.0], [[0.0, 0.0]], {"a": 1.0}, {1.0, 2.0},
        frozenset([1]), range(3), range(10**12), decimal.Decimal("0.5"), decimal.Decimal("NaN"),
        decimal.Decimal("1e9999"), fractions.Fraction(1, 3), datetime.date(2020, 1, 1), NotImplemented, ..., slice(3),
        int, float, list, np.ndarray, ls.Gaussian, ls.Linear, ls.UCB, ls.ConfidenceSequence, ls, np, type, len,
        lambda: 1, lambda *a, **k: None, lambda *a, **k: "rubbish", lambda *a, **k: np.nan,
        lambda *a, **k: np.zeros(3), lambda *a, **k: [[1], [2, 3]], lambda *a, **k: 1j, _raises,
        np.random.default_rng, np.exp, np.sin, functools.partial(_raises, 1), np.random.RandomState, np.nan,
        np.bool_(True), np.str_("a"), np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.datetime64("NaT", "D"),
        np.clongdouble(1j), np.ma.masked,
    ]  # fmt: skip
    scalars = [np.dtype(code).type(1) for code in "bBhHiIlLqQefdgFD"]
    bare = [np.array(v) for v in (0.5, np.nan, 3, True, "a", b"a", 1j)] + [np.array(None), np.array(HUGE)]
    arrays = [
        np.zeros(0), np.zeros((0, 2)), np.zeros((2, 0)), np.zeros((1, 2)), np.zeros((3, 3, 3)), np.ones(7),
        np.ones((2, 5)), np.full((1, 2), np.nan), np.array([[0.1, 0.2]], dtype=np.float32),
        np.array([[1, 2]], dtype=np.int8), np.array([["a", "b"]]), np.array([1j, 2.0]), np.array([[1j, 2.0]]),
        np.array([None, 1.0], dtype=object), np.array([[0.1, 0.2]], dtype=object),
        np.array([[1.0, [2]]], dtype=object), _unprintable_entry(), np.array([HUGE], dtype=object),
        np.array(["2020-01-01"], dtype="datetime64[D]"), np.array([1, 2], dtype="timedelta64[s]"),
        np.zeros(2, dtype=[("a", float)]), np.ma.masked_array([1.0, 2.0], [True, False]),
        np.ma.masked_array([[0.1, 0.2]], [[False, False]]), np.array([[0.1, 0.2]]).view(np.matrix),
        np.array([[0.1, 0.2]]).astype(">f8"), np.broadcast_to(0.5, (10**9,)), np.broadcast_to(0.5, (10**9, 2)),
        np.broadcast_to(np.float32(0.5), (2, 10**9)), np.broadcast_to(1, (10**5, 10**5)),
        np.broadcast_to("a", (10**9,)), np.broadcast_to(np.array(None), (10**9,)), np.ones(400)[::-2],
        np.ones((1, 1, 1, 1, 1)), np.array([1e200, 1.0]), np.array([[5e-324, 0.0]]), np.array([False, True]),
        np.recarray((1,), dtype=[("x", float)]),
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
