"""The stages of a jitted function, ahead of a call: staged, lowered, compiled.

Invariant: an executable is called with arguments of exactly the types it was compiled for, or
refuses them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import events
from .._base import jaxlib_api
from .._base.errors import (
    ArgumentError,
    TreeMismatch,
)
from .._base.tracebacks import border
from .._core.array import is_tracer, wrap
from .._core.buffers import client
from .._core.ir import Program
from .._plugins.metadata import resolve
from .._types.avals import Aval
from .._xla import mlir
from .._xla.executables import Executable, Options, bound, load
from .._xla.module import Module, module_of
from .._xla.operands import as_argument
from ..tree import TreeDef, difference, flatten
from .tracing import Traced


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """A leaf of the arguments that a function was staged for.

    Attributes:
      aval: its type.
      donated: whether its memory is given to the results.
    """

    aval: Aval
    donated: bool

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of its axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of its elements."""
        return self.aval.dtype


@dataclass(frozen=True, slots=True)
class Format:
    """How an array lies in memory, and where.

    Attributes:
      major_to_minor: its axes, from the one along which steps in memory are the longest.
      sharding: the devices, and which piece each of them has.
    """

    major_to_minor: tuple[int, ...]
    sharding: Any


class _Stage:
    """What is known of a staged function, in each of its stages.

    Args:
      traced: the function, staged.
      donated: numbers of the donated leaves of the arguments.
      in_tree: the structure of (args, kwargs), without static ones.
      options: flags of the compiler.
    """

    def __init__(
        self, traced: Traced, donated: tuple[int, ...], in_tree: TreeDef, options: Options = ()
    ):
        self._traced, self._donated, self._options = traced, donated, options
        self.in_tree = in_tree

    @property
    def out_info(self) -> Any:
        """The results as a tree of ShapeDtypeStructs."""
        return self._traced.shapes()

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the results."""
        return self._traced.tree

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the donated ones among the leaves of the arguments."""
        return self._donated

    @property
    def args_info(self) -> Any:
        """(args, kwargs), without static ones, as a tree of `ArgInfo`.

        >>> import plait
        >>> (x,), _ = plait.jit(lambda x: x, donate_argnums=0).lower(1.0).args_info
        >>> x.shape, x.dtype, x.donated
        ((), dtype('float32'), True)
        """
        n = len(self._traced.captured)
        avals = self._traced.program.in_avals[n:]
        return self.in_tree.unflatten([ArgInfo(a, i in self._donated) for i, a in enumerate(avals)])

    def _keys(self) -> list:
        """The types of the arguments, and where they lie, after those of captured values."""
        return [c.key for c in self._traced.captured] + [
            getattr(v, "key", v.aval) for v in self._traced.values
        ]


class Lowered(_Stage):
    """A function as StableHLO, for some types of arguments."""

    def __init__(
        self,
        traced: Traced,
        donated: tuple[int, ...],
        in_tree: TreeDef,
        platforms: tuple[str, ...] | None,
        options: Options = (),
    ):
        super().__init__(traced, donated, in_tree, options)
        self._platforms = platforms

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

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module of StableHLO as an object of MLIR's Python bindings, as jaxlib has them.

        Raises ArgumentError for dialects other than `"stablehlo"`.

        >>> import plait
        >>> module = plait.jit(lambda x: x).lower(1.0).compiler_ir()
        >>> [op.name.value for op in module.body.operations]
        ['main']
        """
        if dialect not in (None, "stablehlo"):
            raise ArgumentError(
                f"there is no module of the dialect {dialect!r}",
                fix='leave the dialect out, or ask for .as_text("hlo")',
            )
        return mlir.parse(self.module().code)

    def cost_analysis(self) -> dict[str, float]:
        """The runtime's estimate of work, before anything is optimised: "flops" and others.

        >>> import plait
        >>> plait.jit(lambda x: x @ x).lower(plait.numpy.ones((3, 3))).cost_analysis()["flops"]
        54.0
        """
        return jaxlib_api.cost_of(client(), self.module().code)

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
        return Compiled(run, traced, self._donated, self.in_tree, keys, loaded.executable)


class Compiled(_Stage):
    """An executable for some types of arguments; call it as the function, without its static
    arguments.  In this it differs: arguments have the structure and the types it was compiled for,
    and are not traced."""

    def __init__(
        self,
        run: Executable,
        traced: Traced,
        donated: tuple[int, ...],
        in_tree: TreeDef,
        keys: list,
        loaded: Any,
    ):
        super().__init__(traced, donated, in_tree)
        self._run, self._loaded = run, loaded
        self._front = [c.buffer() for c in traced.captured]
        self._wanted = keys[len(traced.captured) :]

    @border
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        if tree != self.in_tree:
            like = self.in_tree.unflatten(range(len(self._wanted)))
            raise TreeMismatch(
                "an executable was called with arguments of another structure than it was "
                f"compiled for: {difference(like, (args, kwargs), 'the arguments')}",
                fix=f"give them the structure {self.in_tree} of (args, kwargs)",
            )
        bufs = []
        for x, k in zip(leaves, self._wanted, strict=True):
            if is_tracer(x):
                raise ArgumentError(
                    f"an executable can not be transformed, and was given {x!r}",
                    fix="call the function that it was compiled from, jitted or not",
                )
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

    def runtime_executable(self) -> Any:
        """The runtime's own executable, an object of jaxlib's."""
        return self._loaded

    @property
    def input_shardings(self) -> Any:
        """Where arguments lie: a tree of shardings (of plait-sharding) like (args, kwargs)."""
        return self.in_tree.unflatten([_sharding(k) for k in self._wanted])

    @property
    def output_shardings(self) -> Any:
        """Where results lie: a tree of shardings like them."""
        return self.out_tree.unflatten([_sharding(k) for k in self._run.keys])

    @property
    def input_formats(self) -> Any:
        """How arguments lie in memory, and where: a tree of `Format`s like (args, kwargs)."""
        every = self._loaded.get_parameter_layouts()
        own = every[len(every) - len(self._wanted) :]  # after those of captured values
        return self.in_tree.unflatten(_formats(own, self._wanted))

    @property
    def output_formats(self) -> Any:
        """How results lie in memory, and where: a tree of `Format`s like them."""
        every = self._loaded.get_output_layouts()
        own = every[len(every) - len(self._run.keys) :]  # after the tokens of ordered effects
        return self.out_tree.unflatten(_formats(own, self._run.keys))


def _sharding(key: Any) -> Any:
    return resolve("SingleDeviceSharding")(0) if key.placement is None else key.placement


def _formats(layouts: list, keys: Sequence[Any]) -> list[Format]:
    return [Format(_major_to_minor(x), _sharding(k)) for x, k in zip(layouts, keys, strict=True)]


def _major_to_minor(layout: Any) -> tuple[int, ...]:
    """The axes of a layout; the runtime writes them from minor to major, like `{1,0:T(8,128)}`."""
    axes = str(layout).strip("{}").partition(":")[0]
    return tuple([int(n) for n in reversed(axes.split(","))]) if axes else ()


class Staged(_Stage):
    """A staged function: `.program`, and `.lower()`; `in_tree` is the structure of the traced
    (args, kwargs), which are the last inputs of the program."""

    @property
    def program(self) -> Program:
        """The Program."""
        return self._traced.program

    @property
    def jaxpr(self) -> Program:
        """The Program, by its other name."""
        return self.program

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.program.name

    @property
    def captured(self) -> list:
        """Values that are being traced by others, which are the program's first inputs."""
        return self._traced.captured

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """StableHLO, for the platform of this process or for others."""
        platforms = tuple(lowering_platforms) if lowering_platforms else None
        return Lowered(self._traced, self._donated, self.in_tree, platforms, self._options)
