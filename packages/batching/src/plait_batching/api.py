"""vmap: functions mapped over axes of their arguments.

Invariant: in_axes and out_axes are prefixes of the trees they describe; all mapped axes have one
size.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, overload

from plait.ext.errors import (
    ArgumentError,
    AxisError,
    NotAnArrayError,
    ShapeError,
    border,
)
from plait.ext.ops.shape import (
    materialise_at_ground,
    normal_axis,
)
from plait.ext.trace import (
    Value,
    current,
    enter,
    leave,
    opened,
    result,
    wraps,
)
from plait.ext.tree import (
    flatten,
    key_paths,
    spread,
)
from plait.ext.values import (
    as_value,
)

from .interpreter import Batch

P = ParamSpec("P")


def _is_axis(x: Any) -> bool:
    return x is None or (isinstance(x, int) and not isinstance(x, bool))


@overload
def vmap(
    fun: Callable[P, Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[P, Any]: ...
@overload
def vmap(
    fun: None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
@border
def vmap(
    fun: Callable[..., Any] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Any:
    """`fun` on every element along the mapped axes, all at once.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.
      in_axes: which axis of each positional argument is mapped: an int (negative ones count from
        the end), None for an argument that does not vary (which need not be an array: a function,
        a string), or a tuple of those and of tree prefixes, one per argument.  Keyword arguments
        are mapped along axis 0.
      out_axes: where the mapped axis is in the results: an int, None for results that do not
        vary, or a tree prefix of them.
      axis_name: a name by which collectives inside (`lax.psum`, ...) speak of the axis.
      axis_size: its size, if no argument is mapped.
      spmd_axis_name: the name of an axis of a mesh, or a tuple of them, over which the mapped
        axis is divided wherever something inside says how arrays lie: `with_sharding_constraint`
        to `P("x")` constrains the whole to `P("data", "x")`, and each device of a `shard_map`
        takes its part of the elements.  With None that is left to the compiler.

    Returns:
      A function with `fun`'s signature.

    Raises:
      AxisError: an axis out of range, sizes that differ, or nothing mapped.
      TreeMismatch: in_axes or out_axes is no prefix of the arguments or results.

    >>> import plait
    >>> plait.vmap(lambda x, y: x * y, in_axes=(0, None))(plait.numpy.arange(3.0), 2.0)
    Array([0., 2., 4.], dtype=float32)
    """
    if fun is None:
        return functools.partial(
            vmap,
            in_axes=in_axes,
            out_axes=out_axes,
            axis_name=axis_name,
            axis_size=axis_size,
            spmd_axis_name=spmd_axis_name,
        )
    if not callable(fun):
        raise ArgumentError(f"vmap needs a function, not {fun!r}", fix="write vmap(f)")
    over = _mesh_axes(spmd_axis_name)
    f = fun
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not _is_axis(in_axes) and not isinstance(in_axes, tuple):
        raise ShapeError(
            f"vmap: in_axes is one axis for all arguments, or a tuple with an entry for each, and "
            f"not {in_axes!r}",
            fix="write in_axes=0 or in_axes=(0, None)",
        )

    @border
    @wraps(f)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        axes = _entries(in_axes, args, len(leaves))
        xs = [_value(x, a, i, args, kwargs) for i, (x, a) in enumerate(zip(leaves, axes))]
        axes = _axes(axes, args, kwargs, xs)
        size = _size(args, kwargs, xs, axes, axis_size)
        b = Batch(current(), size, axis_name, over, of=f)
        with opened(b):
            a, k = tree.unflatten([_lifted(b, x, d) for x, d in zip(xs, axes)])
            out = f(*a, **k)
            outs, out_tree = flatten(out)
            outs = [result(o, i, out, f) for i, o in enumerate(outs)]
            wanted = spread(out_axes, out, "out_axes", _is_axis, "an axis or None")
        token = enter(b.parent)  # type: ignore[arg-type]
        try:
            taken = [_taken(b, o, a, out, i) for i, (o, a) in enumerate(zip(outs, wanted))]
            return out_tree.unflatten(taken)
        finally:
            leave(token)

    return mapped


def _mesh_axes(given: Any) -> tuple[str, ...] | None:
    """`spmd_axis_name` as a tuple of names, or None."""
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple) or not all(isinstance(n, str) for n in names):
        raise ArgumentError(
            f"vmap: spmd_axis_name={given!r} is no name of an axis of a mesh, nor a tuple of them",
            fix='write spmd_axis_name="data" or spmd_axis_name=("data", "model")',
        )
    if len(set(names)) < len(names):
        raise AxisError(
            f"vmap: spmd_axis_name={given!r} has an axis twice", fix="name each axis once"
        )
    return names


def _entries(in_axes: Any, args: tuple, n: int) -> list[int | None]:
    """The entry of in_axes for each of the `n` leaves of the arguments."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise AxisError(
            f"vmap: in_axes has {len(in_axes)} entries for {len(args)} positional arguments",
            fix="give one entry per positional argument, or a single int",
        )
    entry = "an axis or None"
    found = spread(in_axes, args, "in_axes", _is_axis, entry)
    return found + [0] * (n - len(found))


def _value(x: Any, axis: int | None, i: int, args: tuple, kwargs: dict) -> Any:
    """Leaf `i` of the arguments as a value; what is no array passes as it is, if it is not mapped.

    Raises NotAnArrayError, naming it, if it is mapped."""
    try:
        return as_value(x)
    except NotAnArrayError as e:
        if axis is None:
            return x
        where = key_paths((list(args), kwargs))[i]
        raise NotAnArrayError(
            f"{e.what} (vmap: {where.replace('[0]', 'args', 1) if where[1] == '0' else where[3:]})",
            fix=f"{e.fix}, or say by in_axes=None that it does not vary",
        ) from None


def _lifted(b: Batch, x: Any, axis: int | None) -> Any:
    return b.wrap(x, axis) if isinstance(x, Value) else x


def _axes(
    found: Sequence[int | None], args: tuple, kwargs: dict, xs: Sequence[Any]
) -> list[int | None]:
    """The mapped axis of each leaf, counted from the front; AxisError if it is out of range."""
    paths: list[str] | None = None
    axes: list[int | None] = []
    for i, (a, x) in enumerate(zip(found, xs)):
        if a is None:
            axes.append(None)
            continue
        if not -x.ndim <= a < x.ndim:
            paths = paths or key_paths((list(args), kwargs))
            raise AxisError(
                f"vmap: axis {a} of argument {paths[i][3:]} of type {x.aval!r} is out of range",
                fix="map an axis it has, or None if it does not vary",
            )
        axes.append(normal_axis(a, x.ndim))
    return axes


def _size(args: Any, kwargs: Any, xs: Any, axes: Any, axis_size: Any) -> Any:
    sizes = [x.aval.shape[a] for x, a in zip(xs, axes) if a is not None]
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        raise AxisError(
            "vmap: nothing is mapped: every in_axes entry is None (or there are no arguments)",
            fix="map an argument, or pass axis_size",
        )
    if any(s != sizes[0] for s in sizes):
        paths = key_paths((list(args), kwargs))
        told = ", ".join(
            f"{p[3:]} has {x.aval.shape[a]} at axis {a}"
            for p, x, a in zip(paths, xs, axes)
            if a is not None
        )
        extra = f"; axis_size={axis_size}" if axis_size is not None else ""
        raise AxisError(
            f"vmap: the mapped axes differ in size: {told}{extra}",
            fix="mapped axes must have one size; use None for what does not vary",
        )
    return sizes[0]


def _taken(b: Batch, x: Any, axis: int | None, out: Any, i: int) -> Any:
    """A result with the mapped axis where it is wanted."""
    d, parts = b.split(x)
    if axis is None:
        if d is not None:
            name = "" if b.axis_name is None else f" (axis_name={b.axis_name!r})"
            raise AxisError(
                f"vmap: result{key_paths(out)[i]} of type {x.aval!r} varies along the mapped "
                f"axis{name}, and its out_axes says that it does not",
                fix="give it an axis, or reduce it over the mapped axis",
            )
        return materialise_at_ground(parts[0])
    at = normal_axis(axis, x.aval.ndim + 1, "out_axes")
    return materialise_at_ground(b.move(parts[0], d, at))
