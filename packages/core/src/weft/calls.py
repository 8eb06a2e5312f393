"""jit: stage once per argument types, then a dictionary look-up.

Invariant: the compiled path is taken only when every operand is an Array and nothing is being
transformed; its key is the interned types and placements of the operands, the tree, and the
static values, and nothing else.  A trace is remembered by the named axes around it, too; one that
captured values of other interpreters is not kept.
"""

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from operator import is_
from types import FunctionType
from typing import Any, NamedTuple

from . import door, events
from .carrier import Lifted
from .config import config
from .errors import TypeRule
from .interpreter import GROUND, Tracer, current, named_axes
from .ir import Program, Var, derived, evaluate
from .ops.higher import call
from .ops.shape import materialise_at_ground
from .primitive import freeze
from .staging import Stage, stage
from .tree import LEAF, TreeDef, flatten, key_paths, spread
from .types import Aval, Placed
from .values import Array, Literal, as_argument, as_value, failure, is_tracer, not_an_array
from .xla import mlir
from .xla.execute import Executable, bound, executable, load
from .xla.lower import Module, module_of

LISTS = [flatten([0] * n)[1] for n in range(64)]
"""Structures of flat lists, whose results need no unflattening."""


# ---- tracing -------------------------------------------------------------------------------


class Traced(NamedTuple):
    """A staged function: the program's inputs are `captured`, then the flat arguments."""

    program: Program
    captured: list
    tree: TreeDef
    values: list


def trace(
    f: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    does: str = "jit",
    keep: dict | None = None,
    on: Stage | None = None,
    avals: tuple[Aval, ...] | None = None,
) -> Traced:
    """Stage `f` on the types of its arguments.

    Args:
      does: what is being done, for messages.
      keep: remembers traces, by types and trees of arguments and by settings.
      on: the stage to use.
      avals: types of the flat arguments, where they are not those of the arguments (rows).
    """
    values, tree = arguments(args, kwargs, does)
    if avals is None:
        avals = tuple([v.aval for v in values])
    axes = named_axes()
    key = tree, avals, config.state, tuple(axes.items()) if axes else None
    if keep is not None:
        found: Any = keep.get(key)
        if found is not None:
            return Traced(found[0], found[1], found[2], values)
    out_tree: Any = None

    def flat(*xs: Any) -> list:
        nonlocal out_tree
        a, k = tree.unflatten(xs)
        out = f(*a, **k)
        outs, out_tree = flatten(out)
        return [_result(o, i, out, f) for i, o in enumerate(outs)]

    events.happened("trace", f)
    s = on or Stage(current(), does, f)
    name = getattr(f, "__name__", "f")
    program, captured = stage(flat, avals, name, on=s)
    hit = program, captured, out_tree
    if keep is not None and not any(map(is_tracer, captured)):
        keep[key] = hit
    return Traced(*hit, values)


def arguments(args: Sequence[Any], kwargs: dict[str, Any], does: str) -> tuple[list, TreeDef]:
    """(values, tree) of the arguments of a transformed function.

    Raises TypeRule, naming the argument, if one is no array; `does` is what is being done.
    """
    leaves, tree = flatten((args, kwargs))
    return [
        x if x.__class__ is Array else _argument(x, i, args, kwargs, does)
        for i, x in enumerate(leaves)
    ], tree


def _argument(x: Any, i: int, args: Any, kwargs: Any, does: str) -> Any:
    try:
        return as_value(x)
    except TypeRule as e:
        if "not a valid array type" not in e.what:
            raise
        path = key_paths((list(args), kwargs))[i]
        where = path.replace("[0]", "args", 1) if path.startswith("[0]") else path[3:]
        raise TypeRule(
            f"{e.what} ({does}: {where})", fix=f"{e.fix}, or make the argument static"
        ) from None


def _result(x: Any, i: int, out: Any, f: Callable) -> Any:
    try:
        return as_value(x)
    except TypeRule:
        name = getattr(f, "__name__", "the function")
        path = key_paths(out)[i]
        raise not_an_array(x, f"the result{path} of {name},") from None


class Traces(dict):
    """Traces of one function, by types and trees of arguments."""

    __slots__ = ("owner", "__weakref__")
    owner: Callable[[], Any]

    def __reduce__(self):
        return dict, ()  # a function that is pickled by its contents leaves them behind


_ATTRIBUTE = "__weft_traces__"
_kept: dict[int, Traces] = {}
_all: "weakref.WeakValueDictionary[int, Traces]" = weakref.WeakValueDictionary()


def kept(f: Callable) -> dict:
    """Traces of `f`, for as long as `f` lives; by identity, for equal things may differ.

    A function holds them itself, so that what it is traced to may refer to it (a custom rule that
    mentions the function it is used in) and both are collected together.
    """
    held = f.__dict__.get(_ATTRIBUTE) if f.__class__ is FunctionType else _kept.get(id(f))
    if held is not None and held.owner() is f:  # else copied by functools.wraps, or of the dead
        return held
    traces, k, store = Traces(), id(f), _kept

    def forget(ref: Any) -> None:
        if k in store and store[k].owner is ref:
            del store[k]

    try:
        if f.__class__ is FunctionType:
            traces.owner = weakref.ref(f)
            f.__dict__[_ATTRIBUTE] = traces
        else:
            traces.owner = weakref.ref(f, forget)
            store[k] = traces
    except TypeError:
        return {}
    _all[id(traces)] = traces
    return traces


def kept_traces_cleared() -> None:
    """Forget the traces of all functions."""
    for traces in list(_all.values()):
        traces.clear()


# ---- ahead of time -------------------------------------------------------------------------


class ShapeDtypeStruct:
    """A shape and a dtype, where an array would be too much.

    Args:
      shape: ints or symbolic sizes.
      dtype: anything numpy takes for a dtype.
      weak_type: whether the dtype gives way to others.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding")

    def __init__(self, shape: Any, dtype: Any, *, weak_type: bool = False, sharding: Any = None):
        aval = Aval(tuple(shape), dtype, weak_type)
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, weak_type
        self.sharding = sharding

    @property
    def aval(self) -> Aval:
        return Aval(self.shape, self.dtype, self.weak_type)

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: self.aval.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.aval is other.aval

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"


class _Shape(Tracer):
    """Only a type, and where it will be: what staging and lowering need to know of an argument."""

    __slots__ = ("key",)

    def __init__(self, aval: Aval, placement: Any = None):
        self.by, self.aval, self.where = GROUND, aval, None
        self.key = aval if placement is None else Placed(aval, placement)


def shapes_only(tree_: Any) -> Any:
    """The arguments with ShapeDtypeStructs made into something to stage on."""
    leaves, tree = flatten(tree_)
    return tree.unflatten(
        [_Shape(x.aval, x.sharding) if isinstance(x, ShapeDtypeStruct) else x for x in leaves]
    )


def eval_shape(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of `f(*args, **kwargs)`, without computing anything.

    Arguments are arrays or ShapeDtypeStructs; the result is a tree of ShapeDtypeStructs.
    """
    keep = kept(f)
    program, _, tree, _ = trace(f, shapes_only(args), shapes_only(kwargs), "eval_shape", keep)
    return tree.unflatten(
        [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in program.out_avals]
    )


def make_program(f: Callable) -> Callable[..., Program]:
    """A function that returns the Program of `f` for its arguments.

    >>> import weft as wf
    >>> print(wf.make_program(lambda x: wf.lax.sin(x) * 2)(1.0))
    lambda(%0: f32[]*) {
      %1: f32[]* = core.sin(%0)
      %2: f32[]* = core.mul(%1, 2.0:f32[]*)
      return %2
    }
    """

    @functools.wraps(f)
    def program_of(*args: Any, **kwargs: Any) -> Program:
        return trace(f, shapes_only(args), shapes_only(kwargs), "make_program").program

    return program_of


class Lowered:
    """A function as StableHLO, for some types of arguments."""

    def __init__(self, traced: Traced, donated: tuple[int, ...], platforms: tuple[str, ...] | None):
        self._traced, self._donated, self._platforms = traced, donated, platforms

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
        """The StableHLO text, with source locations if asked."""
        return mlir.text(self.module(debug_info).code, debug_info)

    def compile(self) -> "Compiled":
        """The executable for the platform of this process."""
        traced, keys = self._traced, self._keys()
        events.happened("lower", traced.program)
        module = module_of(traced.program, self._donated, keys)
        loaded = load(module)
        run = bound(traced.program, module, loaded, keys, [], self._donated)
        return Compiled(run, traced, keys, loaded.executable)


class Compiled:
    """An executable for some types of arguments; call it as the function."""

    def __init__(self, run: Executable, traced: Traced, keys: list, loaded: Any):
        self._run, self._traced, self._loaded = run, traced, loaded
        self._front = [c.buffer() for c in traced.captured]
        self._keys = keys[len(traced.captured) :]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = flatten((args, kwargs))
        bufs = []
        for x, k in zip(leaves, self._keys, strict=True):
            x = as_argument(x)
            if x.key.placement is None and k.placement is not None:
                x = k.placement.accept(x)
            if not x.aval.same_type(k.aval) or x.key.placement != k.placement:
                raise TypeRule(
                    f"this executable is for {k!r}, not {x.key!r}",
                    fix="compile it for these types too, or call the jitted function",
                )
            bufs.append(x.buffer())
        outs = self._run.run(self._front + bufs).consume_with_handlers(self._run.handlers)
        return self._traced.tree.unflatten([_wrap(b, k) for b, k in zip(outs, self._run.keys)])

    def as_text(self) -> str:
        """The optimised HLO."""
        return door.hlo_text(self._loaded)

    def memory_analysis(self) -> Any:
        """Bytes of arguments, results and temporaries, as the compiler counts them."""
        return self._loaded.get_compiled_memory_stats()

    def cost_analysis(self) -> dict:
        """The compiler's estimate of work."""
        return self._loaded.cost_analysis()


def _wrap(buf: Any, key: Any) -> Array:
    r = Array()
    r._buf, r.aval, r.key = buf, key.aval, key
    return r


# ---- jit -----------------------------------------------------------------------------------


def jit(
    fun: Callable | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    keep_unused: bool = False,
    inline: bool = False,
) -> Any:
    """Compile `fun`: its Python runs once per argument types and static values.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.
      static_argnums, static_argnames: arguments that are not arrays: hashable values, for each of
        which `fun` is compiled anew.  One is derived from the other by the signature.
      donate_argnums, donate_argnames: arguments whose memory results may take; they are deleted.
      in_shardings, out_shardings: where arguments are brought, and how results lie: a placement
        or a tree prefix of them; None leaves the choice open.
      keep_unused: changes nothing: arguments that `fun` does not use are always kept.
      inline: staged calls become the operations of `fun` instead of one call.

    Returns:
      A function with `fun`'s signature, and `.trace(...)`, `.lower(...)`, `.eval_shape(...)`,
      `.clear_cache()`.

    Raises:
      TypeRule: an argument is no array and not static, or a static one is not hashable.
      UnexpectedTracerError, ConcretizationError: see there.

    >>> import weft as wf
    >>> wf.jit(lambda x: x * 2 + 1)(3.0)
    Array(7., dtype=float32, weak_type=True)
    """
    if fun is None:
        given = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **given)
    if not callable(fun):
        raise TypeRule(f"jit needs a function, not {fun!r}", fix="write jit(f), without calling f")
    options = (static_argnums, static_argnames, donate_argnums, donate_argnames)
    if all(o is None for o in options) and in_shardings is None and out_shardings is None:
        return _plain(fun, (), inline)
    return _special(fun, *options, in_shardings, out_shardings, inline)


def _plain(f: Callable, donated: tuple[int, ...], inline: bool = False) -> Callable:
    """The dispatcher.  The way that worked last time is tried first: 0 flat arrays, 1 flat arrays
    and names, 3 flat arrays, numpy arrays and scalars, 2 trees of anything; whatever is unknown
    falls into `slow`."""
    one: dict = {}
    flat: dict = {}
    named: dict = {}
    trees: dict = {}
    calls: dict = {}
    traces = kept(f)
    mode = 0
    mixed = False
    A, ground, cur = Array, GROUND, current

    def jitted(*args: Any, **kwargs: Any) -> Any:
        if cur() is not ground:
            return staged(args, kwargs)
        try:
            if not mode and not kwargs:
                if len(args) == 1:
                    (x,) = args
                    bufs = [x._buf]
                    run, handlers, keys, tree = one[x.key]
                else:
                    bufs = [x._buf for x in args]
                    run, handlers, keys, tree = flat[tuple([x.key for x in args])]
            elif mode == 1:
                xs = [*args, *kwargs.values()]
                bufs = [x._buf for x in xs]
                run, handlers, keys, tree, order = named[(*kwargs, *[x.key for x in xs])]
                if order is not None:
                    bufs = [bufs[i] for i in order]
            elif mode == 3 and not kwargs:
                xs = [x if x.__class__ is A else as_argument(x) for x in args]
                bufs = [x._buf for x in xs]
                run, handlers, keys, tree = flat[tuple([x.key for x in xs])]
            else:
                leaves, in_tree = flatten((args, kwargs))
                if mixed:
                    leaves = [x if x.__class__ is A else as_argument(x) for x in leaves]
                bufs = [x._buf for x in leaves]
                run, handlers, keys, tree = trees[in_tree, tuple([x.key for x in leaves])]
        except (KeyError, AttributeError, TypeError):
            return slow(args, kwargs)
        try:
            outs = run(bufs).consume_with_handlers(handlers)
        except door.RuntimeFailure as e:
            raise failure(e) from None
        if tree is None:
            r = A()
            r._buf = outs[0]
            r.aval, r.key = keys
            return r
        i = 0
        for a, k in keys:
            r = A()
            r._buf = outs[i]
            r.aval = a
            r.key = k
            outs[i] = r
            i += 1  # noqa: SIM113  (enumerate makes a tuple per result)
        return outs if tree is True else tree.unflatten(outs)

    def slow(args: tuple, kwargs: dict) -> Any:
        nonlocal mode, mixed
        leaves, in_tree = flatten((args, kwargs))
        if any(map(is_tracer, leaves)):
            return staged(args, kwargs)
        leaves = [_concrete(x, i, args, kwargs) for i, x in enumerate(leaves)]
        for x in leaves:
            x.buffer()
        arguments = [*args, *kwargs.values()]
        given = flatten((args, kwargs))[0]
        mixed = not all(x.__class__ is A for x in given)
        only_leaves = len(given) == len(arguments) and all(map(is_, given, arguments))
        is_flat = only_leaves and not mixed
        mode = (1 if kwargs else 0) if is_flat else 3 if only_leaves and not kwargs else 2
        keys = tuple([x.key for x in leaves])
        entry = trees.get((in_tree, keys))
        if entry is None:
            a, k = in_tree.unflatten(leaves)
            traced = trace(f, a, k, "jit", traces)
            if any(map(is_tracer, traced.captured)):
                return staged(args, kwargs)
            entry = trees[in_tree, keys] = _entry(traced, keys, donated)
        if only_leaves and not kwargs:
            flat[keys] = entry
            if len(keys) == 1:
                one[keys[0]] = entry
        elif is_flat:
            names = tuple(kwargs)
            n = len(args)
            order = [*range(n), *(n + names.index(k) for k in sorted(names))]
            same = order == list(range(len(order)))
            as_given = [x.key for x in arguments]
            named[(*names, *as_given)] = (*entry, None if same else order)
        run, handlers, outs, tree = entry
        try:
            results = run([x._buf for x in leaves]).consume_with_handlers(handlers)
        except door.RuntimeFailure as e:
            raise failure(e) from None
        if tree is None:
            return _wrap(results[0], outs[1])
        results = [_wrap(b, k) for b, (_, k) in zip(results, outs)]
        return results if tree is True else tree.unflatten(results)

    def staged(args: tuple, kwargs: dict) -> Any:
        alone = not kwargs and not inline and not named_axes()
        if alone:
            try:  # flat values, whose trace captured nothing: the call and no more
                params, tree = calls[tuple([x.aval if x.__class__ in _VALUES else x for x in args])]
            except (KeyError, TypeError):
                pass
            else:
                outs = current().apply(call, args, params)
                return outs[0] if tree is None else tree.unflatten(outs)
        traced = trace(f, args, kwargs, "jit", traces)
        operands = [*traced.captured, *traced.values]
        if inline:
            outs = evaluate(traced.program, operands)
        else:
            outs = current().apply(call, operands, {"program": traced.program})
            if alone and len(operands) == len(args) and _all_values(args):
                tree = None if traced.tree == LEAF else traced.tree
                calls[tuple([x.aval for x in args])] = {"program": traced.program}, tree
        return traced.tree.unflatten([materialise_at_ground(o) for o in outs])

    def forget() -> None:
        for table in (one, flat, named, trees, calls):
            table.clear()

    def clear_cache() -> None:
        """Drop all traces and executables."""
        forget()
        traces.clear()

    def lower(*args: Any, **kwargs: Any) -> Lowered:
        """Stage and lower for the types of these arguments."""
        return trace_now(*args, **kwargs).lower()

    def trace_now(*args: Any, **kwargs: Any) -> "Staged":
        """Stage for the types of these arguments."""
        traced = trace(f, shapes_only(args), shapes_only(kwargs), "jit", traces)
        return Staged(traced, donated, flatten((args, kwargs))[1])

    functools.update_wrapper(jitted, f, updated=())
    jitted.trace, jitted.lower = trace_now, lower  # type: ignore[attr-defined]
    jitted.eval_shape = functools.partial(eval_shape, f)  # type: ignore[attr-defined]
    jitted.clear_cache, jitted.forget = clear_cache, forget  # type: ignore[attr-defined]
    jitted.flat = flat  # type: ignore[attr-defined]
    config.watch(forget)
    return jitted


class Staged:
    """A staged function: `.program`, and `.lower()`; `in_tree` is the structure of the traced
    (args, kwargs), which are the last inputs of the program."""

    def __init__(self, traced: Traced, donated: tuple[int, ...], in_tree: TreeDef):
        self._traced, self._donated, self.in_tree = traced, donated, in_tree

    @property
    def program(self) -> Program:
        """The Program."""
        return self._traced.program

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
        return Lowered(self._traced, self._donated, platforms)


_VALUES = frozenset((Array, Literal, Var, Lifted))


def _all_values(args: tuple) -> bool:
    return all(x.__class__ in _VALUES for x in args)


def _entry(traced: Traced, keys: tuple, donated: tuple[int, ...]) -> tuple:
    """What the dispatcher needs: run, handlers, (aval, key) of results, tree."""
    program, captured = traced.program, traced.captured
    k = len(captured)
    all_keys = (*[c.key for c in captured], *keys)
    shifted = tuple([i + k for i in donated])
    made = derived(
        program,
        ("executable", shifted, all_keys),
        lambda: executable(program, shifted, all_keys),
    )
    tree: Any = traced.tree
    if tree == LEAF:
        tree = None
    elif len(made.keys) < 64 and tree == LISTS[len(made.keys)]:
        tree = True
    outs: Any = [(o.aval, o) for o in made.keys]
    return made.run, made.handlers, outs[0] if tree is None else outs, tree


def _concrete(x: Any, i: int, args: Any, kwargs: Any) -> Array:
    if x.__class__ is Array:
        return x
    _argument(x, i, args, kwargs, "jit")
    return as_argument(x)


# ---- static, donated and placed arguments ---------------------------------------------------


def _numbers(x: Any) -> tuple[int, ...]:
    return () if x is None else (x,) if isinstance(x, int) else tuple(x)


def _names(x: Any) -> tuple[str, ...]:
    return () if x is None else (x,) if isinstance(x, str) else tuple(x)


_TELLING = frozenset({int, bool, str, type(None), type, type(len), type(lambda: None)})
"""Classes of static values whose equality tells all: no 0.0 == -0.0, no 1 == 1.0 inside."""


class _Roles(NamedTuple):
    """Which arguments have a role, by position and by name."""

    nums: frozenset[int]
    names: frozenset[str]


def _roles(f: Callable, nums: Any, names: Any, what: str) -> _Roles:
    """Positions and names, each derived from the other by the signature."""
    found, given = list(_numbers(nums)), set(_names(names))
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    places = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    open_ended = not parameters or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for i, n in enumerate(found):
        if not open_ended and not -len(places) <= n < len(places):
            raise TypeRule(
                f"{what}_argnums {n} is out of range: the function takes {len(places)} positional "
                "arguments",
                fix=f"number them from 0 to {len(places) - 1}",
            )
        found[i] = n + len(places) if n < 0 else n
    known = {p.name for p in parameters}
    takes_any = not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in given:
        if not takes_any and name not in known:
            raise TypeRule(
                f"{what}_argnames {name!r} is no argument of the function",
                fix=f"its arguments are {', '.join(known)}",
            )
    by_number = {places[n] for n in found if n < len(places)}
    by_name = {places.index(n) for n in given if n in places}
    return _Roles(frozenset({*found, *by_name}), frozenset(given | by_number))


def _special(
    f: Callable,
    static_argnums: Any,
    static_argnames: Any,
    donate_argnums: Any,
    donate_argnames: Any,
    in_shardings: Any,
    out_shardings: Any,
    inline: bool,
) -> Callable:
    """One dispatcher per static values; donated arguments lose their buffer."""
    static = _roles(f, static_argnums, static_argnames, "static")
    donate = _roles(f, donate_argnums, donate_argnames, "donate")
    if static.nums & donate.nums or static.names & donate.names:
        raise TypeRule(
            "static and donated arguments cannot intersect: "
            f"{sorted(static.nums & donate.nums) or sorted(static.names & donate.names)}",
            fix="an argument is static, or donated, or neither",
        )
    versions: dict = {}
    body = _placed(f, out_shardings) if out_shardings is not None else f
    name = getattr(f, "__name__", "f")

    def version_for(args: tuple, kwargs: dict) -> tuple[Callable, tuple, dict]:
        fixed = {i: args[i] for i in static.nums if i < len(args)}
        fixed_names = {k: kwargs[k] for k in kwargs if k in static.names}
        try:
            key = (
                len(args),
                tuple([(i, freeze(v)) for i, v in sorted(fixed.items())]),
                tuple([(k, freeze(v)) for k, v in sorted(fixed_names.items())]),
                None if not donate.nums else _leaf_counts(args),
            )
        except TypeError:
            bad = [v for v in (*fixed.values(), *fixed_names.values()) if not _hashable(v)]
            raise TypeRule(
                f"static arguments of {name} must be hashable, and {bad[0]!r} of type "
                f"{type(bad[0]).__name__} is not",
                fix="pass a tuple instead of a list, or do not make the argument static",
            ) from None
        dynamic = tuple([a for i, a in enumerate(args) if i not in fixed])
        rest = {k: v for k, v in kwargs.items() if k not in fixed_names}
        version = versions.get(key)
        if version is None:
            version = versions[key] = _version(args, kwargs, fixed, fixed_names)
        return version, dynamic, rest

    def _version(args: tuple, kwargs: dict, fixed: dict, fixed_names: dict) -> Callable:
        n = len(args)

        @functools.wraps(f, updated=())
        def rest(*dynamic: Any, **named: Any) -> Any:
            values = iter(dynamic)
            full = [fixed[i] if i in fixed else next(values) for i in range(n)]
            return body(*full, **named, **fixed_names)

        return _plain(rest, _donated_leaves(args, kwargs, fixed, fixed_names, donate), inline)

    quick: dict = {}
    numbers = tuple(sorted(static.nums))
    at = numbers[0] if len(numbers) == 1 else None
    dynamic_places: dict[int, tuple[int, ...]] = {}
    donated = tuple(sorted(donate.nums))
    ground, cur, A = GROUND, current, Array

    def jitted(*args: Any, **kwargs: Any) -> Any:
        """Flat arrays and plain static values: a look-up here; the rest is `general`."""
        if cur() is not ground:
            return general(args, kwargs)
        try:
            if at is not None and len(args) == 2 and not kwargs:
                fixed: Any = args[at]
                x = args[1 - at]
                bufs = [x._buf]
                run, handlers, outs, tree = quick[fixed.__class__, fixed, x.key]
            else:
                values = [args[i] for i in numbers]
                xs = [args[i] for i in dynamic_places[len(args)]] if numbers else args
                bufs = [x._buf for x in xs]
                run, handlers, outs, tree = quick[
                    (
                        len(kwargs),
                        *[v.__class__ for v in values],
                        *values,
                        *[x.key for x in xs],
                    )
                ]
        except (KeyError, AttributeError, TypeError, IndexError):
            return general(args, kwargs)
        try:
            results = run(bufs).consume_with_handlers(handlers)
        except door.RuntimeFailure as e:
            raise failure(e) from None
        for i in donated:
            del args[i]._buf
        if tree is None:
            r = A()
            r._buf = results[0]
            r.aval, r.key = outs
            return r
        results = [_wrap(b, k) for b, (_, k) in zip(results, outs)]
        return results if tree is True else tree.unflatten(results)

    def general(args: tuple, kwargs: dict) -> Any:
        given = args
        version, dynamic, rest = version_for(args, kwargs)
        if in_shardings is not None:
            dynamic = _bring(dynamic, in_shardings)
        out = version(*dynamic, **rest)
        if current() is not GROUND:
            return out
        if in_shardings is None and not kwargs and all(x.__class__ is Array for x in dynamic):
            flat: dict = version.flat  # type: ignore[attr-defined]
            _remember(args, flat.get(tuple([x.key for x in dynamic])), dynamic)
        if donate.nums or donate.names:
            mine = [given[i] for i in donate.nums if i < len(given)]
            _forget_donated([*mine, *(kwargs[k] for k in kwargs if k in donate.names)])
        return out

    def _remember(args: tuple, entry: Any, dynamic: tuple) -> None:
        """Next time this call is a look-up, if its static values tell all by ==."""
        n = len(args)
        values = [args[i] for i in numbers if i < n]
        if entry is None or len(values) < len(numbers):
            return
        if any(v.__class__ not in _TELLING for v in values):
            return
        dynamic_places[n] = tuple([i for i in range(n) if i not in static.nums])
        keys = [x.key for x in dynamic]
        quick[(0, *[v.__class__ for v in values], *values, *keys)] = entry
        if at is not None and n == 2:
            quick[values[0].__class__, values[0], keys[0]] = entry

    def forward(method: str) -> Callable:
        def do(*args: Any, **kwargs: Any) -> Any:
            version, dynamic, rest = version_for(args, kwargs)
            if in_shardings is not None:
                dynamic = _bring(shapes_only(dynamic), in_shardings)
            return getattr(version, method)(*dynamic, **rest)

        return do

    functools.update_wrapper(jitted, f, updated=())
    for method in ("trace", "lower", "eval_shape"):
        setattr(jitted, method, forward(method))
    def clear_cache() -> None:
        """Drop all traces and executables."""
        quick.clear()
        versions.clear()

    jitted.clear_cache, jitted.forget = clear_cache, quick.clear  # type: ignore[attr-defined]
    config.watch(jitted.forget)  # type: ignore[attr-defined]
    return jitted


def _hashable(x: Any) -> bool:
    try:
        freeze(x)
    except TypeError:
        return False
    return True


def _leaf_counts(args: tuple) -> tuple[int, ...]:
    return tuple([1 if a.__class__ is Array else len(flatten(a)[0]) for a in args])


def _donated_leaves(
    args: tuple, kwargs: dict, fixed: dict, fixed_names: dict, donate: _Roles
) -> tuple[int, ...]:
    """Numbers of the flat dynamic arguments that are donated."""
    out: list[int] = []
    at = 0
    named = [(k, kwargs[k]) for k in sorted(kwargs) if k not in fixed_names]
    for role, a in [
        *((i in donate.nums, a) for i, a in enumerate(args) if i not in fixed),
        *((k in donate.names, a) for k, a in named),
    ]:
        n = len(flatten(a)[0])
        out += range(at, at + n) if role else ()
        at += n
    return tuple(out)


def _forget_donated(trees: list) -> None:
    for x in flatten(trees)[0]:
        if x.__class__ is Array and hasattr(x, "_buf"):
            del x._buf


def _bring(args: tuple, placements: Any) -> tuple:
    """Arguments where the placements (a tree prefix) say."""
    leaves, tree = flatten(args)
    wanted = spread(placements, args, "in_shardings", _is_placement, "a placement or None")
    return tree.unflatten([x if p is None else _brought(x, p) for x, p in zip(leaves, wanted)])


def _brought(x: Any, placement: Any) -> Any:
    return _Shape(x.aval, placement) if x.__class__ is _Shape else placement.accept(x)


def _placed(f: Callable, placements: Any) -> Callable:
    """`f`, whose results lie as the placements (a tree prefix) say."""

    @functools.wraps(f)
    def constrained(*args: Any, **kwargs: Any) -> Any:
        out = f(*args, **kwargs)
        leaves, tree = flatten(out)
        wanted = spread(placements, out, "out_shardings", _is_placement, "a placement or None")
        return tree.unflatten([x if p is None else p.constrain(x) for x, p in zip(leaves, wanted)])

    return constrained


def _is_placement(x: Any) -> bool:
    return x is None or hasattr(x, "constrain")
