"""pile_axis, the entry of in_axes and out_axes for piles.

Invariant: there is one, however it is copied.
"""

__all__ = ["PileAxis", "pile_axis"]


class PileAxis:
    """The entry of in_axes and out_axes that says that an argument or result is a Pile."""

    _only: "PileAxis | None" = None

    def __new__(cls) -> "PileAxis":
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "plait.pile_axis"

    def __reduce__(self):
        return PileAxis, ()


pile_axis = PileAxis()
"""In `in_axes` and `out_axes` of vmap: the argument or result is a `Pile`.

>>> import plait
>>> p = plait.Pile.from_list([[1.0, 2.0], [3.0]])
>>> plait.vmap(lambda x: x / x.sum(), plait.pile_axis, plait.pile_axis)(p).to_list()[1]
array([1.], dtype=float32)
"""
