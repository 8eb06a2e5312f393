"""PileType: the type of a pile, as users see it.

Invariant: it holds no rows.
"""

from typing import Any

from plait.ext.sizes import Dim
from plait.ext.types import Aval

__all__ = ["PileType"]


class PileType:
    """Type of a pile: the number of elements, and the type of each, whose sizes may differ."""

    __slots__ = ("_lengths", "elt_ty", "length")
    length: int
    elt_ty: Aval

    def __init__(self, length: int, elt_ty: Aval, lengths: dict[str, Any]):
        self.length, self.elt_ty, self._lengths = length, elt_ty, lengths

    @property
    def dtype(self) -> Any:
        return self.elt_ty.dtype

    def __repr__(self) -> str:
        def size(d: Dim) -> str:
            n = self._lengths.get(str(d)) if d.__class__ is Dim else d
            return str(d) if n is None else str(n) if n is d else f"{n}.Var1"

        sizes = ",".join(map(size, self.elt_ty.shape))
        short = repr(self.elt_ty.with_shape(())).partition("[")[0]
        return f"Var1:{self.length} => {short}[{sizes}]"
