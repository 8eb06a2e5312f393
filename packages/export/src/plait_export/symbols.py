"""Symbolic shapes, and argument types with symbolic sizes.

Invariant: all texts of sizes are parsed by `plait.Scope`; one call puts all its names in one scope.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.errors import ArgumentError, ShapeError
from plait.ext.sizes import Dim, Scope, symbolic_dims
from plait.ext.tree import flatten, spread
from plait.ext.types import ShapeDtypeStruct
from plait.ext.values import as_value


def is_symbolic_dim(size: object) -> bool:
    """Return whether a size of a shape is symbolic."""
    return isinstance(size, Dim)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: Scope | None = None,
    like: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Return the shape that a text describes.

    Args:
      shape_spec: sizes separated by commas, such as "b, 2*b + 1, 3".  If `like` is given, "_"
        stands for its size at that position and "..." for any number of its sizes.  None stands
        for all of `like`.
      constraints: facts about the sizes, such as "b >= 8" or "mod(b, 8) == 0".
      scope: a scope to use instead of constraints; a name means the same size in all its shapes.
      like: a shape of ints, with None for sizes that `shape_spec` names.

    Raises ProgramError for a text that cannot be parsed, and ShapeError for placeholders that
    `like` does not fill and for numbers that differ from those of `like`.

    >>> import plait
    >>> plait.export.symbolic_shape("2*b, _, 3", like=(4, 5, 3))
    (2*b, 5, 3)
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ArgumentError(
            f"a shape is read from a text, not from {shape_spec!r}", fix='write "b, 2*b + 1, 3"'
        )
    if like is not None:
        like = _sizes(like)
    if scope is None:
        scope = Scope.apart(constraints)
    elif _scope(scope) and constraints:
        raise ShapeError(
            "symbolic_shape takes a scope or constraints, and was given both",
            fix="write Scope(constraints=[...]) and give that",
        )
    if shape_spec is None:
        if like is not None and all(n.__class__ is int for n in like):
            return tuple(like)
        shape_spec = "..."
    sizes = filled(shape_spec, like)
    if like is not None and "None" in sizes:
        raise ShapeError(
            f"a placeholder of {shape_spec!r} stands for a size that {tuple(like)} leaves open",
            fix="name that size, or give its number",
        )
    shape = symbolic_dims(", ".join(sizes), scope)
    if like is not None:
        _expect_alike(shape_spec, shape, like)
    return shape


def _expect_alike(text: str, shape: Sequence[Any], like: Sequence[Any]) -> None:
    """Raise ShapeError if a text has other sizes than `like` where both have numbers, or another
    number of sizes."""
    if len(shape) != len(like):
        raise _other_length(text, len(shape), like)
    for axis, (n, m) in enumerate(zip(shape, like, strict=True)):
        if n.__class__ is m.__class__ is int and n != m:
            raise ShapeError(
                f"{text!r} has the size {n} at axis {axis}, where {tuple(like)} has {m}",
                fix=f"write {m}, or a name for a size that may differ",
            )


def _other_length(text: str, count: int, like: Sequence[Any]) -> ShapeError:
    """Return the error for a text with more or fewer sizes than `like`."""
    return ShapeError(
        f"{text!r} has {count} sizes, and {tuple(like)} has {len(like)}",
        fix="write as many sizes as there are axes, or '...' for those left out",
    )


def _scope(scope: object) -> Scope:
    """Return a scope.  Raises ArgumentError for anything else."""
    if not isinstance(scope, Scope):
        raise ArgumentError(
            f"{scope!r} is not a scope",
            fix='write plait.Scope(["b >= 8"]), or constraints=["b >= 8"]',
        )
    return scope


def _sizes(like: Any) -> tuple[Any, ...]:
    """Return a shape as a tuple.  Raises ArgumentError for anything else."""
    try:
        found = tuple(like)
    except TypeError:
        found = None
    if found is None or any(
        isinstance(n, bool) or not isinstance(n, int | Dim | None) for n in found
    ):
        raise ArgumentError(
            f"like is {like!r}, and is a shape", fix="give the shape of an array: like=x.shape"
        )
    return found


def filled(text: str, like: Sequence[Any] | None) -> list[str]:
    """Split a text into sizes, with placeholders replaced by the sizes of `like`.

    Raises ShapeError for placeholders that `like` does not fill.
    """
    sizes = _split(text)
    if not {"_", "..."} & set(sizes):
        return sizes
    missing = 0 if like is None else len(like) - len(sizes) + 1
    if like is None or sizes.count("...") > 1 or missing < 0:
        raise ShapeError(
            f"the placeholders of {text!r} are not filled by the shape {like}",
            fix="name every size, or give an array with as many axes; write '...' once at most",
        )
    if "..." in sizes:
        at = sizes.index("...")
        sizes[at : at + 1] = ["_"] * missing
    if len(sizes) != len(like):
        raise _other_length(text, len(sizes), like)
    return [str(n) if s == "_" else s for s, n in zip(sizes, like)]


def _split(text: str) -> list[str]:
    """Split a text at the commas outside parentheses; a pair around everything is removed."""
    text = text.strip()
    if text[:1] in ("(", "[") and _outer(text):
        text = text[1:-1]
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    parts = [*parts, last] if last else parts
    if "" in parts:
        raise ShapeError(
            f"a size is missing in {text!r}", fix="write one size between two commas: 'b, 3'"
        )
    return parts


def _outer(text: str) -> bool:
    """Return whether the parenthesis that opens a text closes at its end."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0:
            return i == len(text) - 1
    return False


def symbolic_args_specs(
    args: object,
    shapes_specs: object,
    constraints: Sequence[str] = (),
    scope: Scope | None = None,
) -> Any:
    """Return argument types with symbolic sizes, which `export(f)` takes instead of arrays.

    Args:
      args: a tree of arrays, or of anything with a shape and a dtype.
      shapes_specs: a text for `symbolic_shape`, or a tree of texts that is a prefix of `args`;
        None leaves the sizes as they are.
      constraints, scope: as for `symbolic_shape`.

    Returns the tree of ShapeDtypeStructs.  Raises TreeMismatch if the texts are not a prefix.

    >>> import numpy as np, plait
    >>> plait.export.symbolic_args_specs((np.ones((4, 3)), np.ones(3)), ("b, ...", None))
    (ShapeDtypeStruct(shape=(b, 3), dtype=float64), ShapeDtypeStruct(shape=(3,), dtype=float64))
    """
    if scope is None:
        scope = Scope.apart(constraints)
    elif _scope(scope) and constraints:
        raise ArgumentError(
            "symbolic_args_specs takes a scope or constraints, and was given both",
            fix="write Scope(constraints=[...]) and give that",
        )
    leaves, tree = flatten(args)
    is_text = lambda t: t is None or isinstance(t, str)  # noqa: E731
    texts = spread(shapes_specs, args, "shapes_specs", is_text, "a text or None")
    return tree.unflatten([_typed(x, t, scope) for x, t in zip(leaves, texts, strict=True)])


def _typed(x: Any, text: str | None, scope: Scope) -> ShapeDtypeStruct:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        x = as_value(x)
    shape = symbolic_shape(text, scope=scope, like=x.shape)
    weak = bool(getattr(x, "weak_type", False))
    return ShapeDtypeStruct(shape, x.dtype, weak_type=weak)
