"""Explicit axes: `reshard`, and functions that run with other axes as Auto or Explicit.

Over an explicit axis of the mesh, the type of each value says how it is divided
(`plait.typeof(x).sharding`).  The type of a result follows from the operands; if it does not, an
error suggests a fix.

Invariant: these functions only change types and bind `constraint`, so every transformation
supports them; values never change.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from plait.ext.errors import ArgumentError, AxisError, border
from plait.ext.trace import Value, arguments, lie_as, wraps
from plait.ext.tree import flatten, spread
from plait.ext.values import as_value

from .contexts import MissingMesh, mesh_here, push, remove
from .manual import manual_here
from .mesh import AxisType, Mesh, PartitionSpec
from .named_shardings import NamedSharding
from .placement import Sharding, constraint

T = TypeVar("T")

__all__ = ["auto_axes", "explicit_axes", "reshard"]


@border
def reshard(xs: T, out_shardings: object) -> T:
    """Return the tree `xs` with its arrays divided over explicit axes by `out_shardings`.

    Args:
      xs: a tree of arrays.
      out_shardings: a PartitionSpec, over the mesh in context, else over the array's own mesh; or
        a NamedSharding; or a tree prefix of them.  `P()` over a mesh without explicit axes leaves
        the array to the compiler.

    Outside of traced functions, arrays are moved; inside, the compiler gets a constraint.  A
    cotangent is moved back to the sharding of its value.

    Raises AxisError if a spec names an axis that is not explicit, is longer than the array's rank,
    or divides an axis unevenly; MissingMesh without a mesh; TreeMismatch if `out_shardings` is not
    a prefix of `xs`.

    >>> import plait
    >>> from plait.sharding import AxisType
    >>> mesh = plait.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))
    >>> with plait.set_mesh(mesh):
    ...     plait.typeof(plait.sharding.reshard(plait.numpy.ones((2, 3)), plait.P("x")))
    f32[2@x,3]
    """
    wanted = _specs(out_shardings, xs, "out_shardings")
    values = arguments((xs,), {}, "reshard")[0]
    tree = flatten(xs)[1]
    return tree.unflatten([_resharded(x, s) for x, s in zip(values, wanted, strict=True)])


def _specs(given: Any, tree: object, what: str) -> list[Any]:
    """Return the entry of a tree prefix for each leaf of a tree."""
    entry = 'a PartitionSpec, P("x"), or a NamedSharding'
    return spread(given, tree, what, lambda s: isinstance(s, Sharding | PartitionSpec), entry)


def _resharded(x: Value, wanted: PartitionSpec) -> Any:
    sharding = _sharding_over(x, wanted)
    if _says_nothing(sharding):
        return lie_as(x, None)
    _expect_explicit(sharding)
    sharding.check(x.aval)
    return constraint.bind(x, sharding=sharding)


def _sharding_over(x: Value, wanted: PartitionSpec | Sharding) -> Any:
    """Return a sharding for a PartitionSpec, over the mesh in context, else the value's mesh."""
    if not isinstance(wanted, PartitionSpec):
        return wanted.here()
    mesh = _mesh_around(getattr(x.aval.division, "mesh", None))
    if mesh is None:
        raise MissingMesh(
            f"{wanted!r} was given alone, and no mesh is in context whose axes it could mean",
            fix="write NamedSharding(mesh, spec), or put a mesh in context: plait.set_mesh(mesh)",
        )
    return NamedSharding(mesh, wanted)


def _mesh_around(other: Mesh | None) -> Mesh | None:
    """Return the mesh in context, else `other`; axes that a shard_map has divided are Manual."""
    mesh = mesh_here() or other
    return None if mesh is None else mesh.typed(manual_here(), AxisType.Manual)


def _says_nothing(sharding: NamedSharding | None) -> bool:
    """Return whether types say nothing of a division by this: no axis is explicit, and none named.

    Such a spec takes a value out of explicit axes, and leaves it to the compiler.
    """
    if sharding is None:
        return True
    spec: Any = getattr(sharding, "spec", None)
    if spec is None or None in spec.parts or sharding.mesh.explicit_axes:
        return False
    return not spec.names


def _expect_explicit(sharding: NamedSharding) -> None:
    mesh = getattr(sharding, "mesh", None)
    if mesh is None:
        raise ArgumentError(
            f"{sharding!r} names no axes of a mesh",
            fix="give a PartitionSpec or a NamedSharding; plait.device_put takes other shardings",
        )
    if None in sharding.spec.parts:
        raise AxisError(
            f"{sharding.spec!r} leaves an axis to the compiler, and over explicit axes types say "
            "how values are divided",
            fix="write a name or None; plait.with_sharding_constraint takes P.UNCONSTRAINED",
        )
    others = [n for n in sharding.spec.names if n not in mesh.explicit_axes]
    if others or not mesh.explicit_axes:
        kind = mesh.axis_types[mesh.axis_names.index(others[0])].name if others else "Auto"
        name = f"the axis {others[0]!r}" if others else "every axis"
        raise AxisError(
            f"{name} of {mesh!r} is {kind}, and {sharding.spec!r} is to be said by a type",
            fix="name it in the in_specs and out_specs of the shard_map around, and not inside"
            if kind == "Manual"
            else "make the mesh with axis_types=AxisType.Explicit; or constrain the compiler, by "
            "plait.with_sharding_constraint",
        )


# ---- functions that run with other types of axes --------------------------------------------


class _Context:
    """A `with` block that puts a mesh in context; with None the context does not change."""

    def __init__(self, mesh: Mesh | None):
        self.mesh = mesh

    def __enter__(self) -> None:
        if self.mesh is not None:
            push(self, self.mesh)

    def __exit__(self, *error: object) -> None:
        if self.mesh is not None:
            remove(self)


def _mesh_of(values: list[Any], does: str) -> Mesh:
    """Return the mesh in context, else that of an argument."""
    found: list[Any] = [v.aval.division for v in values if v.aval.division is not None]
    mesh = _mesh_around(found[0].mesh if found else None)
    if mesh is None:
        raise MissingMesh(
            f"{does} needs a mesh, and none is in context",
            fix="put one in context: plait.set_mesh(mesh)",
        )
    return mesh


def _chosen(mesh: Mesh, axes: str | None, does: str) -> tuple[str, ...]:
    """Return the named axes of a mesh, all by default, without those that are Manual."""
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else tuple(axes)
    unknown = [n for n in names if n not in mesh.axis_names]
    if unknown:
        raise AxisError(
            f"{does}: axes has {unknown[0]!r}, which {mesh!r} does not have",
            fix=f"its axes are {', '.join(map(repr, mesh.axis_names))}",
        )
    return tuple([n for n in names if mesh.axis_types[mesh.axis_names.index(n)] is not _MANUAL])


_MANUAL = AxisType.Manual


def _on(mesh: Mesh, x: Any) -> Any:
    """Return `x` with the division in its type restricted to the explicit axes of this mesh."""
    had = x.aval.division
    if had is None:
        return x
    if not mesh.explicit_axes:
        return lie_as(x, None)
    # The constraint names all axes that divide the value, so that those which become Auto go on to
    # divide it: its type alone would gather the value along them.
    return constraint.bind(x, sharding=NamedSharding(mesh, had.spec))


@border
def auto_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: object = None
) -> Callable[..., Any]:
    """Return `f` run with axes of the mesh as Auto, so that types inside do not mention them.

    Args:
      f: takes and returns trees of arrays; without it, a decorator is returned.
      axes: the name of an axis, or a tuple of names; all by default.
      out_sharding: the division of the results: a PartitionSpec, a NamedSharding, or a tree prefix
        of the results.  A call may give it instead.

    Raises AxisError for an axis that the mesh does not have; ArgumentError if no division of the
    results is given; MissingMesh without a mesh.

    >>> import plait
    >>> from plait.sharding import AxisType, auto_axes
    >>> mesh = plait.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))
    >>> with plait.set_mesh(mesh):
    ...     x = plait.device_put(plait.numpy.ones((2, 2)), plait.P("x"))
    ...     plait.typeof(auto_axes(lambda v: v @ v.T, out_sharding=plait.P("x"))(x))
    f32[2@x,2]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    given = out_sharding

    @border
    @wraps(f)
    def within(*args: object, out_sharding: object = None, **kwargs: object) -> Any:
        wanted = given if out_sharding is None else out_sharding
        if wanted is None:
            raise ArgumentError(
                "auto_axes was not told how results are divided",
                fix="write auto_axes(f, out_sharding=P(...))",
            )
        leaves, tree = flatten((args, kwargs))
        values = [as_value(x) for x in leaves if isinstance(x, Value)]
        mesh = _mesh_of(values, "auto_axes")
        inner = mesh.typed(_chosen(mesh, axes, "auto_axes"), AxisType.Auto)
        a, k = tree.unflatten([_on(inner, x) if isinstance(x, Value) else x for x in leaves])
        with _Context(inner):
            out = f(*a, **k)
        wanted = _specs(wanted, out, "out_sharding")
        results = arguments((out,), {}, "auto_axes")[0]
        over = [_over(mesh, s) for s in wanted]
        for x, s in zip(results, over, strict=True):
            s.check(x.aval)
        found = [constraint.bind(x, sharding=s) for x, s in zip(results, over, strict=True)]
        return flatten(out)[1].unflatten(found)

    return within


def _over(mesh: Mesh, wanted: PartitionSpec) -> Any:
    return NamedSharding(mesh, wanted) if isinstance(wanted, PartitionSpec) else wanted


@border
def explicit_axes(
    f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: object = None
) -> Callable[..., Any]:
    """Return `f` run with axes of the mesh as Explicit, so that types inside show the division.

    Args:
      f: takes and returns trees of arrays; without it, a decorator is returned.
      axes: the name of an axis, or a tuple of names; all by default.
      in_sharding: the division of the arguments: a PartitionSpec, a NamedSharding, or a tree prefix
        of the tuple of arguments.  A call may give it instead.

    Raises AxisError for an axis that the mesh does not have; ArgumentError if no division of the
    arguments is given; MissingMesh without a mesh.

    >>> import plait
    >>> from plait.sharding import explicit_axes
    >>> with plait.set_mesh(plait.make_mesh((1,), ("x",))):
    ...     f = explicit_axes(lambda v: print(plait.typeof(v)) or v * 2, in_sharding=plait.P("x"))
    ...     f(plait.numpy.ones(2))
    f32[2@x]
    Array([2., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    given = in_sharding

    @border
    @wraps(f)
    def within(*args: object, in_sharding: object = None) -> Any:
        wanted = given if in_sharding is None else in_sharding
        if wanted is None:
            raise ArgumentError(
                "explicit_axes was not told how arguments are divided",
                fix="write explicit_axes(f, in_sharding=P(...))",
            )
        values, tree = arguments(args, {}, "explicit_axes")
        mesh = _mesh_of(values, "explicit_axes")
        inner = mesh.typed(_chosen(mesh, axes, "explicit_axes"), AxisType.Explicit)
        over = [_over(inner, s) for s in _specs(wanted, args, "in_sharding")]
        for x, s in zip(values, over, strict=True):
            s.check(x.aval)
        laid = [constraint.bind(x, sharding=s) for x, s in zip(values, over, strict=True)]
        a, _ = tree.unflatten(laid)
        with _Context(inner):
            out = f(*a)
        leaves, out_tree = flatten(out)
        return out_tree.unflatten([_on(mesh, as_value(x)) for x in leaves])

    return within
