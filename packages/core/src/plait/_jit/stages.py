"""The stages of a jitted function, ahead of a call: staged, lowered, compiled.

Invariant: an executable is called with arguments of exactly the types it was compiled for, or
refuses them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from .. import events
from .._base import jaxlib_api
from .._base.errors import (
    ArgumentError,
)
from .._core.array import run_on, wrap
from .._core.ir import Program
from .._xla import mlir
from .._xla.executables import Executable, Options, bound, load
from .._xla.module import Module, module_of
from .._xla.operands import as_argument, as_donated
from ..tree import TreeDef, flatten
from .tracing import Traced


class Lowered:
    """A function that `lower` has translated to StableHLO, for one set of argument types.

    >>> import plait
    >>> lowered = plait.jit(lambda x: {"twice": x + x}).lower(1.0)
    >>> lowered.out_info
    {'twice': ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)}
    >>> "stablehlo.add" in lowered.as_text()
    True
    >>> lowered.compile()(3.0)
    {'twice': Array(6., dtype=float32, weak_type=True)}
    """

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
        """Return the module: its bytecode, and the arrays and callbacks that it needs.

        `locations`: whether its operations name the lines of the user's files.
        """
        p = self._traced.program
        platforms = self._platforms or ("cpu",)
        return module_of(p, self._donated, self._keys(), platforms, locations)

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """Return the module as text, before the compiler has changed anything.

        Args:
          dialect: "stablehlo", or "hlo" for the text of the HLO that the compiler makes of it.
          debug_info: whether StableHLO names the lines of the user's files.

        Raises ArgumentError for other dialects.
        """
        if dialect not in ("stablehlo", "hlo"):
            raise ArgumentError(
                f"there is no dialect {dialect!r}", fix='write "stablehlo" or "hlo"'
            )
        code = self.module(debug_info).code
        return jaxlib_api.hlo_of(code) if dialect == "hlo" else mlir.text(code, debug_info)

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results: their tree, with a ShapeDtypeStruct for each."""
        return self._traced.shapes()

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the results: a TreeDef."""
        return self._traced.tree

    def compile(self, compiler_options: dict[str, Any] | None = None) -> "Compiled":
        """Compile the module for the platform of this process, and return the executable.

        Args:
          compiler_options: names and values of XLA's flags, besides those that `jit` was given.

        Raises ArgumentError if the compiler does not know one of the flags.
        """
        traced, keys = self._traced, self._keys()
        events.happened("lower", traced.program)
        module = module_of(traced.program, self._donated, keys)
        options = dict(self._options) | (compiler_options or {})
        loaded = load(module, tuple(sorted(options.items())))
        run = bound(traced.program, module, loaded, keys, [], self._donated)
        return Compiled(run, traced, keys, loaded.executable, self._donated)


class Compiled:
    """An executable: called as the function is, with arguments of the types it was compiled for.

    Static arguments are left out: their values are part of the program.  Donated arguments are
    deleted.

    >>> import plait
    >>> compiled = plait.jit(lambda x, n: x ** n, static_argnums=1).lower(1.0, 3).compile()
    >>> compiled(2.0)
    Array(8., dtype=float32, weak_type=True)
    """

    def __init__(
        self,
        run: Executable,
        traced: Traced,
        keys: list,
        loaded: Any,
        donated: tuple[int, ...] = (),
    ):
        self._run, self._traced, self._loaded, self._donated = run, traced, loaded, donated
        self._front = [c.buffer() for c in traced.captured]
        self._keys = keys[len(traced.captured) :]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on the arguments that are not static; return the tree of results.

        Raises ArgumentError for an argument of another shape, dtype or placement than the one it
        was compiled for.
        """
        leaves, _ = flatten((args, kwargs))
        bufs = []
        for i, (x, k) in enumerate(zip(leaves, self._keys, strict=True)):
            x = as_donated(x) if i in self._donated else as_argument(x)
            if x.key.placement is None and k.placement is not None:
                x = k.placement.accept(x)
            if not x.aval.same_type(k.aval) or x.key.placement != k.placement:
                raise ArgumentError(
                    f"this executable is for {k!r}, not {x.key!r}",
                    fix="compile it for these types too, or call the jitted function",
                )
            bufs.append(x.buffer())
        outs = run_on(self._run.run, self._front + bufs, self._run.handlers)
        return self._traced.tree.unflatten([wrap(b, k) for b, k in zip(outs, self._run.keys)])

    def as_text(self) -> str:
        """Return the program as the compiler has optimised it: the text of its HLO."""
        return jaxlib_api.hlo_text(self._loaded)

    def memory_analysis(self) -> Any:
        """Return how much memory a call takes, as the compiler counts it.

        The attributes `argument_size_in_bytes`, `output_size_in_bytes`, `temp_size_in_bytes` and
        `alias_size_in_bytes` (results in the memory of donated arguments) are ints.
        """
        return self._loaded.get_compiled_memory_stats()

    def cost_analysis(self) -> dict:
        """Return the compiler's estimate of the work of a call: a dict of numbers by name, such
        as "flops" and "bytes accessed"."""
        return self._loaded.cost_analysis()


class Staged:
    """A function that `trace` has recorded as a Program, for one set of argument types.

    Attributes:
      in_tree: the structure of the traced (args, kwargs), whose leaves are the last inputs of the
        program; values in `captured` are the first.

    >>> import plait
    >>> staged = plait.jit(lambda x: x * 2).trace(1.0)
    >>> len(staged.program.eqns), len(staged.captured)
    (1, 0)
    """

    def __init__(
        self, traced: Traced, donated: tuple[int, ...], in_tree: TreeDef, options: Options = ()
    ):
        self._traced, self._donated, self.in_tree = traced, donated, in_tree
        self._options = options

    @property
    def program(self) -> Program:
        """The Program that the function's Python was recorded as."""
        return self._traced.program

    @property
    def jaxpr(self) -> Program:
        """The same as `program`, by the name that JAX has for it."""
        return self.program

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results: their tree, with a ShapeDtypeStruct for each."""
        return self._traced.shapes()

    @property
    def captured(self) -> list:
        """Values of transformations under way that the function closes over.

        They are the first inputs of the program, in this order.
        """
        return self._traced.captured

    @property
    def out_tree(self) -> TreeDef:
        """The structure of the results: a TreeDef."""
        return self._traced.tree

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Translate the program to StableHLO, and return it.

        Args:
          lowering_platforms: names of platforms ("cpu", "cuda", ...), which need not be here; by
            default that of this process.
        """
        platforms = tuple(lowering_platforms) if lowering_platforms else None
        return Lowered(self._traced, self._donated, platforms, self._options)


P = ParamSpec("P")
Q = ParamSpec("Q")
R_co = TypeVar("R_co", covariant=True)


class Jitted(Protocol[P, R_co]):
    """What `jit` returns, for annotations: a function with the parameters and the result of the
    one that was jitted, and the methods by which it is looked at without being run.

    Arguments of `trace`, `lower` and `eval_shape` may be ShapeDtypeStructs instead of arrays.

    >>> import plait
    >>> f = plait.jit(lambda x: x * 2)
    >>> f.eval_shape(plait.ShapeDtypeStruct((3,), "float32"))
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    __name__: str

    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function that was jitted."""
        ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the function, which is compiled for arguments of types that it has not had yet."""
        ...

    @overload
    def __get__(self, instance: None, owner: Any = None, /) -> "Jitted[P, R_co]": ...
    @overload
    def __get__(
        self: "Jitted[Concatenate[Any, Q], R_co]", instance: object, owner: Any = None, /
    ) -> Callable[Q, R_co]: ...

    def trace(self, *args: Any, **kwargs: Any) -> Staged:
        """Stage the function for the types of these arguments, and return its program."""
        ...

    def lower(self, *args: Any, lowering_platforms: Any = None, **kwargs: Any) -> Lowered:
        """Stage the function for the types of these arguments, and return it as StableHLO: for
        the platform of this process, or for those that are named."""
        ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the tree of results for the types of these arguments, as ShapeDtypeStructs."""
        ...

    def clear_cache(self) -> None:
        """Forget everything that was traced and compiled of this function."""
        ...
