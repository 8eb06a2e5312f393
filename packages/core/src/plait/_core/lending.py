"""Handles of which a function is lent parts: references that are mapped, or taken row by row.

A transformation that gives its function parts of what it is given takes what a handle stands for
as an argument instead, lends the function a handle that stands for its part, and has what that
stands for in the end as one more result.  Put together again, that is what the handle stands for.
So nothing of the transformation knows of handles, and none is among operands.

Invariant: while parts of a handle are lent, whoever uses the handle itself is told so.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..tree import TreeDef, flatten, leaves_with_path
from .handles import Handle

__all__ = ["Lending", "lending_rows"]


class Lending:
    """Some leaves of the arguments of a transformed function, handles of which it gets parts.

    Use it as a context, in which parts are lent: `plain` is given to the transformation instead of
    the arguments, and the function calls `lent` and `returned`, as often as it is run.

    Args:
      leaves, tree: the arguments.
      which: the places of the handles.
      is_leaf: by which the arguments were flattened.

    Attributes:
      plain: the arguments, with what a handle stands for in its place.
    """

    def __init__(
        self,
        leaves: Sequence[Any],
        tree: TreeDef,
        which: Sequence[int],
        is_leaf: Callable[[Any], bool] | None = None,
    ):
        self._handles: list[Handle] = [leaves[i] for i in which]
        # places are known by paths: other arguments may have another structure for the function
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
        """Return the arguments of the function, with handles for parts in their places; and the
        handles, each with what it stands for."""
        leaves, tree = flatten(given)
        places = {path: i for i, (path, _) in enumerate(leaves_with_path(given))}
        at = [places[path] for path in self._paths]
        parts = [h.like(leaves[i]) for h, i in zip(self._handles, at, strict=True)]
        for h, i in zip(parts, at):
            leaves[i] = h
        return tree.unflatten(leaves), [(h, h.contents()) for h in parts]

    def returned(self, parts: Sequence[tuple[Handle, Any]], out: Any) -> list[Any]:
        """Return what the parts stand for in the end, where the function gave `out`; nobody uses
        them any more."""
        for x in flatten(out)[0]:
            if any(x is h for h, _ in parts):
                raise x.refused("the result of a function that got it as a part")
        ends = [h.ended() for h, _ in parts]
        for i, ((_, first), last) in enumerate(zip(parts, ends)):
            self._changed[i] |= first is not last
        return ends

    def restore(self, whole: Sequence[Any]) -> None:
        """Let the handles stand for what was put together of the parts, where these were written;
        in the context no more."""
        for h, x, changed in zip(self._handles, whole, self._changed, strict=True):
            if changed:
                h.replace(x)


def lending_rows(leaves: Sequence[Any], tree: TreeDef) -> Lending | None:
    """Return how the handles among arguments that are taken row by row are lent; None if there is
    none."""
    which = [i for i, x in enumerate(leaves) if isinstance(x, Handle)]
    return Lending(leaves, tree, which) if which else None
