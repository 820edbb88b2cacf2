r"""Losses of a family's own: a smooth convex function L(y, z) of z, compiled, for kernels that were compiled before it.

The three curves of :mod:`likeset.curves` are known to the kernels by number. Any other smooth likelihood is

    phi_k(z) = sum_i w_i L(y_i, z)        over the distinct outcomes y_i of covariate k,

and kernels reach L by the *address* of a compiled function. Its type is the same for every loss, so the kernels need no
compilation for a new one. The function is called for a block of outcomes at once, and its loop over them is compiled
with L inside: where L is straight-line code (:mod:`likeset.elementwise`), several outcomes are computed at once.

    block[0], block[1], block[2]    y, z, u          (BLOCK numbers each, ``count`` of them used)
    block[3], block[4], block[5]    L, L', L'' at z, or
                                    D(z, u) = L(z + u) - L(z) - L'(z) u,  L'(z + u) - L'(z),  L''(z + u)
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numba.np.unsafe import ndarray as unsafe

from likeset._typing import Array, IntArray
from likeset.compiling import kernel
from likeset.parts import worked_out

FOREIGN = -1  # stands where the number of a built-in curve does
BLOCK = 256  # a constant, so that the compiler knows that rows of a block do not overlap
_POINTER = types.CPointer(types.float64)  # type: ignore[no-untyped-call]
_SIGNATURE = types.void(types.int64, _POINTER, _POINTER)
_INTERPRETED = bool(getattr(numba.config, "DISABLE_JIT", False))
_INLINED: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}

Triple = tuple[float, float, float]


class Loss:
    """A smooth convex function L(y, z) of z for every real y, as code that numba can compile.

    Parameters
    ----------
    function : ``function(y, z, *parameters)`` of numbers, returning (L, L', L''), derivatives in z.
    remainder : ``remainder(y, z, u, *parameters)``, returning L(y, z + u) - L(y, z) - L'(y, z) u, the change
        L'(y, z + u) - L'(y, z), and L''(y, z + u), none of them by subtraction. Optional: without it the three are
        subtracted, which leaves few digits where u is small. What that may cost is added to bounds.

    Both are plain functions (or numba's); functions that they call are to be compiled by ``numba.njit``.

    >>> Loss(lambda y, z: (0.5 * (z - y) ** 2, z - y, 1.0)).at(np.array([1.0, 2.0]), 3.0, ())
    (array([2. , 0.5]), array([2., 1.]), array([1., 1.]))
    """

    def __init__(self, function: Callable[..., Triple], remainder: Callable[..., Triple] | None = None) -> None:
        self.function, self.remainder = function, remainder
        self.parameter_count = len(signature(_plain(function)).parameters) - 2

    @worked_out
    def _compiled(self) -> Any:
        return _loop(_with_nothing(_inlined(self.function)), self.parameter_count)

    @worked_out
    def _compiled_remainder(self) -> Any:
        own = _subtracted(_inlined(self.function)) if self.remainder is None else _inlined(self.remainder)
        return _loop(own, self.parameter_count)

    @property
    def address(self) -> int:
        """Where (L, L', L'') are computed."""
        return int(self._compiled.address)

    @property
    def remainder_address(self) -> int:
        """Where remainders are computed."""
        return int(self._compiled_remainder.address)

    def at(self, y: Any, z: Any, parameters: tuple[float, ...]) -> tuple[Array, Array, Array]:
        """L, L', L'' of arrays that broadcast."""
        y, z = np.broadcast_arrays(np.asarray(y, dtype=np.float64), np.asarray(z, dtype=np.float64))
        flat = np.ascontiguousarray(y).ravel(), np.ascontiguousarray(z).ravel()
        out = np.empty((3, flat[0].size))
        losses_at(self.address, np.array(parameters, dtype=np.float64), *flat, out)
        return out[0].reshape(y.shape), out[1].reshape(y.shape), out[2].reshape(y.shape)

    def __deepcopy__(self, memo: dict[int, Any]) -> Loss:
        return self  # immutable, and compiled once

    def __reduce__(self) -> tuple[Any, ...]:
        return Loss, (self.function, self.remainder)


def _plain(function: Any) -> Any:
    return getattr(function, "py_func", function)


def _inlined(function: Any) -> Any:
    return numba.njit(**_INLINED)(_plain(function))


def _with_nothing(function: Any) -> Any:
    """The function (y, z) as one of (y, z, u)."""

    def ignoring(y: float, z: float, u: float, *parameters: float) -> Triple:
        return function(y, z, *parameters)  # type: ignore[no-any-return]

    return _inlined(ignoring)


def _subtracted(function: Any) -> Any:
    """The remainder of a function that comes without one."""

    def remainder(y: float, z: float, u: float, *parameters: float) -> Triple:
        value, first, _ = function(y, z, *parameters)
        there, slope, second = function(y, z + u, *parameters)
        return there - value - first * u, slope - first, second

    return _inlined(remainder)


def _loop(function: Any, count_of_parameters: int) -> Any:
    """The function over a block."""

    as_tuple: Any = unsafe.to_fixed_tuple

    def over_block(count: int, block: Any, parameters: Any) -> None:
        rows = carray(block, (6, BLOCK))
        own = as_tuple(carray(parameters, (count_of_parameters,)), count_of_parameters)
        for i in range(count):
            rows[3, i], rows[4, i], rows[5, i] = function(rows[0, i], rows[1, i], rows[2, i], *own)

    def over_block_alone(count: int, block: Any, parameters: Any) -> None:
        rows = carray(block, (6, BLOCK))
        for i in range(count):
            rows[3, i], rows[4, i], rows[5, i] = function(rows[0, i], rows[1, i], rows[2, i])

    chosen = over_block if count_of_parameters else over_block_alone
    if _INTERPRETED:
        return Interpreted(function)
    return numba.cfunc(_SIGNATURE, error_model="numpy", fastmath={"contract"})(chosen)


class Interpreted:
    """What stands for a compiled loop where nothing is compiled (NUMBA_DISABLE_JIT)."""

    known: dict[int, Any] = {}  # noqa: RUF012

    def __init__(self, function: Any) -> None:
        self.address = id(self)
        self.known[self.address] = function

    @classmethod
    def call(cls, address: int, count: int, block: Array, parameters: Array) -> None:
        """The loop itself."""
        for i in range(count):
            block[3:, i] = cls.known[address](*block[:3, i], *parameters)


@intrinsic
def _call(typingctx: Any, address: Any, count: Any, block: Any, parameters: Any) -> Any:
    """Call the compiled loop at an address."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number, pointer = ir.IntType(64), ir.DoubleType().as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [number, pointer, pointer])
        data = [
            context.make_array(arrays)(context, builder, value).data
            for arrays, value in zip(sig.args[2:], args[2:], strict=True)
        ]
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1], *data])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, block, parameters), codegen


call: Any = Interpreted.call if _INTERPRETED else _call


@kernel(allocates=True)
def losses_at(address: int, parameters: Array, y: Array, z: Array, out: Array) -> None:
    """Write L, L', L'' of every pair to the rows of ``out``."""
    block = np.empty((6, BLOCK))
    for start in range(0, y.shape[0], BLOCK):
        size = min(BLOCK, y.shape[0] - start)
        for i in range(size):
            block[0, i], block[1, i] = y[start + i], z[start + i]
        call(address, size, block, parameters)
        for i in range(size):
            out[0, start + i], out[1, start + i], out[2, start + i] = block[3, i], block[4, i], block[5, i]


@kernel(allocates=True)
def summed_losses(
    address: int,
    parameters: Array,
    owners: IntArray,
    points: Array,
    weights: Array,
    shifts: Array,
    Z: Array,
    out: Array,
) -> None:
    """Write phi_k(Z[m, k]), phi', phi'' and sum_i w_i |L|, the size of phi, to out (4, m, k)."""
    block = np.empty((6, BLOCK))
    for m in range(Z.shape[0]):
        for k in range(Z.shape[1]):
            out[0, m, k] = out[1, m, k] = out[2, m, k] = out[3, m, k] = 0.0
        for start in range(0, points.shape[0], BLOCK):
            size = min(BLOCK, points.shape[0] - start)
            for i in range(size):
                block[0, i], block[1, i] = points[start + i], Z[m, owners[start + i]] + shifts[start + i]
            call(address, size, block, parameters)
            for i in range(size):
                k, w = owners[start + i], weights[start + i]
                out[0, m, k] += w * block[3, i]
                out[1, m, k] += w * block[4, i]
                out[2, m, k] += w * block[5, i]
                out[3, m, k] += w * abs(block[3, i])


@kernel(allocates=True)
def summed_remainders(
    address: int, parameters: Array, owners: IntArray, points: Array, weights: Array, shifts: Array,
    z: Array, u: Array, t: float, D: Array, slope: Array, weight: Array,
) -> None:  # fmt: skip
    """Write D_k(z_k, t u_k), phi_k'(z_k + t u_k) - phi_k'(z_k) and phi_k''(z_k + t u_k)."""
    block = np.empty((6, BLOCK))
    for k in range(D.shape[0]):
        D[k] = slope[k] = weight[k] = 0.0
    for start in range(0, points.shape[0], BLOCK):
        size = min(BLOCK, points.shape[0] - start)
        for i in range(size):
            k = owners[start + i]
            block[0, i], block[1, i], block[2, i] = points[start + i], z[k] + shifts[start + i], t * u[k]
        call(address, size, block, parameters)
        for i in range(size):
            k, w = owners[start + i], weights[start + i]
            D[k] += w * block[3, i]
            slope[k] += w * block[4, i]
            weight[k] += w * block[5, i]
