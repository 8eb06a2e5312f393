"""The PartitionSpecs that `shard_map` takes: spread over trees, and compared with what varies.

Invariant: a leaf of arguments whose entry is None need not be an array; if it is one, every device
has the whole of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.ext.errors import AxisError, Namer, NotAnArrayError, names_of_arguments
from plait.ext.ir import Program, derived
from plait.ext.trace import Role, SplitCall, Value, arguments, leaf_name, without_static
from plait.ext.tree import spread
from plait.ext.types import Aval

from .mesh import AbstractMesh, Mesh, PartitionSpec
from .variance import varying

__all__ = ["check_level", "entries", "given_apart", "said", "spread_specs"]


def given_apart(
    specs: object, args: tuple[Any, ...], leaves: Sequence[Any]
) -> tuple[list[PartitionSpec], SplitCall] | None:
    """Return the parts of arguments that are not arrays, apart from the others.

    Args:
      specs: in_specs; None stands where an argument need not be an array.
      args, leaves: the arguments, and their leaves.

    Returns:
      None if all are arrays.  Otherwise the PartitionSpecs of those that are, and the leaves: the
      others are static.
    """
    odd = [i for i, x in enumerate(leaves) if not hasattr(x, "dtype") and not _is_array(x)]
    if not odd:
        return None
    found = _prefixes(specs, args, "in_specs")
    fixed = frozenset([i for i in odd if found[i] is None])
    if not fixed:
        return None
    call = without_static(tuple(leaves), {}, Role(fixed, frozenset()))
    return [s or PartitionSpec() for i, s in enumerate(found) if i not in fixed], call


def _is_array(x: object) -> bool:
    """Return whether a leaf is an array; Python numbers count as none and stay numbers."""
    if isinstance(x, bool | int | float | complex):
        return False
    try:
        arguments((x,), {}, "shard_map")
    except NotAnArrayError:
        return False
    return True


def said(what: str, tree: Any, i: int, x: Value, f: Callable[..., Any] | None = None) -> str:
    """Return the name and type of leaf `i` of the arguments of `f` or its results, for messages."""
    named = names_of_arguments(f) if what == "in_specs" else lambda path: f"the result{path}"
    return f"{leaf_name(tree, i, named)} of type {x.aval!r}"


def spread_specs(
    specs: object, tree: Aval | tuple[Any, ...], what: str, named: Namer | None = None
) -> list[PartitionSpec]:
    """Return the PartitionSpec of each leaf of the tree, whose parts `named` names."""
    return [PartitionSpec() if s is None else s for s in _prefixes(specs, tree, what, named)]


def _prefixes(
    specs: object, tree: Aval | tuple[Any, ...], what: str, named: Namer | None = None
) -> list[PartitionSpec | None]:
    """Return what `specs` has for each leaf of the tree: a PartitionSpec, or None."""
    whole = what == "in_specs"  # only for arguments, None means that all is not divided
    return spread(
        tuple(specs) if isinstance(specs, list) else specs,
        tree,
        what,
        lambda s: isinstance(s, PartitionSpec) or (whole and s is None),
        "a PartitionSpec" + (" or None" if whole else ""),
        named,
    )


def entries(
    mesh: Mesh | AbstractMesh,
    axes: tuple[str, ...],
    specs: object,
    tree: Aval | tuple[Any, ...],
    xs: Sequence[Any],
    what: str,
    f: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """Return, for each leaf of the tree, the names that each of its axes is divided over.

    `f` is the function whose arguments they are.
    """
    found = spread_specs(specs, tree, what, names_of_arguments(f) if what == "in_specs" else None)
    for spec in dict.fromkeys(found):
        mesh.check(spec)
        if None in spec.parts:
            raise AxisError(
                f"{what} leaves an axis to the compiler: {spec!r}",
                fix="inside shard_map sizes must be known: write a name or None",
            )
        if not set(spec.names) <= set(axes):
            raise AxisError(
                f"{what} divides by an axis that is not in axis_names: {spec!r}",
                fix=f"divide over {', '.join(map(repr, axes))} only; the compiler divides the rest",
            )
    return tuple(
        [
            spec.full(x.aval.ndim, lambda i=i: said(what, tree, i, xs[i], f))
            for i, (spec, x) in enumerate(zip(found, xs, strict=True))
        ]
    )


def check_level(
    manual: tuple[str, ...],
    program: Program,
    ins: tuple[Any, ...],
    outs: tuple[Any, ...],
    like: Aval | Sequence[Any] | dict[str, Any],
) -> None:
    """Raise AxisError if a result may differ along an axis that it is not divided over."""
    divided = tuple([frozenset([n for names in spec for n in names]) for spec in ins])
    found = derived(program, ("varying", divided), lambda: varying(program, divided))
    for i, (axes, spec) in enumerate(zip(found, outs)):
        left = axes & frozenset(manual) - {n for names in spec for n in names}
        if left:
            names = " and ".join([repr(n) for n in manual if n in left])
            which = said("out_specs", like, i, program.outputs[i])
            raise AxisError(
                f"shard_map: out_specs do not divide {which} over {names}, along which it may "
                "differ from device to device",
                fix=f"reduce it (lax.psum, lax.pmean, ...) over {names}, or name that in its "
                "PartitionSpec; check_vma=False if you know that it is the same everywhere",
            )
