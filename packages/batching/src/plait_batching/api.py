"""vmap: map a function over axes of its arguments.

Invariant: in_axes and out_axes are prefixes of the trees they describe; all mapped axes have one
size.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any, ParamSpec, TypeVar, overload

import plait
from plait.ext.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    NotAnArrayError,
    ShapeError,
    UndecidedDim,
    border,
    names_in_call,
)
from plait.ext.sizes import Dim, is_symbolic
from plait.ext.trace import (
    GROUND,
    Handle,
    Lending,
    admitted,
    current,
    enter,
    handle_among,
    is_recorded,
    leaf_name,
    leave,
    naming,
    opened,
    result,
    wraps,
)
from plait.ext.tree import TreeDef, flatten, key_paths, spread
from plait.ext.values import as_value

from .axes import (
    ENTRY,
    counted,
    entries,
    inside,
    is_axis,
    kind_of,
    lifted,
    may_be_sizes,
    one_size,
    taken,
    unmoved,
    whole_of,
)
from .chunks import in_chunks
from .interpreter import Batch
from .recording import can_be_recorded, recorded_map
from .vmappable import data_leaf, has_data, is_vmappable, returns_data

P = ParamSpec("P")
R = TypeVar("R")


@overload
def vmap(
    fun: Callable[P, R],
    in_axes: object = 0,
    out_axes: object = 0,
    axis_name: object = None,
    axis_size: int | None = None,
    spmd_axis_name: object = None,
    *,
    chunk: int | None = None,
) -> Callable[P, R]: ...
@overload
def vmap(
    fun: None = None,
    in_axes: object = 0,
    out_axes: object = 0,
    axis_name: object = None,
    axis_size: int | None = None,
    spmd_axis_name: object = None,
    *,
    chunk: int | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
@border
def vmap(
    fun: Callable[..., Any] | None = None,
    in_axes: object = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    *,
    chunk: int | None = None,
) -> Callable[..., Any]:
    """Map `fun` over axes of its arguments, computing all elements at once.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.
      in_axes: the mapped axis of each positional argument: one entry for all arguments, or a tuple
        with an entry or a tree prefix per argument.  An entry is an int (negative ones count from
        the end), None for an argument that does not vary (which need not be an array: a function,
        a string), `plait.pile_axis` for a `Pile`, or an instance of a class registered by
        `register_vmappable`.  Keyword arguments are mapped along axis 0.  If a mutable reference is
        mapped, `fun` gets a reference to one element; its writes reach the original.
      out_axes: the mapped axis of the results: an int, None for results that do not vary,
        `plait.pile_axis` for results whose size differs between elements, or a tree prefix of them.
      axis_name: the name of the mapped axis for collectives inside `fun` (`lax.psum`, ...).
      axis_size: the size of the mapped axis; needed if no argument is mapped.
      spmd_axis_name: the name of a mesh axis, or a tuple of them, that the mapped axis is divided
        over wherever `fun` states a sharding: `with_sharding_constraint` to `P("x")` constrains the
        stack to `P("data", "x")`, and each device of a `shard_map` takes its part of the elements.
        With None the compiler decides.
      chunk: the number of elements computed at a time, with the remainder last; None computes all
        at once.  Results are the same; temporary memory is that of one chunk.

    Returns:
      A function with `fun`'s signature.

    Raises:
      AxisError: an axis out of range, sizes that differ, or nothing mapped.
      ArgumentError: chunk together with axis_name, whose collectives need all elements.
      TreeMismatch: in_axes or out_axes is not a prefix of the arguments or results.

    >>> import plait
    >>> plait.vmap(lambda x, y: x * y, in_axes=(0, None))(plait.numpy.arange(3.0), 2.0)
    Array([0., 2., 4.], dtype=float32)
    """
    if fun is None:
        return partial(
            vmap,
            in_axes=in_axes,
            out_axes=out_axes,
            axis_name=axis_name,
            axis_size=axis_size,
            spmd_axis_name=spmd_axis_name,
            chunk=chunk,
        )
    if not callable(fun):
        raise ArgumentError(f"vmap needs a function, not {fun!r}", fix="write vmap(f)")
    over = _mesh_axes(spmd_axis_name)
    f, step = fun, _chunk(chunk, axis_name)
    name = f"vmap({getattr(f, '__name__', type(f).__name__)})"
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not is_axis(in_axes) and not isinstance(in_axes, tuple):
        raise ShapeError(
            f"vmap: in_axes is one axis for all arguments, or a tuple with an entry for each, and "
            f"not {in_axes!r}",
            fix="write in_axes=0 or in_axes=(0, None)",
        )

    whole = whole_of((in_axes, out_axes))
    is_plain = axis_name is None and over is None and step is None

    def mapped_whole(call: Callable, args: tuple, kwargs: dict, **more: object) -> Any:
        if over is not None or step is not None:
            raise ArgumentError(
                "vmap over piles takes no spmd_axis_name and no chunk", fix="leave them out"
            )
        with naming(name):
            return call(f, in_axes, out_axes, axis_name, axis_size, args, kwargs, **more)

    def lent_axes(leaves: list, tree: TreeDef, args: tuple) -> dict[int, Any]:
        """Return {leaf index: axis} of the handles that are mapped."""
        like, _ = _without_data((args, {}), leaves, tree)
        axes = entries("vmap", in_axes, args, like, len(leaves), is_axis, f=f)
        mapped = enumerate(zip(leaves, axes))
        return {i: a for i, (x, a) in mapped if a is not None and isinstance(x, Handle)}

    def mapped_parts(leaves: list, tree: TreeDef, at: dict[int, Any]) -> Any:
        """Call `f` with handles for single elements, then write their final values back."""
        for i, axis in at.items():
            if not isinstance(axis, int):
                args, kwargs = tree.unflatten(leaves)
                said = f"what is mapped as {axis!r} ({_argument((args, kwargs), i, f)})"
                raise leaves[i].refused(said)
        lending = Lending(leaves, tree, list(at), data_leaf())

        @wraps(f)
        def with_parts(*args: Any, **kwargs: object) -> Any:
            (args, kwargs), parts = lending.lent((args, kwargs))
            out = f(*args, **kwargs)
            return out, lending.returned(parts, out)

        back = (out_axes, list(at.values()))
        with lending:
            args, kwargs = lending.plain
            again = vmap(
                with_parts, in_axes, back, axis_name, axis_size, spmd_axis_name, chunk=chunk
            )
            out, ends = again(*args, **kwargs)
        lending.restore(ends)
        return out

    @border
    @wraps(f)
    def mapped(*args: object, **kwargs: object) -> Any:
        leaves, tree = flatten((args, kwargs), data_leaf())
        if handle_among(leaves) is not None:
            found = lent_axes(leaves, tree, args)
            if found:
                return mapped_parts(leaves, tree, found)
        call = whole or whole_of((args, kwargs))
        if call is not None:
            return mapped_whole(call, args, kwargs)
        like, _ = _without_data((args, {}), leaves, tree)
        axes = entries("vmap", in_axes, args, like, len(leaves), is_axis, f=f)
        xs = [_value(x, a, i, args, kwargs, f) for i, (x, a) in enumerate(zip(leaves, axes))]
        axes = _axes(axes, args, kwargs, xs, f)
        size = _size(args, kwargs, xs, axes, axis_size, f)
        made: dict[int, Handle] = {}  # results that are handles created by `f`

        def run(xs: list, axes: list, size: Dim | int, chosen: Callable | None = None) -> tuple:
            """Return (results, their tree, spread out_axes).  The mapped axis of each result is
            where out_axes puts it, or where `chosen` maps that entry to."""
            b = Batch(
                current(), size, axis_name, divided_over(over, xs, axes, (args, kwargs), f), of=f
            )
            with opened(b):
                a, k = tree.unflatten([lifted(b, x, d) for x, d in zip(xs, axes)])
                out = f(*a, **k)
                outs, out_tree = flatten(out, data_leaf())
                own = {i: o for i, o in enumerate(outs) if isinstance(o, Handle) and o.by is b}
                made.update(own)
                outs = [own[i].ended() if i in own else o for i, o in enumerate(outs)]
                returns_data(outs, f)
                outs = [o if is_vmappable(o) else result(o, i, out, f) for i, o in enumerate(outs)]
                like = _without_data(out, outs, out_tree)
                wanted = spread(out_axes, like, "out_axes", is_axis, ENTRY)
                varies = lambda i: b.split(as_value(outs[i]))[0] is not None  # noqa: E731
                wanted = unmoved(wanted, out_tree, varies)
            at = wanted if chosen is None else map(chosen, wanted, outs)
            token = enter(b.parent)  # type: ignore[arg-type]
            try:
                told = [partial(_path, like, i) for i in range(len(outs))]
                return list(map(taken, repeat(b), outs, at, told)), out_tree, wanted
            finally:
                leave(token)

        with naming(name):
            try:
                if is_plain and current() is GROUND and is_recorded(f, "vmap"):
                    if not has_data(leaves, f) and can_be_recorded(xs, axes):
                        found = recorded_map(f, xs, axes, tree, size, out_axes, vmap)
                        if found is not NotImplemented:
                            return found
                if step is None or _at_once(size, step):
                    outs, out_tree, _ = run(xs, axes, size)
                else:
                    outs, out_tree = in_chunks(run, xs, axes, size, step)
                outs = [made[i].like(o) if i in made else o for i, o in enumerate(outs)]
                return out_tree.unflatten(outs)
            except ConcretizationError as e:
                sizes = any(a is not None and may_be_sizes(x) for x, a in zip(xs, axes))
                if not sizes or over is not None or step is not None:
                    raise
                asked = e
        # `f` used a mapped integer as a concrete number.  If it made arrays of that size, the
        # sizes differ between examples: call it again as a map over piles.
        try:
            return mapped_whole(_wholes_of_sizes(), args, kwargs, as_sizes=True)
        except (ConcretizationError, UndecidedDim):
            raise asked from None  # `f` needs the value, and does not use it as a size
        finally:
            del asked  # its traceback holds this frame

    return mapped


def _wholes_of_sizes() -> Callable:
    """Return the function that maps calls whose integer arguments are sizes: that of piles."""
    # Looking up the name loads the modules that register it.
    call = whole_of(getattr(plait, "pile_axis"))  # noqa: B009
    assert call is not None
    return call


def divided_over(
    given: tuple[str, ...] | None, xs: Sequence[Any], axes: Sequence[Any], tree: Any, f: Any
) -> tuple[str, ...] | None:
    """Return the mesh axes that the mapped axis is divided over: those of `spmd_axis_name`, or the
    explicit axes in the types of the mapped arguments.

    Raises AxisError if these differ, or an argument that is not mapped is divided over them.
    """
    types: list[Any] = [getattr(x, "aval", None) for x in xs]  # a user's class may have none
    every = [getattr(a, "sharding", None) for a in types]
    if not any(every):
        return given
    found = given
    entries = [() if s is None else s.entries(a.ndim) for a, s in zip(types, every)]
    for i, (over, axis) in enumerate(zip(entries, axes)):
        names = over[axis] if over and axis is not None else ()
        if names and found and names != found:
            raise AxisError(
                f"vmap: the mapped axis is divided over {_said(found)}, and that of "
                f"{_argument(tree, i, f)}, of type {types[i]!r}, over {_said(names)}",
                fix="bring them to one sharding, by plait.sharding.reshard(x, P(...))",
            )
        found = names or found
    for i, (over, axis) in enumerate(zip(entries, axes)):
        both = [n for names in over for n in names if axis is None and n in (found or ())]
        if both:
            raise AxisError(
                f"vmap: {_argument(tree, i, f)}, of type {types[i]!r}, is not mapped, and is "
                f"divided over {both[0]!r}, as the mapped axis is",
                fix="bring it together, by plait.sharding.reshard(x, P()), or map it, too",
            )
    return found


def _argument(tree: tuple[Any, Any], i: int, f: Callable[..., Any]) -> str:
    """Return the name of leaf `i` of (args, kwargs), for messages."""
    return leaf_name(tree, i, names_in_call(f))


def _said(names: tuple[str, ...]) -> str:
    return " and ".join(map(repr, names))


def _path(tree: object, i: int) -> str:
    return key_paths(tree)[i]


def _without_data(tree: object, leaves: Sequence[Any], treedef: TreeDef) -> Any:
    """Return the tree with one leaf for each value of a class registered by
    `register_vmappable`."""
    return treedef.unflatten(range(len(leaves))) if data_leaf() is not None else tree


def _chunk(chunk: float | str | None, axis_name: str | None) -> int | None:
    """Return `chunk` as an int; refuse it together with an axis name."""
    n = counted("vmap", "chunk", chunk, "elements", "write chunk=64, or leave it out")
    if n is not None and axis_name is not None:
        raise ArgumentError(
            f"vmap: chunk={n} does so many elements at a time, and collectives along "
            f"axis_name={axis_name!r} speak of all of them",
            fix="leave out one of them",
        )
    return n


def _at_once(size: Dim | int, chunk: int) -> bool:
    """Return whether all elements fit in one chunk."""
    if is_symbolic((size,)):
        raise ShapeError(
            f"vmap: chunk={chunk} divides {size!r} elements, of which nobody knows how many they "
            "are",
            fix="leave chunk out where sizes are symbolic",
        )
    return size <= chunk


def _mesh_axes(given: str | None) -> tuple[str, ...] | None:
    """Return `spmd_axis_name` as a tuple of names, or None."""
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple) or not all(isinstance(n, str) for n in names):
        raise ArgumentError(
            f"vmap: spmd_axis_name={given!r} is neither a name of an axis of a mesh nor a tuple",
            fix='write spmd_axis_name="data" or spmd_axis_name=("data", "model")',
        )
    if len(set(names)) < len(names):
        raise AxisError(
            f"vmap: spmd_axis_name={given!r} has an axis twice", fix="name each axis once"
        )
    return names


def _value(x: object, axis: int | None, i: int, args: tuple, kwargs: dict, f: Any) -> Any:
    """Return leaf `i` of the arguments as a value.

    A leaf that is not an array is returned as it is, unless it is mapped along an axis: that raises
    NotAnArrayError with its path.  A Python number that is not mapped stays one, too: while
    tracing, arithmetic on a value would give a tracer, which cannot be the size of a slice."""
    if axis is None and x.__class__ in (int, float, complex, bool):
        return x
    try:
        return x if kind_of(axis, x) is not None else admitted(x)
    except NotAnArrayError as e:
        if axis is None:
            return x
        e.of(f"vmap: {_argument((args, kwargs), i, f)}")
        e.fix = f"{e.fix}, or say by in_axes=None that it does not vary"
        raise


def _axes(found: Sequence[Any], args: tuple, kwargs: dict, xs: Sequence[Any], f: Any) -> list[Any]:
    """Return the mapped axis of each leaf, counted from the front; raise AxisError for one out of
    range."""

    def told(i: int) -> str:
        return _argument((args, kwargs), i, f)

    return [
        a if a is None or kind_of(a, x) is not None else inside("vmap", a, x, partial(told, i))
        for i, (a, x) in enumerate(zip(found, xs, strict=True))
    ]


def _size(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    xs: list[Any],
    axes: list[Any],
    axis_size: int | None,
    f: Any,
) -> Any:
    """Return the size of the mapped axes; raise AxisError if they differ or none is known."""
    sizes = [(i, _along(x, a)) for i, (x, a) in enumerate(zip(xs, axes)) if a is not None]
    sizes = [(i, s) for i, s in sizes if s is not None]
    if sizes and axis_size is None and all(s == sizes[0][1] for _, s in sizes):
        return sizes[0][1]
    where = lambda a: f"axis {a}" if isinstance(a, int) else repr(a)  # noqa: E731
    told = [(f"{_argument((args, kwargs), i, f)} has {s} at {where(axes[i])}", s) for i, s in sizes]
    nothing = (
        "vmap: nothing is mapped: every in_axes entry is None (or there are no arguments)"
        if all(a is None for a in axes)
        else "vmap: the size of the mapped axis is not known: no argument is mapped along an "
        "axis of its own"
    )
    return one_size(told, axis_size, nothing)


def _along(x: Any, axis: Any) -> Any:
    """Return the size of an argument along its mapped axis; None if the argument does not fix
    it."""
    kind = kind_of(axis, x)
    return x.aval.shape[axis] if kind is None else kind.size(x, axis)
