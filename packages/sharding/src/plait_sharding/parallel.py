"""pmap: a function of the elements along an axis, each on its own device.

It is a compiled shard_map over a mesh of one axis, specified by axes of arrays.

Invariant: mapped axes are moved to the front before shard_map, and back after it, so the mesh
divides first axes only.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from plait import jit
from plait.ext.devices import devices as all_devices
from plait.ext.devices import local
from plait.ext.errors import ArgumentError, AxisError, border, names_in_call, numbers_of
from plait.ext.ops.shape import moveaxis, normal_axis, reshape, slice_in_dim
from plait.ext.rules import resolve
from plait.ext.trace import Interpreter, Value, current, leaf_name, result, wraps
from plait.ext.tree import advice_for_elements, flatten, key_paths, spread
from plait.ext.values import as_value

from .manual import Piece, over_pieces
from .mesh import Mesh, P
from .named_maps import Elements
from .named_shardings import NamedSharding

__all__ = ["pmap"]

_NAME = "pmap"
"""The name of the axis if the caller gives none."""


@border
def pmap(
    fun: Callable | None = None,
    axis_name: object = None,
    *,
    in_axes: object = 0,
    out_axes: object = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    donate_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    check_vma: bool = True,
) -> Callable[..., Any]:
    """Return a function that runs `fun` on every element along the mapped axes, each on a device.

    Args:
      fun: takes and returns trees of arrays; without it, a decorator is returned.
      axis_name: the name of the axis for collectives inside (`lax.psum`, ...), a string.
      in_axes: the mapped axis of each positional argument.  It is an int (negative ones count from
        the end), or None for an argument that every device gets whole.  A tuple has an entry or
        tree prefix per argument.  Keyword arguments are mapped along axis 0.
      out_axes: the mapped axis of the results: an int, None for results that are the same on all
        devices, or a tree prefix of them.
      static_broadcasted_argnums: positional arguments that are hashable values, not arrays.
      donate_argnums: arguments whose memory results may reuse; they are deleted.
      devices: the devices to use, in this order; by default the first of
        `plait.local_devices()`.
      backend: the platform; this process has one.
      axis_size: the number of elements, if no argument is mapped.
      check_vma: if true, a result with out_axes None that may differ between devices is an error;
        otherwise it is that of the first device.

    Returns:
      A compiled function with `fun`'s signature.  Inside another pmap or shard_map, one device has
      all elements of the inner one, which are mapped as by vmap.

    Raises:
      AxisError: an axis out of range, sizes that differ, nothing mapped, more elements than
        devices, or a result with out_axes None that may differ between devices.
      TreeMismatch: in_axes or out_axes is not a prefix of the arguments or results.

    >>> import plait
    >>> plait.pmap(lambda x: x - plait.lax.psum(x, "i"), axis_name="i")(plait.numpy.ones((1, 2)))
    Array([[0., 0.]], dtype=float32)
    """
    if fun is None:
        given = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(pmap, **given)
    if not callable(fun):
        raise ArgumentError(f"pmap needs a function, not {fun!r}", fix="write pmap(f)")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    name = _NAME if axis_name is None else axis_name
    mine = local()
    every = [d for d in all_devices(backend) if d.id in mine] if devices is None else devices
    chosen = list(every)
    if not chosen:
        raise ArgumentError("pmap got no devices", fix="leave devices out, or name at least one")
    static = numbers_of(static_broadcasted_argnums)

    def on_lanes(f: Callable, axes: Any, args: tuple, kwargs: dict) -> Any:
        places = out_axes if check_vma else _stacked(out_axes)
        lanes = resolve("vmap")(f, axes, places, axis_name=axis_name, axis_size=axis_size)
        out = lanes(*args, **kwargs)
        return out if check_vma else _first_of(out, out_axes)

    @border
    @wraps(fun)
    def mapped(*args: object, **kwargs: object) -> Any:
        fixed = {i: args[i] for i in static if i < len(args)}
        dynamic = tuple([a for i, a in enumerate(args) if i not in fixed])
        f = _with_static(fun, fixed, len(args))
        axes = in_axes
        if isinstance(in_axes, tuple) and len(in_axes) == len(args):
            axes = tuple([a for i, a in enumerate(in_axes) if i not in fixed])
        if _on_one_device():
            return on_lanes(f, axes, dynamic, kwargs)
        leaves, tree = flatten((dynamic, kwargs))
        xs = [as_value(x) for x in leaves]
        at = _axes(axes, dynamic, kwargs, xs, f)
        mesh = _mesh(chosen, name, _size(at, xs, axis_size, (dynamic, kwargs), f))
        if check_vma:
            return _run(f, tree, xs, at, out_axes, mesh)
        out = _run(f, tree, xs, at, _stacked(out_axes), mesh)
        return _first_of(out, out_axes, NamedSharding(mesh, P()).constrain)

    return jit(mapped, static_argnums=static or None, donate_argnums=donate_argnums)


def _with_static(fun: Callable, fixed: dict[int, Any], n: int) -> Callable:
    """Return `fun` as a function of its `n` positional arguments other than the fixed ones."""
    if not fixed:
        return fun

    @border
    @wraps(fun)
    def rest(*dynamic: object, **kwargs: object) -> Any:
        values = iter(dynamic)
        return fun(*[fixed[i] if i in fixed else next(values) for i in range(n)], **kwargs)

    rest.__plait_static__ = fixed, {}  # type: ignore[attr-defined]
    return rest


def _on_one_device() -> bool:
    """Return whether a surrounding program is for one device."""
    by: Interpreter | None = current()
    while by is not None:
        if isinstance(by, Piece) or (isinstance(by, Elements) and by.on_devices):
            return True
        by = by.parent
    return False


def _stacked(out_axes: Any) -> Any:
    """Return the axes of results with the first axis for None."""
    axes, tree = flatten(out_axes, _is_axis)
    return tree.unflatten([0 if a is None else a for a in axes])


def _first_of(out: Any, out_axes: Any, placed: Callable[[Value], Value] = lambda x: x) -> Any:
    """Return the results with the first element of those whose axis is None, `placed` by itself."""
    xs, tree = flatten(out)
    wanted = spread(out_axes, out, "out_axes", _is_axis, "an axis or None")
    first = [
        x if a is not None else placed(_first(slice_in_dim(x, 0, 1), 0)) for x, a in zip(xs, wanted)
    ]
    return tree.unflatten(first)


def _run(f: Callable, tree: Any, xs: list, at: list, out_axes: Any, mesh: Mesh) -> Any:
    """Return the results of `f` on the elements of `xs` along the axes `at`."""
    (name,) = mesh.axis_names
    out_tree: Any = None
    wanted: list = []

    @border
    @wraps(f)
    def element(*pieces: object) -> tuple[list, list]:
        nonlocal out_tree, wanted
        args, kwargs = tree.unflatten([_first(p, a) for p, a in zip(pieces, at)])
        out = f(*args, **kwargs)
        outs, out_tree = flatten(out)
        outs = [result(o, i, out, f) for i, o in enumerate(outs)]
        wanted = spread(out_axes, out, "out_axes", _is_axis, "an axis or None")
        mapped = [reshape(o, (1, *o.shape)) for o, a in zip(outs, wanted) if a is not None]
        return mapped, [o for o, a in zip(outs, wanted) if a is None]

    specs = tuple([P() if a is None else P(name) for a in at])
    front = [x if a is None else moveaxis(x, a, 0) for x, a in zip(xs, at)]
    over = over_pieces(element, mesh, specs, (P(name), P()))
    mapped, same = map(iter, over(*front))
    outs = [next(same) if a is None else _placed(next(mapped), a) for a in wanted]
    return out_tree.unflatten(outs)


def _first(piece: Any, axis: int | None) -> Any:
    return piece if axis is None else reshape(piece, piece.shape[1:])


def _placed(x: Value, axis: int) -> Any:
    return moveaxis(x, 0, normal_axis(axis, x.ndim, "out_axes"))


# ---- axes and devices ----------------------------------------------------------------------


def _is_axis(x: object) -> bool:
    return x is None or (isinstance(x, int) and not isinstance(x, bool))


def _axes(
    in_axes: Any, args: tuple, kwargs: dict, xs: list, f: Callable[..., Any]
) -> list[int | None]:
    """Return the mapped axis of each leaf."""
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise AxisError(
            f"pmap: in_axes has {len(in_axes)} entries for {len(args)} positional arguments",
            fix="give one entry per positional argument, or a single int",
        )
    found = spread(in_axes, args, "in_axes", _is_axis, "an axis or None")
    found += [0] * (len(xs) - len(found))
    for i, (a, x) in enumerate(zip(found, xs)):
        if a is not None and not -x.ndim <= a < x.ndim:
            told = leaf_name((args, kwargs), i, names_in_call(f))
            raise AxisError(
                f"pmap: axis {a} of {told} of type {x.aval!r} is out of range",
                fix="map an axis it has, or None if every device gets it whole",
            )
    return [a if a is None else normal_axis(a, x.ndim) for a, x in zip(found, xs)]


def _size(
    at: list, xs: list, axis_size: int | None, call: tuple[tuple, dict], f: Callable[..., Any]
) -> int:
    """Return the number of elements; AxisError if nothing gives it, or if sizes differ."""
    sizes = [x.shape[a] for a, x in zip(at, xs) if a is not None]
    sizes += [] if axis_size is None else [axis_size]
    if not sizes:
        raise AxisError(
            "pmap: no argument is mapped: every in_axes entry is None",
            fix="map an argument, or pass axis_size",
        )
    if any(s != sizes[0] for s in sizes):
        told = ", ".join(
            f"{names_in_call(f)(p)} has {x.shape[a]} at axis {a}"
            for p, a, x in zip(key_paths(call), at, xs)
            if a is not None
        )
        extra = "" if axis_size is None else f"; axis_size={axis_size}"
        raise AxisError(
            f"pmap: the mapped axes differ in size: {told}{extra}",
            fix=advice_for_elements(call)
            or "mapped axes must have one size; use None for what every device gets whole",
        )
    return sizes[0]


def _mesh(chosen: list, name: Any, size: int) -> Mesh:
    if size > len(chosen):
        raise AxisError(
            f"pmap over {size} elements needs as many devices, and there are {len(chosen)}",
            fix="use vmap, or shard_map over pieces; or, for virtual CPU devices, set "
            f"plait.config.cpu_devices = {size} before the first array is made",
        )
    return Mesh(chosen[:size], name)
