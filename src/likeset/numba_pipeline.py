"""Two shortcuts through numba's compiler, for :mod:`likeset.compiling`.

Numba optimises every function and turns it into machine code by itself, and then does so again inside each function
that calls it. A function that only kernels call needs neither: :class:`PartCompiler` stops once its code is written
down in LLVM's language, and the kernel that it is linked into is optimised as a whole. That alone saves a third of the
time for Laplace noise. Such a function has no address: Python cannot call it.

While types are inferred, numba looks up operations in tables whose keys hold all settings of the function at work, and
compares them property by property, a hundred thousand times. :class:`Settings` compares the dictionary behind them,
which saves another tenth.

Both go through ``pipeline_class``, the door that numba has for this, and touch no function but ours.
"""

# mypy: disable-error-code="misc, no-untyped-call, attr-defined"
from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

IDLE = (InlineClosureLikes, NopythonRewrites)  # for closures, and for expressions of arrays: kernels have neither


class Settings(Flags):
    """Numba's settings of a function, compared by what was set: a default is not what has been set to it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and bool(self._values == other._values)

    def __hash__(self) -> int:
        return hash(Settings)


class Part(JITCodeLibrary):
    """Code to be linked into that of others: as it was written down, without machine code."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: zero, as for functions that a library does not have."""
        self._ensure_finalized()
        return 0


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Write a function down, and tell numba where callers find it."""

    _name = "likeset_part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Numba's own pass, but for what it does after that to make the function callable."""
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        described, written = state["cr"].fndesc, state["cr"]
        name = described.qualname.split(".")[-1]
        stand_in = _dynfunc.make_function(described.lookup_module(), name, "", 0, written.env, (state.library,))
        state.targetctx.insert_user_function(stand_in, described, [state.library])
        state["cr"] = written._replace(cfunc=stand_in)
        return True


class KernelCompiler(Compiler):
    """Numba's compiler, with settings that are quick to compare."""

    lowering: type[NativeLowering] = NativeLowering

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        super().__init__(typingctx, targetctx, library, args, return_type, Settings(flags), locals)

    def define_pipelines(self) -> list[PassManager]:
        """Numba's pipeline without the steps that find nothing to do here, and with its last one exchanged."""
        pipelines: list[PassManager] = super().define_pipelines()
        for pipeline in pipelines:
            steps = ((step, why) for step, why in pipeline.passes if step not in IDLE)
            pipeline.passes = [(self.lowering if step is NativeLowering else step, why) for step, why in steps]
            pipeline.finalize()
        return pipelines


class PartCompiler(KernelCompiler):
    """The same with :class:`PartLowering` as its last step."""

    lowering = PartLowering
