"""The stages of a jitted function, ahead of a call: staged, lowered, compiled.

Invariant: an executable refuses arguments that differ from the types it was compiled for.
"""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .. import events
from .._base import jaxlib_api
from .._base.argument_names import names_in_call
from .._base.errors import (
    ArgumentError,
    AxisError,
    OperandTypeError,
    PlacementError,
    PlaitError,
    TreeMismatch,
)
from .._base.tracebacks import leaving
from .._core import forks
from .._core.array import Array, as_value, is_tracer, run_on, wrap
from .._core.buffers import client, first, platform
from .._core.fitting import fitted
from .._core.handles import Handle
from .._core.interpreter import GROUND, current
from .._core.ir import Program, evaluate
from .._core.staging import leaf_name
from .._core.topologies import Topology
from .._ops.platforms import known_platforms
from .._plugins.metadata import page_of, resolve
from .._types.avals import Aval, Placed
from .._xla import mlir
from .._xla.ahead import compiled_for, topology_in
from .._xla.executables import (
    Executable,
    Loaded,
    agreed,
    bound,
    load,
    load_in_tiers,
    result_keys,
    settled,
)
from .._xla.module import Module, module_of
from .._xla.operands import as_argument, as_donated
from .._xla.tiers import USUAL, Options, expect_tier
from ..tree import LEAF, TreeDef, difference, exact_key, flatten, in_words
from .call_forms import CallForm, Way, builder, looked_up, taker
from .communication import Collective, collectives_in
from .jittable import jittables
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
    """The layout of an array in memory, and its sharding.

    Attributes:
      major_to_minor: its axes, from the one along which steps in memory are the longest.
      sharding: the devices, and which piece each of them has.
    """

    major_to_minor: tuple[int, ...]
    sharding: Any


class _Stage:
    """The common part of all stages of a staged function.

    Args:
      traced: the function, staged.
      donated: numbers of the donated leaves of the arguments.
      in_tree: the structure of (args, kwargs), without static ones.
      options: flags and tier of the compiler.
    """

    def __init__(
        self, traced: Traced, donated: tuple[int, ...], in_tree: TreeDef, options: Options = USUAL
    ):
        self._traced, self._donated, self._options = traced, donated, options
        self.in_tree = in_tree

    def _repr_html_(self) -> str | None:
        return self._traced.program._repr_html_()

    def __reduce__(self) -> Any:
        raise ArgumentError(
            f"{type(self).__name__} of {self._traced.program.name} cannot be pickled: it "
            "belongs to the devices of this process",
            fix="pickle the function and jit it there, or save it with plait.export",
        )

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: object) -> Any:
        return self

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

    @property
    def in_avals(self) -> Any:
        """The types of (args, kwargs), without static ones, as a tree.

        >>> import plait
        >>> plait.jit(lambda x, y: x + y).lower(1.0, y=2).in_avals
        ((f32[]*,), {'y': i32[]*})
        """
        n = len(self._traced.captured)
        return self.in_tree.unflatten(self._traced.program.in_avals[n:])

    def keys(self) -> list[Any]:
        """Return the types and placements of the captured values and then of the arguments."""
        return [c.key for c in self._traced.captured] + [
            getattr(v, "key", v.aval) for v in self._traced.values
        ]

    def _topology(self) -> Topology | None:
        """Return the topology that it is for; None for devices of this process."""
        return topology_in(self._traced.program, self.keys())

    def _platform(self) -> str:
        """Return the platform that it is for."""
        topology = self._topology()
        return platform() if topology is None else topology.platform


class Lowered(_Stage):
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
        in_tree: TreeDef,
        platforms: tuple[str, ...] | None,
        options: Options = USUAL,
    ):
        super().__init__(traced, donated, in_tree, options)
        self._platforms = platforms

    def module(self, locations: bool = False) -> Module:
        """Return the module: its bytecode, and the arrays and callbacks that it needs.

        `locations`: whether its operations name the lines of the user's files.
        """
        p = self._traced.program
        platforms = self._platforms or (self._platform(),)
        locations = locations or self._options.lines_now
        tier = self._options.tier_now
        return module_of(p, self._donated, self.keys(), platforms, locations, tier=tier)

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """Return the module as text, before the compiler has changed it.

        Args:
          dialect: "stablehlo", or "hlo" for the text of the compiler's HLO.
          debug_info: whether StableHLO names the lines of the user's files.

        Raises ArgumentError for other dialects.
        """
        if dialect not in ("stablehlo", "hlo"):
            raise ArgumentError(
                f"there is no dialect {dialect!r}", fix='write "stablehlo" or "hlo"'
            )
        code = self.module(debug_info).code
        return jaxlib_api.hlo_of(code) if dialect == "hlo" else mlir.text(code, debug_info)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """Return the StableHLO module as an object of jaxlib's MLIR bindings; for the dialect
        "hlo", XLA's computation, before any optimisation.

        Raises ArgumentError for other dialects.

        >>> import plait
        >>> module = plait.jit(lambda x: x).lower(1.0).compiler_ir()
        >>> [op.name.value for op in module.body.operations]
        ['main']
        """
        if dialect not in (None, "stablehlo", "hlo"):
            raise ArgumentError(
                f"there is no module of the dialect {dialect!r}", fix='write "stablehlo" or "hlo"'
            )
        code = self.module().code
        return jaxlib_api.computation_of(code) if dialect == "hlo" else mlir.parse(code)

    def cost_analysis(self) -> dict[str, float]:
        """Return the runtime's estimate of work, before any optimisation: "flops" and others.

        >>> import plait
        >>> plait.jit(lambda x: x @ x).lower(plait.numpy.ones((3, 3))).cost_analysis()["flops"]
        54.0
        """
        try:
            return jaxlib_api.cost_of(client(), self.module().code)
        except jaxlib_api.RuntimeFailure as e:
            raise PlaitError(
                f"the runtime of {platform()} estimates no work before it has compiled: {e}",
                fix="ask lower(...).compile().cost_analysis()",
            ) from None

    def compile(
        self,
        compiler_options: dict[str, Any] | None = None,
        tier: Literal["full", "fast", "both"] | None = None,
    ) -> "Compiled":
        """Compile the module for the platform of this process, and return the executable.

        If arguments or results lie on devices of a topology (plait-sharding), it is compiled for
        these.  Such an executable can be inspected, but not called.

        Args:
          compiler_options: names and values of XLA's flags, in addition to those of `jit`.

          tier: how long the compiler may take, as for `jit`; None: the tier given to `jit`.

        Raises ArgumentError for a flag that the compiler does not have, for another tier, and for a
        function lowered for other platforms only.
        """
        traced, keys, topology = self._traced, self.keys(), self._topology()
        target = platform() if topology is None else topology.platform
        if self._platforms is not None and target not in self._platforms:
            raise ArgumentError(
                f"{traced.program.name} was lowered for {', '.join(self._platforms)}, and "
                f"{'this process compiles' if topology is None else 'its devices are'} for "
                f"{target}",
                fix="lower it without lowering_platforms, or export it for that platform",
            )
        events.happened("lower", traced.program)
        flags = dict(self._options.flags) | (compiler_options or {})
        options = Options(tuple(sorted(flags.items())), expect_tier(tier) or self._options.tier,
                          self._options.lines)  # fmt: skip
        lines, tier_now = options.lines_now, options.tier_now
        module = module_of(traced.program, self._donated, keys, (target,), lines, tier=tier_now)
        return Compiled(module, options, traced, self._donated, self.in_tree, keys)


_direct: "weakref.WeakSet[Compiled]" = weakref.WeakSet()
"""Executables whose calls look nothing up."""


@forks.empty_in_child
def _refuse_in_child() -> None:
    for compiled in _direct:
        compiled._way = compiled._general


class Compiled(_Stage):
    """An executable, called like the function, with arguments of the types it was compiled for.

    Static arguments are left out: their values are part of the program.  Donated arguments are
    deleted.

    >>> import plait
    >>> compiled = plait.jit(lambda x, n: x ** n, static_argnums=1).lower(1.0, 3).compile()
    >>> compiled(2.0)
    Array(8., dtype=float32, weak_type=True)
    """

    _run: Executable
    _loaded: Any
    _wanted: list[Any]
    _place: Any
    _way: Way
    """Performs a call with arrays of exactly these types, and gives others to `_general`."""

    def __init__(
        self,
        module: Module,
        options: Options,
        traced: Traced,
        donated: tuple[int, ...],
        in_tree: TreeDef,
        keys: list[Any],
    ):
        super().__init__(traced, donated, in_tree, options)
        self._asked, self._place = keys, module.place
        topology = self._topology()
        if topology is not None:
            self._look_at(module, compiled_for(topology, module, options), topology)
            return

        def take(loaded: Loaded, last: bool) -> None:
            there = settled(module, loaded, keys)
            self._wanted = there[len(traced.captured) :]
            self._run = bound(traced.program, module, loaded, there, [], donated)
            self._loaded = loaded.executable
            self._way = self._direct()
            _direct.add(self)

        agreed(module, traced.program.name)
        load_in_tiers(module, options, take)
        self._front = [c.buffer() for c in traced.captured]

    def _look_at(self, module: Module, loaded: Loaded, topology: Topology) -> None:
        """Take a module that was compiled for devices that are not here."""
        program, name = self._traced.program, self._traced.program.name

        def refuse(*call: object) -> Any:
            raise PlacementError(
                f"{name} was compiled for devices that are not here ({topology!r}): it can be "
                "looked at (memory_analysis, cost_analysis, collectives, as_text), and not called",
                fix="compile it for a mesh of plait.devices() to run it here",
            )

        there = settled(module, loaded, self._asked)
        self._wanted = there[len(self._traced.captured) :]
        self._run = Executable(refuse, [], result_keys(program, module, loaded, there))
        self._loaded, self._way = loaded.executable, refuse

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        """Run it on the arguments that are not static; return the tree of results.

        Raises:
          TreeMismatch: the arguments have another structure.
          ArgumentError: an argument is traced, or its shape, dtype or placement differs from the
            one that the executable was compiled for.
        """
        try:
            by = current()
            if by is not GROUND and by.observed is not None:
                values = lambda: self._operands(args, kwargs)  # noqa: E731
                return by.executed(lambda: self._way(args, kwargs), self._traced.program, values)
            return self._way(args, kwargs)
        except BaseException as e:
            leaving(e)
            raise

    def _operands(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the operands of the program in a call, to look at them before and after it.

        Donated memory is gone after the call, so these are copies of donated arrays."""
        leaves = map(as_value, flatten(jittables.opened((args, kwargs)))[0])
        kept = [
            x.copy() if i in self._donated and x.__class__ is Array else x
            for i, x in enumerate(leaves)
        ]
        return [*self._traced.captured, *kept]

    def _direct(self) -> Way:
        """Return the function that performs calls of the form that it was compiled for."""
        found = weakref.ref(self)

        def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            compiled = found()
            assert compiled is not None  # the caller holds it
            return compiled._general(args, kwargs)

        if self._traced.captured:
            return general
        kinds = ["d" if i in self._donated else "a" for i in range(len(self._wanted))]
        form = CallForm(exact_key(self.in_tree), "".join(kinds))
        run, handlers, keys = self._run
        tree = self._traced.tree
        one = tree == LEAF
        done = run, handlers, keys[0] if one else None, None if one else builder(tree, keys)
        return taker(form, {looked_up(form, self._wanted): done}, general) or general

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = jittables.opened((args, kwargs))
        leaves, tree = flatten((args, kwargs))
        if tree != self.in_tree:
            fits = fitted((args, kwargs), self.in_tree)
            leaves, tree = (leaves, tree) if fits is None else flatten(fits)
        if tree != self.in_tree:
            like = self.in_tree.unflatten(range(len(self._wanted)))
            raise TreeMismatch(
                "an executable was called with arguments of another structure than it was "
                f"compiled for: {_difference(like, (args, kwargs), self._traced.parameters)}",
                fix=f"give (args, kwargs) like {in_words(self.in_tree)}, without static ones",
            )
        bufs = []
        for i, (x, k) in enumerate(zip(leaves, self._wanted, strict=True)):
            if is_tracer(x):
                raise ArgumentError(
                    f"an executable cannot be transformed, and was given {x!r}",
                    fix="call the function that it was compiled from, jitted or not",
                )
            x = as_donated(x) if i in self._donated else as_argument(x)
            if x.key.placement is None and k.placement is not None:
                try:
                    x = k.placement.accept(x)
                except (AxisError, PlacementError) as e:
                    e.of(leaf_name((args, kwargs), i, names_in_call(self._traced.parameters)))
                    raise
            have = x.key.placement
            there = have == k.placement or have is not None and have == _sharding(k, self._place)
            if not (there and x.aval.same_type(k.aval)):
                raise ArgumentError(
                    f"this executable is for {k!r}, not {x.key!r} "
                    f"({leaf_name((args, kwargs), i, names_in_call(self._traced.parameters))})",
                    fix="compile it for these types too, or call the jitted function",
                )
            bufs.append(x.buffer())
            if i in self._donated:
                bufs[-1]._npy_value = False  # see `array._viewed`
        forks.expect_runtime()
        outs = run_on(self._run.run, self._front + bufs, self._run.handlers)
        return self._traced.tree.unflatten([wrap(b, k) for b, k in zip(outs, self._run.keys)])

    def as_function(self) -> Callable[..., Any]:
        """Return a function that computes the same program, and that can be traced and exported.

        It takes arguments of the structure `in_tree`.

        >>> import plait
        >>> compiled = plait.jit(lambda x: x * 3).lower(1.0).compile()
        >>> float(plait.jit(compiled.as_function())(2.0))
        6.0
        """
        traced = self._traced

        def compute(*args: Any, **kwargs: Any) -> Any:
            leaves = map(as_value, flatten(jittables.opened((args, kwargs)))[0])
            return traced.tree.unflatten(evaluate(traced.program, [*traced.captured, *leaves]))

        compute.__name__ = compute.__qualname__ = traced.program.name
        return compute

    def as_text(self) -> str:
        """Return the program as the compiler has optimised it: the text of its HLO."""
        return jaxlib_api.hlo_text(self._loaded)

    def collectives(self) -> list[Collective]:
        """Return the transfers between devices in a call, in the order of the program: a list of
        `plait.stages.Collective`, with the bytes and the lines they come from.

        The executable has no source lines, so this compiles the program once more, with them.  A
        collective in a loop is listed once.

        >>> import plait
        >>> plait.jit(lambda x: x * 2).lower(1.0).compile().collectives()
        []
        """
        tier, topology = self._options.tier_now, self._topology()
        module = module_of(
            self._traced.program,
            self._donated,
            self._asked,
            (self._platform(),),
            locations=True,
            tier=tier,
        )
        if topology is None:
            loaded = load(module, self._options)
        else:
            loaded = compiled_for(topology, module, self._options)
        devices = (first(),) if module.place is None else tuple(module.place.devices)
        return collectives_in(jaxlib_api.hlo_text(loaded.executable), devices)

    def _repr_html_(self) -> str | None:
        return page_of("compiled", self, self._traced.program)

    def memory_analysis(self) -> Any:
        """Return how much memory a call takes, according to the compiler.

        The attributes `argument_size_in_bytes`, `output_size_in_bytes`, `temp_size_in_bytes` and
        `alias_size_in_bytes` (results in the memory of donated arguments) are ints.
        """
        return self._loaded.get_compiled_memory_stats()

    def cost_analysis(self) -> dict[Any, Any]:
        """Return the compiler's estimate of the work of a call: a dict of numbers by name, such
        as "flops" and "bytes accessed".

        If the compiler of a topology has no estimate, that of this process estimates its program.
        """
        return jaxlib_api.cost_of_compiled(client(), self._loaded)

    @property
    def out_info(self) -> Any:
        """The results as a tree of ShapeDtypeStructs, with their placements if any argument or
        result has one."""
        shapes, tree = flatten(self._traced.shapes())
        there = [k.placement for k in self._run.keys]
        return tree.unflatten(
            [s if p is None else s.update(sharding=p) for s, p in zip(shapes, there, strict=True)]
        )

    def runtime_executable(self) -> Any:
        """Return the runtime's own executable, an object of jaxlib's."""
        return self._loaded

    @property
    def input_shardings(self) -> Any:
        """The shardings (of plait-sharding) of arguments, as a tree like (args, kwargs)."""
        return self.in_tree.unflatten([_sharding(k, self._place) for k in self._wanted])

    @property
    def placements(self) -> list[Any]:
        """The required placement of each leaf of (args, kwargs); None where it is not set."""
        return [k.placement for k in self._wanted]

    @property
    def output_shardings(self) -> Any:
        """The shardings of results, as a tree like them."""
        return self.out_tree.unflatten([_sharding(k) for k in self._run.keys])

    @property
    def input_formats(self) -> Any:
        """The memory layouts and shardings of arguments, as a tree like (args, kwargs)."""
        every = self._loaded.get_parameter_layouts()
        own = every[len(every) - len(self._wanted) :]  # after those of captured values
        return self.in_tree.unflatten(_formats(own, self._wanted, self._place))

    @property
    def output_formats(self) -> Any:
        """The memory layouts and shardings of results: a tree of `Format`s like them."""
        every = self._loaded.get_output_layouts()
        own = every[len(every) - len(self._run.keys) :]  # after the tokens of ordered effects
        return self.out_tree.unflatten(_formats(own, self._run.keys))


def _sharding(key: Aval | Placed, place: Any = None) -> Any:
    """Return the sharding of an array of a program that runs at `place`; operands of the default
    place are copied to all of it."""
    if key.placement is not None:
        return key.placement
    return resolve("SingleDeviceSharding")(first()) if place is None else place.everywhere()


def _formats(layouts: list, keys: Sequence[Any], place: Any = None) -> list[Format]:
    return [
        Format(_major_to_minor(x), _sharding(k, place)) for x, k in zip(layouts, keys, strict=True)
    ]


def _major_to_minor(layout: object) -> tuple[int, ...]:
    """Return the axes of a layout, which the runtime writes from minor to major, like
    `{1,0:T(8,128)}`."""
    axes = str(layout).strip("{}").partition(":")[0]
    return tuple([int(n) for n in reversed(axes.split(","))]) if axes else ()


class Staged(_Stage):
    """A function that `trace` has recorded as a Program, for one set of argument types.

    Attributes:
      in_tree: the structure of the traced (args, kwargs), whose leaves are the last inputs of the
        program; values in `captured` are the first.

    >>> import plait
    >>> staged = plait.jit(lambda x: x * 2).trace(1.0)
    >>> len(staged.program.eqns), len(staged.captured)
    (1, 0)
    """

    @property
    def program(self) -> Program:
        """The Program that the function's Python code was recorded as."""
        return self._traced.program

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.program.name

    @property
    def captured(self) -> list:
        """The values of transformations under way that the function closes over.

        They are the first inputs of the program, in this order.
        """
        return self._traced.captured

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Translate the program to StableHLO, and return it.

        Args:
          lowering_platforms: names of platforms ("cpu", "cuda", ...), which need not be here; by
            default that of this process.

        Raises ArgumentError for unknown platforms, OperandTypeError for a program that takes a
        handle, which is not an array.
        """
        kept = [a for a in self._traced.program.in_avals if a.dtype in Handle.of_dtype]
        if kept:
            raise OperandTypeError(
                f"a lowered program takes arrays only, and this one takes {kept[0]!r}",
                fix="call the jitted function, or give it arrays and return the written values",
            )
        platforms = known_platforms(lowering_platforms) if lowering_platforms else None
        return Lowered(self._traced, self._donated, self.in_tree, platforms, self._options)


def _difference(like: Any, given: Any, parameters: Sequence[str]) -> str:
    """Return how the arguments that were given differ from those of an executable."""
    count, got = len(like[0]), len(given[0])
    if count == got:
        return difference(like, given)
    names = ", ".join([f"`{name}`" for name in parameters[:count]])
    return f"{count} positional arguments ({names}), not {got}"
