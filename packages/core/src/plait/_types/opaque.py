"""Dtypes whose elements are not numbers.

Invariant: a name belongs to one dtype, so that equality is identity.  Core defines how an element
is stored in memory, and never its meaning.
"""

from typing import Any

import numpy as np

from .._base.errors import OperandTypeError
from .._base.lazy import later
from .dims import product

__all__ = ["Opaque"]


class Opaque:
    """A dtype whose elements are not numbers: they are moved, selected and compared only.

    Interned by name.  Primitives of its own give it a meaning; those of `plait._ops.opaque` convert
    between such elements and the numbers that represent them in memory.

    Args:
      name: its printed form, `key<fry>`: two words, the second in angle brackets.
      shape, words: an element is an array of this shape and dtype in memory.
      family: the word for an element, for messages (`key`).
      advice: what to write instead of arithmetic, for messages.
      tangent_dtype: the dtype of its tangents; None if it has none.
    """

    __slots__ = ("name", "shape", "words", "family", "advice", "tangent_dtype")
    name: str
    shape: "tuple[int, ...]"
    words: "np.dtype[Any]"
    family: str
    advice: str
    tangent_dtype: "np.dtype[Any] | None"
    _all: "dict[str, Opaque]" = {}
    kind, isnative = "V", True

    def __new__(
        cls,
        name: str,
        shape: "tuple[int, ...]" = (),
        words: Any = "uint32",
        family: str = "element",
        advice: str = "take it apart with the functions that belong to it",
        tangent_dtype: Any = None,
    ) -> "Opaque":
        head, _, tail = name.partition("<")
        if not (head.isidentifier() and tail.endswith(">") and tail[:-1].isidentifier()):
            raise OperandTypeError(
                f"{name!r} is not the name of a dtype", fix="write one like 'key<fry>'"
            )
        self = object.__new__(cls)
        self.name, self.shape, self.words = name, tuple(shape), np.dtype(words)
        self.family, self.advice = family, advice
        self.tangent_dtype = None if tangent_dtype is None else np.dtype(tangent_dtype)
        held = cls._all.setdefault(name, self)
        if held.parts() != self.parts():
            raise OperandTypeError(
                f"there is another dtype {name!r} already", fix="give it another name"
            )
        return held

    def parts(self) -> "tuple[Any, ...]":
        """Return all attributes that define it, in the order of the constructor's arguments."""
        return self.name, self.shape, self.words, self.family, self.advice, self.tangent_dtype

    @classmethod
    def named(cls, name: str) -> "Opaque | None":
        """Return the dtype of this name; None if it does not exist."""
        return cls._all.get(name)

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self.words.itemsize * int(product(self.shape))

    @property
    def type(self) -> Any:
        """The kind of its elements, a class of `plait.dtypes`: `prng_key` for keys."""
        return later("dtypes").kind_of(self)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return Opaque, self.parts()
