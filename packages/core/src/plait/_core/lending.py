"""Lending of parts of handles to functions: of references that are mapped, or taken row by row.

Some transformations give their function parts of its arguments.  Such a transformation takes the
value of a handle as an argument instead of the handle.  It lends the function a new handle that
stands for a part of that value, and returns the final value of that handle as one more result.
These results, put together, become the value of the first handle.  So the transformation does not
deal with handles, and none is among operands.

Invariant: while parts of a handle are lent, using the handle itself is an error.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..tree import TreeDef, flatten, leaves_with_path
from .handles import Handle

if TYPE_CHECKING:
    from .interpreter import Value

__all__ = ["Lending", "lending_rows"]


class Lending:
    """The handles among the arguments of a transformed function that is lent parts of them.

    It is a context manager, in which parts are lent.  The transformation is given `plain` instead
    of the arguments, and the function calls `lent` and `returned` each time it runs.

    Args:
      leaves, tree: the arguments.
      which: the positions of the handles among the leaves.
      is_leaf: the predicate with which the arguments were flattened.

    Attributes:
      plain: the arguments, with the value of each handle in its place.
    """

    plain: Any

    def __init__(
        self,
        leaves: Sequence[Any],
        tree: TreeDef,
        which: Sequence[int],
        is_leaf: Callable[[Any], bool] | None = None,
    ):
        self._handles: list[Handle] = [leaves[i] for i in which]
        # Paths identify the handles: the arguments of the function may have another structure.
        at = leaves_with_path(tree.unflatten(leaves), is_leaf)
        self._paths = [at[i][0] for i in which]
        self._changed = [False] * len(which)
        values = list(leaves)
        for i in which:
            values[i] = leaves[i].contents()
        self.plain = tree.unflatten(values)

    def __enter__(self) -> "Lending":
        begun: list[Handle] = []
        try:
            for h in self._handles:
                h.lend(True)
                begun.append(h)
        except BaseException:
            for h in begun:
                h.lend(False)
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for h in self._handles:
            h.lend(False)

    def lent(self, given: Any) -> tuple[Any, list[tuple[Handle, Any]]]:
        """Return (the arguments of the function, with handles for parts in their places; the
        handles, each with its value)."""
        leaves, tree = flatten(given)
        places = {path: i for i, (path, _) in enumerate(leaves_with_path(given))}
        at = [places[path] for path in self._paths]
        parts = [h.like(leaves[i]) for h, i in zip(self._handles, at, strict=True)]
        for h, i in zip(parts, at):
            leaves[i] = h
        return tree.unflatten(leaves), [(h, h.contents()) for h in parts]

    def returned(
        self, parts: Sequence[tuple[Handle, Any]], out: "Value | tuple[Any, ...]"
    ) -> list[Any]:
        """Return the final values of the parts, after the function returned `out`; the parts cannot
        be used any more."""
        for x in flatten(out)[0]:
            if any(x is h for h, _ in parts):
                raise x.refused("the result of a function that got it as a part")
        ends = [h.ended() for h, _ in parts]
        for i, ((_, first), last) in enumerate(zip(parts, ends)):
            self._changed[i] |= first is not last
        return ends

    def restore(self, whole: Sequence[Any]) -> None:
        """Replace the values of handles whose parts were written by the values put together from
        the parts.  Call it after the context has ended."""
        for h, x, changed in zip(self._handles, whole, self._changed, strict=True):
            if changed:
                h.replace(x)


def lending_rows(leaves: Sequence[Any], tree: TreeDef) -> Lending | None:
    """Return the Lending of the handles among arguments that are taken row by row; None if there
    are none."""
    which = [i for i, x in enumerate(leaves) if isinstance(x, Handle)]
    return Lending(leaves, tree, which) if which else None
