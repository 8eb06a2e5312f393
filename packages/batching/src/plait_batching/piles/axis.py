"""pile_axis, the entry of in_axes and out_axes for piles.

Invariant: there is one instance; copying and unpickling return it.
"""

__all__ = ["PileAxis", "pile_axis"]


class PileAxis:
    """Entry of in_axes and out_axes for an argument or result that is a Pile."""

    _only: "PileAxis | None" = None

    def __new__(cls) -> "PileAxis":
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "plait.pile_axis"

    def __reduce__(self) -> tuple[object, ...]:
        return PileAxis, ()


pile_axis = PileAxis()
"""Entry of vmap's `in_axes` and `out_axes` for an argument or result that is a `Pile`.

>>> import plait
>>> p = plait.Pile.from_list([[1.0, 2.0], [3.0]])
>>> plait.vmap(lambda x: x / x.sum(), plait.pile_axis, plait.pile_axis)(p).to_list()[1]
array([1.], dtype=float32)
"""
