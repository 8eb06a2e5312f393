"""The stages of a jitted function, ahead of a call: staged, lowered, compiled.

Invariant: an executable is called with arguments of exactly the types it was compiled for, or
refuses them.
"""

from collections.abc import Sequence
from typing import Any

from .. import events
from .._base import jaxlib_api
from .._base.errors import (
    ArgumentError,
)
from .._base.tracebacks import border
from .._core.array import wrap
from .._core.ir import Program
from .._xla import mlir
from .._xla.executables import Executable, Options, bound, load
from .._xla.module import Module, module_of
from .._xla.operands import as_argument
from ..tree import TreeDef, flatten
from .tracing import Traced


class Lowered:
    """A function as StableHLO, for some types of arguments."""

    def __init__(
        self,
        traced: Traced,
        donated: tuple[int, ...],
        platforms: tuple[str, ...] | None,
        options: Options = (),
    ):
        self._traced, self._donated, self._platforms = traced, donated, platforms
        self._options = options

    def _keys(self) -> list:
        return [c.key for c in self._traced.captured] + [
            getattr(v, "key", v.aval) for v in self._traced.values
        ]

    def module(self, locations: bool = False) -> Module:
        """The lowered module."""
        p = self._traced.program
        platforms = self._platforms or ("cpu",)
        return module_of(p, self._donated, self._keys(), platforms, locations)

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """The text: of StableHLO, with source locations if asked; or of the HLO that it is to the
        compiler before anything is optimised, for the dialect `"hlo"`.

        Raises TypeRule for other dialects.
        """
        if dialect not in ("stablehlo", "hlo"):
            raise ArgumentError(
                f"there is no dialect {dialect!r}", fix='write "stablehlo" or "hlo"'
            )
        code = self.module(debug_info).code
        return jaxlib_api.hlo_of(code) if dialect == "hlo" else mlir.text(code, debug_info)

    @property
    def out_info(self) -> Any:
        """The results as a tree of ShapeDtypeStructs."""
        return self._traced.shapes()

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the results."""
        return self._traced.tree

    def compile(self, compiler_options: dict[str, Any] | None = None) -> "Compiled":
        """The executable for the platform of this process.

        `compiler_options` are names and values of XLA's flags, besides those that `jit` was given;
        raises ArgumentError if the compiler does not know one.
        """
        traced, keys = self._traced, self._keys()
        events.happened("lower", traced.program)
        module = module_of(traced.program, self._donated, keys)
        options = dict(self._options) | (compiler_options or {})
        loaded = load(module, tuple(sorted(options.items())))
        run = bound(traced.program, module, loaded, keys, [], self._donated)
        return Compiled(run, traced, keys, loaded.executable)


class Compiled:
    """An executable for some types of arguments; call it as the function."""

    def __init__(self, run: Executable, traced: Traced, keys: list, loaded: Any):
        self._run, self._traced, self._loaded = run, traced, loaded
        self._front = [c.buffer() for c in traced.captured]
        self._keys = keys[len(traced.captured) :]

    @border
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = flatten((args, kwargs))
        bufs = []
        for x, k in zip(leaves, self._keys, strict=True):
            x = as_argument(x)
            if x.key.placement is None and k.placement is not None:
                x = k.placement.accept(x)
            if not x.aval.same_type(k.aval) or x.key.placement != k.placement:
                raise ArgumentError(
                    f"this executable is for {k!r}, not {x.key!r}",
                    fix="compile it for these types too, or call the jitted function",
                )
            bufs.append(x.buffer())
        outs = self._run.run(self._front + bufs).consume_with_handlers(self._run.handlers)
        return self._traced.tree.unflatten([wrap(b, k) for b, k in zip(outs, self._run.keys)])

    def as_text(self) -> str:
        """The optimised HLO."""
        return jaxlib_api.hlo_text(self._loaded)

    def memory_analysis(self) -> Any:
        """Bytes of arguments, results and temporaries, as the compiler counts them."""
        return self._loaded.get_compiled_memory_stats()

    def cost_analysis(self) -> dict:
        """The compiler's estimate of work."""
        return self._loaded.cost_analysis()


class Staged:
    """A staged function: `.program`, and `.lower()`; `in_tree` is the structure of the traced
    (args, kwargs), which are the last inputs of the program."""

    def __init__(
        self, traced: Traced, donated: tuple[int, ...], in_tree: TreeDef, options: Options = ()
    ):
        self._traced, self._donated, self.in_tree = traced, donated, in_tree
        self._options = options

    @property
    def program(self) -> Program:
        """The Program."""
        return self._traced.program

    @property
    def jaxpr(self) -> Program:
        """The Program, by its other name."""
        return self.program

    @property
    def out_info(self) -> Any:
        """The results as a tree of ShapeDtypeStructs."""
        return self._traced.shapes()

    @property
    def captured(self) -> list:
        """Values that are being traced by others, which are the program's first inputs."""
        return self._traced.captured

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the results."""
        return self._traced.tree

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """StableHLO, for the platform of this process or for others."""
        platforms = tuple(lowering_platforms) if lowering_platforms else None
        return Lowered(self._traced, self._donated, platforms, self._options)
