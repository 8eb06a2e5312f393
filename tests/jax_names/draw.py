"""Random arrays, numbers and static arguments of one call, which fit together more often than not.

Invariant: the same seed gives the same arguments; this module imports neither Plait nor jax.
"""

import random
from typing import Any

from .calls import Made

FLOATING = ("scipy.special", "scipy.stats", "nn", "scipy.linalg", "lax.linalg", "numpy.linalg")
FLOATS = ("float32", "float32", "float32", "float16", "bfloat16", "float64")
INTEGERS = ("int32", "int32", "uint8", "int8", "int64", "uint32")
COMPLEX = ("complex64", "complex64", "complex128")
SHAPES = (
    (3,),
    (4,),
    (2, 3),
    (3, 3),
    (2, 2),
    (1, 3),
    (2, 2, 2),
    (2, 1, 3),
    (),
    (1,),
    (0,),
    (2, 0),
    (5,),
    (4, 4),
)
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 1e30)


class Draw:
    """The random choices of one call: what its operands have in common, and its next argument."""

    def __init__(self, seed: str, path: str) -> None:
        self.random = random.Random(seed)
        self.path, self.name = path, path.rpartition(".")[2]
        self.family = path.removeprefix("jax.").rpartition(".")[0]
        r = self.random
        self.shape: tuple[int, ...] = r.choice(SHAPES)
        self.dtypes = r.choices((FLOATS, INTEGERS, ("bool",), COMPLEX), (6, 3, 0.6, 1))[0]
        if self.family in FLOATING and r.random() < 0.85:
            self.dtypes = FLOATS
        if self.family.endswith("linalg") and r.random() < 0.8:
            self.shape = r.choice(((2, 2), (3, 3), (2, 2, 2), (4, 4), (3, 2), (2, 3)))
            self.dtypes = ("float32",) if r.random() < 0.6 else FLOATS + COMPLEX
        self.dtype = r.choice(self.dtypes)
        self.special = r.random() < 0.15
        self.positive = self.family in FLOATING and r.random() < 0.6

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def choose(self, *of: Any) -> Any:
        return self.random.choice(of)

    # -- operands --------------------------------------------------------------------------------

    def number(self, dtype: str) -> Any:
        r = self.random
        if dtype == "bool":
            return r.randint(0, 1)
        if dtype.startswith(("int", "uint")):
            return r.randint(0 if dtype[0] == "u" or self.positive else -4, 5)
        if dtype.startswith("complex"):
            return [self.number("float"), self.number("float")]
        if self.special and r.random() < 0.3:
            return r.choice(SPECIAL[:4] if dtype == "float16" else SPECIAL)
        return r.randint(1 if self.positive else -24, 24) / 8

    def array(self, shape: tuple[int, ...], dtype: str, kind: str = "") -> Made:
        size = 1
        for n in shape:
            size *= n
        values = tuple(self.number(dtype) for _ in range(size))
        return Made(kind or self.choose("jnp", "jnp", "np"), dtype, tuple(shape), values)

    def operand(self) -> Any:
        """Return an array beside the others, a weak one, a number, or something out of place."""
        r = self.random
        p = r.random()
        others = self.dtypes if r.random() < 0.7 else (*FLOATS, *INTEGERS, "bool", *COMPLEX)
        dtype = self.dtype if r.random() < 0.6 else r.choice(others)
        if p < 0.1:
            return self.scalar()
        if p < 0.16:
            return Made("weak", "", (), (self.plain(self.choose("float32", "int32")),))
        if p < 0.2:
            return Made("scalar", dtype, (), (self.number(dtype),))
        if p < 0.24:
            return [self.plain(dtype) for _ in range(self.choose(2, 3))]
        shape = self.shape
        if r.random() < 0.15:
            shape = tuple(1 if r.random() < 0.4 else n for n in shape[r.randint(0, len(shape)) :])
        elif r.random() < 0.07:
            shape = r.choice(SHAPES)
        return self.array(shape, dtype)

    def plain(self, dtype: str) -> Any:
        x = self.number(dtype)
        return complex(*x) if isinstance(x, list) else bool(x) if dtype == "bool" else x

    def scalar(self) -> Any:
        return self.plain(self.choose(self.dtype, self.dtype, "float32", "int32"))

    def floats(self) -> Any:
        return self.array(self.shape, self.choose("float32", "float32", "float64", "float16"))

    def integers(self, low: int = -2, high: int = 4) -> Any:
        shape = self.choose(self.shape, (2,), (3,), ())
        size = 1
        for n in shape:
            size *= n
        values = tuple(self.random.randint(low, high) for _ in range(size))
        dtype = self.choose("int32", "int32", "int32", "uint8", "int64") if low >= 0 else "int32"
        return Made(self.choose("jnp", "np"), dtype, shape, values)

    def mask(self) -> Any:
        return self.array(self.shape, "bool") if self.chance(0.85) else self.operand()

    def several(self) -> Any:
        n = self.choose(1, 2, 2, 3)
        parts = [self.operand() for _ in range(n)]
        return tuple(parts) if self.chance(0.3) else parts

    # -- static arguments ------------------------------------------------------------------------

    def whole(self, low: int = -1, high: int = 4) -> int:
        return self.random.randint(low, high)

    def axis(self) -> Any:
        n = len(self.shape)
        p = self.random.random()
        if p < 0.1:
            return None
        if p < 0.25 and n:
            return tuple(self.random.sample(range(-n, 0), self.random.randint(0, n)))
        if p < 0.35:
            return self.whole(-4, 4)
        return self.whole(-n, n - 1) if n else self.choose(0, -1)

    def one_axis(self) -> Any:
        n = len(self.shape)
        return self.whole(-n, n - 1) if n and self.chance(0.85) else self.whole(-3, 3)

    def axes(self) -> Any:
        n = len(self.shape)
        order = self.random.sample(range(n), n)
        return tuple(order[: self.choose(n, n, 1, 2)]) if self.chance(0.85) else self.axis()

    def dtype_(self) -> Any:
        name = self.choose(
            "float32",
            "float64",
            "float16",
            "bfloat16",
            "int32",
            "int8",
            "uint8",
            "bool",
            "complex64",
            "int64",
        )
        return None if self.chance(0.1) else Made("dtype", name)

    def shape_(self) -> Any:
        p = self.random.random()
        if p < 0.15:
            return self.whole(-1, 4)
        if p < 0.4:
            return tuple(self.random.sample(self.shape, len(self.shape)))
        if p < 0.55:
            return (-1,) if p < 0.5 else (2, -1)
        if p < 0.75:
            return (2, *self.shape)
        return self.choose(*SHAPES, [2, 3], None)

    def sizes(self) -> Any:
        return tuple(self.whole(0, 3) for _ in self.shape) if self.chance(0.85) else self.shape_()

    def flag(self) -> bool:
        return self.chance(0.6)
