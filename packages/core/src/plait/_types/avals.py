"""Types of values: shape, dtype, weakness.

Elements need not be numbers: an `Opaque` dtype describes how an element is stored in memory, and
the dtype of its tangents.

In a program that several devices run, each on its pieces, a type also records the mesh axes along
which the value may differ (`vma`, varying manual axes).  Reverse mode sums the cotangents of all
devices for a value that is the same on all of them.  A value may always be used in place of one
that varies more; type rules never see these axes (`plait._core.varying`).

A type also records how the value is divided over the explicit axes of a mesh (`division`).  The
division belongs to a shape: a type with another shape has none, and type rules never see it either
(`plait._core.divided`).

Invariant: `Aval(s, d, w) is Aval(s, d, w)`.  Avals are interned, so equality is identity and every
cache of Plait may key on them at C speed.  Python scalars are weak: they take the other operand's
dtype.
"""

import warnings
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from .._base.config import config
from .._base.errors import ArgumentError, OperandTypeError, ShapeError, TypeRule
from .._base.jaxlib_api import EXTRA_DTYPES
from .._base.lazy import later
from .._base.source import warn
from .dims import Dim, broadcast_dims, product
from .opaque import Opaque

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = [
    "Aval", "Division", "Opaque", "Place", "Placed", "Placement", "aval_for", "category",
    "dtype_of", "float0", "no_number", "promote", "scalar_aval", "weak_aval",
]  # fmt: skip

BOOL = np.dtype(bool)
INT8 = np.dtype(np.int8)
INT32 = np.dtype(np.int32)
UINT32 = np.dtype(np.uint32)
FLOAT32 = np.dtype(np.float32)
float0 = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents of integers and booleans, which have no derivatives; its elements have no
bytes."""

BOOLEAN, INTEGER, FLOATING, COMPLEX, NOTHING, OPAQUE = range(6)
_KINDS = {"b": BOOLEAN, "i": INTEGER, "u": INTEGER, "f": FLOATING, "c": COMPLEX}
_categories: dict[Any, int] = {
    d: INTEGER if "int" in n else FLOATING for n, d in EXTRA_DTYPES.items()
}
_categories[float0] = NOTHING
_SHORT = {"bool": "bool", "bfloat16": "bf16"}
NOWHERE: frozenset[str] = frozenset()
"""No axes: the value is the same on all devices, as always outside of programs for pieces."""
_sets: dict[frozenset[str], frozenset[str]] = {NOWHERE: NOWHERE}


def category(dtype: np.dtype | Opaque) -> int:
    """Return BOOLEAN, INTEGER, FLOATING or COMPLEX; NOTHING for float0, OPAQUE for an Opaque."""
    try:
        return _categories[dtype]
    except KeyError:
        pass
    if dtype.__class__ is Opaque:
        _categories[dtype] = OPAQUE
        return OPAQUE
    kind = _KINDS.get(dtype.kind)
    if kind is None or dtype.name in ("float128", "complex256", "longdouble"):
        raise OperandTypeError(
            f"dtype {dtype} is not one that arrays can have",
            fix="use a boolean, integer, floating or complex dtype",
        )
    _categories[dtype] = kind
    return kind


class Aval:
    """The type of an array: `shape` (ints or symbolic `Dim`s), `dtype`, `weak_type`."""

    __slots__ = (
        "shape", "dtype", "weak_type", "ndim", "inexact", "varies", "category", "physical",
        "handler", "mlir", "vma", "division", "dims", "aval",
    )  # fmt: skip
    shape: "tuple[Any, ...]"
    dtype: Any  # a numpy dtype, or an Opaque
    weak_type: bool
    ndim: int
    inexact: bool
    varies: bool  # whether it has tangents
    category: int
    physical: "Aval"  # the type in memory; it differs for opaque dtypes and float0.
    handler: Any  # the result handler of the runtime, in the default place.
    mlir: Any  # the MLIR type, made at first lowering.
    vma: frozenset[str]  # the axes of a mesh along which it varies; equal sets are one object.
    division: "Division | None"  # the division over explicit axes, if there is one.
    dims: frozenset[str]  # the names of the symbolic sizes in its shape.
    aval: "Aval"  # itself, since it is a dispatch key; a property would be a call for each result.
    _all: "dict[tuple[Any, ...], Aval]" = {}

    placement = None
    """None: an Aval is also the dispatch key of arrays in the default place."""

    def __new__(
        cls, shape: Any, dtype: Any, weak_type: bool = False, *, sharding: Any = None
    ) -> "Aval":
        if sharding is not None:
            return _divided(cls(shape, dtype, weak_type), sharding)
        try:
            # The arguments are looked up unchecked, since the table contains checked types only.
            return cls._all[shape, dtype, weak_type]
        except (KeyError, TypeError):
            pass
        shape = tuple([_unowned(d) if d.__class__ is Dim else _size(d) for d in shape])
        if dtype.__class__ is not Opaque and not isinstance(dtype, np.dtype):
            dtype = dtype_of(dtype)
        key: Any = shape, dtype, bool(weak_type)
        self = cls._all.get(key)
        return cls._made(key, NOWHERE) if self is None else self

    @classmethod
    def _made(
        cls, key: "tuple[Any, ...]", vma: frozenset[str], sharding: "Division | None" = None
    ) -> "Aval":
        self = object.__new__(cls)
        self.shape, self.dtype, self.weak_type = shape, dtype, _ = key
        self.ndim, self.category = len(shape), category(dtype)
        self.inexact = self.varies = self.category in (FLOATING, COMPLEX)
        self.vma, self.aval = vma, self
        self.division = None if sharding is None else sharding.of_rank(self.ndim)
        named = [d.variables for d in shape if d.__class__ is Dim]
        self.dims = NOWHERE.union(*named) if named else NOWHERE
        self.physical = self
        if self.category == NOTHING:
            self.physical = Aval(shape, BOOL).with_vma(vma).with_sharding(sharding)
        if self.category == OPAQUE:
            words = Aval((*shape, *dtype.shape), dtype.words)
            self.physical = words.with_vma(vma).with_sharding(sharding)
            self.varies = dtype.tangent_dtype is not None
        self.handler = self.mlir = None
        # Two threads may make one type at the same time: `setdefault` is atomic, so both get the
        # same object.  The object is complete before it enters the table.
        return cls._all.setdefault(_full_key(key, vma, sharding), self)

    def with_vma(self, axes: frozenset[str]) -> "Aval":
        """Return the type of a value that varies along these axes of a mesh."""
        return self if axes == self.vma else self._like(axes, self.division)

    def with_sharding(self, sharding: "Division | None") -> "Aval":
        """Return the type of a value with this division over the explicit axes of a mesh, or
        none."""
        return self if sharding is self.division else self._like(self.vma, sharding)

    def _like(self, vma: frozenset[str], sharding: "Division | None") -> "Aval":
        key = self.shape, self.dtype, self.weak_type
        found = self._all.get(_full_key(key, vma, sharding))
        return found or self._made(key, _sets.setdefault(vma, vma), sharding)

    @property
    def sharding(self) -> Any:
        """The division over the explicit axes of a mesh, as users read it; None without one."""
        return self.division

    @property
    def size(self) -> Any:
        """The number of elements."""
        return product(self.shape)

    def with_shape(self, shape: "Iterable[Any]") -> "Aval":
        new = Aval(tuple(shape), self.dtype, self.weak_type)
        return new.with_vma(self.vma) if self.vma else new

    @property
    def tangent_type(self) -> "Aval":
        """The type of its tangents: itself for floats; float0 for types without derivatives."""
        if self.inexact:
            return self
        if self.category == OPAQUE and self.dtype.tangent_dtype is not None:
            return self.with_dtype(self.dtype.tangent_dtype)
        return self.with_dtype(float0)

    def update(self, **changes: Any) -> "Aval":
        """Return the type with another shape, dtype, weak_type, vma or sharding.

        With another shape, `sharding` is None unless it is given.  Raises TypeRule for any other
        keyword that is not None.
        """
        unknown = changes.keys() - {"shape", "dtype", "weak_type", "vma", "sharding"}
        if any(changes[name] is not None for name in unknown):
            raise ArgumentError(
                f"the type {self!r} says nothing of {sorted(unknown)}",
                fix="a type has a shape, a dtype and weak_type",
            )
        same = {"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type}
        kept = {name: changes.get(name, had) for name, had in same.items()}
        new = Aval(tuple(kept["shape"]), dtype_of(kept["dtype"]), bool(kept["weak_type"]))
        same_shape = new.shape == self.shape
        sharding = changes.get("sharding", self.division if same_shape else None)
        new = new.with_vma(changes.get("vma", self.vma))
        return new if sharding is None else _divided(new, sharding)

    def with_dtype(self, dtype: Any) -> "Aval":
        new = Aval(self.shape, dtype, False)
        new = new.with_vma(self.vma) if self.vma else new
        return new if self.division is None else new.with_sharding(self.division)

    def strong(self) -> "Aval":
        return self.with_dtype(self.dtype) if self.weak_type else self

    def same_type(self, other: "Aval") -> bool:
        """Return whether shape and dtype are the same, whatever the weakness."""
        return self is other or (self.shape == other.shape and self.dtype == other.dtype)

    def __repr__(self) -> str:
        sizes = [str(d) for d in self.shape]
        if self.division is not None:
            over = self.division.entries(self.ndim)
            sizes = [f"{d}@{'+'.join(names)}" if names else d for d, names in zip(sizes, over)]
        shape = ",".join(sizes)
        along = f"{{{','.join(sorted(self.vma))}}}" if self.vma else ""
        return f"{short_name(self.dtype)}[{shape}]{'*' if self.weak_type else ''}{along}"

    def __reduce__(self) -> tuple[object, ...]:
        plain = self.shape, self.dtype, self.weak_type
        if not self.vma and self.division is None:
            return Aval, plain
        return _again, (*plain, self.vma, self.division)

    def __copy__(self) -> "Aval":
        return self

    def __deepcopy__(self, memo: dict[str, Any] | dict[Any, Any]) -> "Aval":
        return self


def _divided(aval: Aval, sharding: Any) -> Aval:
    """Return the type of a value with the explicit axes of a user's sharding."""
    said = getattr(sharding, "explicit", None)
    here = getattr(sharding, "here", None)
    if said is None and here is not None and here() is None:
        return aval
    if said is None:
        raise ArgumentError(
            "a type says nothing of where values are but over explicit axes of a mesh, and "
            f"{sharding!r} was given, which names none",
            fix="leave sharding out; a ShapeDtypeStruct has one",
        )
    sharding.check(aval)
    return aval.with_sharding(said)


def _full_key(
    key: "tuple[Any, ...]", vma: frozenset[str], sharding: "Division | None"
) -> "tuple[Any, ...]":
    """Return the key of a type in the table; it leaves out trailing parts that are empty."""
    if sharding is not None:
        return *key, vma, sharding
    return (*key, vma) if vma else key


def _again(
    shape: tuple[int, ...],
    dtype: np.dtype,
    weak_type: bool,
    vma: frozenset[str],
    sharding: "Division | None",
) -> Aval:
    """Return the type that was pickled."""
    return Aval(shape, dtype, weak_type).with_vma(vma).with_sharding(sharding)


def _unowned(d: Dim) -> Dim:
    return d.owned() if d.owners else d


def _size(d: int) -> int:
    n = d.__index__() if hasattr(d, "__index__") else None
    if n is None or n < 0:
        raise ShapeError(
            f"a size in a shape must be a non-negative integer, not {d!r}",
            fix="write the shape as a tuple of ints",
        )
    return n


def short_name(dtype: np.dtype | Opaque) -> str:
    """Return the name that Programs print for a dtype: `f32`, `i8`, `bf16`, ..."""
    if dtype.__class__ is Opaque:
        return dtype.name
    name = dtype.name if dtype != float0 else "float0"
    if name in _SHORT or name in EXTRA_DTYPES or dtype == float0:
        return _SHORT.get(name, name)
    head = {"f": "f", "i": "i", "u": "u", "c": "c"}[dtype.kind]
    return f"{head}{dtype.itemsize * 8}"


def no_number(what: str, aval: Aval) -> TypeRule:
    """Return the error for an operation on elements that are not numbers."""
    return OperandTypeError(
        f"{what} cannot take {aval!r}: a {aval.dtype.family} of shape {aval.shape} is not a number",
        fix=aval.dtype.advice,
    )


_SCALARS: frozenset[Any] = frozenset(np.sctypeDict.values())
"""Classes of scalars that have a dtype, among others that packages register."""


def _is_scalar(name: Any) -> bool:
    return isinstance(name, type) and issubclass(name, np.generic)


def dtype_of(name: Any) -> "np.dtype[Any]":
    """Return the dtype for anything that numpy accepts as one, or for a name that numpy lacks."""
    if isinstance(name, np.dtype):
        return cast("np.dtype[Any]", name if name.isnative else name.newbyteorder("="))
    if name.__class__ is Opaque:
        return cast("np.dtype[Any]", name)
    if isinstance(name, str) and name in EXTRA_DTYPES:
        return EXTRA_DTYPES[name]
    try:
        if _is_scalar(name) and name not in _SCALARS:
            # Before 2.4 numpy takes np.floating for float64, and warns.
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)
                return np.dtype(name)
        found = np.dtype(name)
        return found if found.isnative else found.newbyteorder("=")
    except (TypeError, DeprecationWarning):
        raise OperandTypeError(
            f"{name!r} is not a dtype", fix='write for instance dtype="float32"'
        ).given(name) from None


_NARROW = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.complex128): np.dtype(np.complex64),
}


def canonical(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """Return the dtype of arrays that are made from data of this `dtype`.

    It has this machine's byte order, and 32 bits instead of 64 if the setting x64 is off.
    """
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    return dtype if config.x64 else _NARROW.get(dtype, dtype)


def asked_dtype(dtype: object, kind: int = FLOATING) -> "np.dtype[Any]":
    """Return the dtype that a user requests by `dtype`; Python's classes mean the default dtypes,
    and None the default one of `kind`.

    If the setting x64 is off, 32 bits stand for 64, which is warned of.
    """
    if dtype is None:
        return _defaults[kind]
    if isinstance(dtype, type) and dtype in WEAK:
        return WEAK[dtype].dtype
    found: Any = dtype_of(dtype)
    if found.__class__ is Opaque:
        return found
    given = canonical(found)
    if given is not found and given.itemsize < found.itemsize:
        warn(
            f"a dtype of 64 bits was requested, and x64 is off: {found.name} becomes {given.name}\n"
            f"  write {given.name!r}, or set plait.config.x64 (jax_enable_x64) to True"
        )
    return given


def is_narrow(a: Aval) -> bool:
    """Return whether a type is of floats narrower than float32."""
    return a.category == FLOATING and a.dtype.itemsize < 4


def inexact_dtype(name: str, dtype: object) -> "np.dtype[Any]":
    """Return the dtype that a user requests by `dtype`, for results of `name` that are fractions or
    nan; refuse integers and booleans."""
    found = asked_dtype(dtype)
    if category(found) not in (FLOATING, COMPLEX):
        raise OperandTypeError(
            f"{name}: dtype must be a float or complex dtype, not {found.name}",
            fix="leave dtype out, and convert the result with .astype",
        )
    return found


def nothing_to_do(avals: "Sequence[Aval]") -> TypeRule:
    """Return the error for arithmetic with float0."""
    return OperandTypeError(
        f"float0 holds no numbers to compute with, and was given to an operation: {list(avals)}",
        fix="they say that there is no derivative; leave them out of arithmetic",
    )


# ---- where arrays are ----------------------------------------------------------------------


class Placed:
    """The dispatch key of an array outside the default place: interned, so equality is identity."""

    __slots__ = ("aval", "placement", "handler")
    _all: "dict[tuple[Any, ...], Placed]" = {}

    def __new__(cls, aval: Aval, placement: "Placement") -> "Placed":
        self = cls._all.get((aval, placement))
        if self is None:
            # Equal placements may be written in several ways: that of arrays does not depend on
            # which of them came first.
            placement = getattr(placement, "shortest", placement)
            # The type's division over explicit axes follows from the placement.
            typed = aval.with_sharding(getattr(placement, "explicit", None))
            if typed is not aval:
                return cls._all.setdefault((aval, placement), Placed(typed, placement))
            self = object.__new__(cls)
            self.aval, self.placement, self.handler = aval, placement, None
            self = cls._all.setdefault((aval, placement), self)
        return self

    def __repr__(self) -> str:
        return f"{self.aval!r}@{self.placement}"


class Division(Protocol):
    """The division of a value over the explicit axes of a mesh; hashable.

    It is part of types (`Aval.division`).  Packages that have meshes derive it for the results of
    operations (`plait._core.divided`)."""

    def entries(self, ndim: int) -> tuple[tuple[str, ...], ...]:
        """Return the names of the mesh axes that each axis is divided over."""
        ...

    def of_rank(self, ndim: int) -> "Division":
        """Return the same division, written out for an array with `ndim` axes."""
        ...

    def with_entries(self, entries: "Iterable[tuple[str, ...]]") -> "Division":
        """Return the division over the same mesh with these names for each axis."""
        ...

    def results(self, prim: Any, avals: "Sequence[Aval]", params: Any, outs: Any) -> Any:
        """Return the types `outs` of the results of an operation, with their divisions.

        At least one of the operands, of types `avals`, is divided.  Raises TypeRule if the
        divisions of the results are ambiguous."""
        ...

    def constrain(self, x: Any) -> Any:
        """Return a value with this division."""
        ...

    def release(self, x: Any) -> Any:
        """Return a divided value, with a type that records no division."""
        ...

    def obeyed(self, e: Any, x: Any, aval: Aval) -> Any:
        """Return a value in a module, with a constraint that makes the compiler divide it so."""
        ...


class Place(Protocol):
    """Devices that one computation runs on together, in order; hashable.

    Devices of a topology are not here: such a place has the topology as its attribute `topology`
    (`plait._core.topologies`)."""

    @property
    def devices(self) -> tuple[int, ...]:
        """The numbers of the devices."""
        ...

    def is_left(self, bound: "Mapping[str, Any]") -> bool:
        """Return whether the compiler may divide values here, where these axes are bound."""
        ...

    def whole_along(self, e: Any, x: Any, aval: "Aval", axes: "Collection[int]") -> Any:
        """Return a value in a module, undivided along these axes and otherwise divided as the
        compiler chooses."""
        ...

    def everywhere(self) -> "Placement":
        """Return the placement of a whole copy on each device, used for arrays of the default
        place."""
        ...

    def placement(self, tiles: Any, ndim: int) -> "Placement | None":
        """Return the placement of a result that the compiler tiled like this; None if this place
        cannot express it."""
        ...

    def tiled(self, tiles: Any, ndim: int) -> "Placement":
        """Return the placement of a result that no place of the module can express, as tiles."""
        ...

    def once(self, unit: Any, operation: Any) -> None:
        """Mark an operation with a side effect, so that one device does it for all."""
        ...


class Placement(Protocol):
    """The places of the pieces of an array; hashable, and equal if it places every array alike."""

    @property
    def place(self) -> Place: ...

    def tiling(self, ndim: int) -> str:
        """Return the tiling as the runtime writes it (HloSharding)."""
        ...

    def attributes(self, unit: Any, ndim: int) -> dict[str, Any]:
        """Return the attributes of such an argument of `main`; may declare module symbols."""
        ...


Key = Aval | Placed
"""The key of executables: the type of an array, with its place unless that is the default."""


# ---- promotion -----------------------------------------------------------------------------

_defaults: dict[int, np.dtype] = {}
_met: "dict[tuple[Aval, ...], Aval]" = {}
WEAK: dict[type, Aval] = {}
"""The types of Python scalars; refilled when the default dtypes change."""


_strict = [False]
"""True if only Python numbers are promoted: the setting numpy_dtype_promotion is "strict"."""
_weak_scalars: dict[np.dtype, Aval] = {}
"""dtypes of numpy's scalars that are weak -> their types, by the setting numpy_scalars."""
_ranks = ["allow"]
"""The setting numpy_rank_promotion: allow, warn or raise."""


def _read_settings() -> None:
    """Copy the settings that promotion depends on, and drop memoised promotions."""
    _strict[0] = config.numpy_dtype_promotion == "strict"
    _ranks[0] = config.numpy_rank_promotion
    floating, integer = np.dtype(config.default_float), np.dtype(config.default_int)
    wide = np.complex128 if floating.itemsize == 8 else np.complex64
    _met.clear()
    _defaults.update({BOOLEAN: BOOL, INTEGER: integer, FLOATING: floating, COMPLEX: np.dtype(wide)})
    WEAK.update(
        {
            bool: Aval((), BOOL, False),
            int: Aval((), integer, True),
            float: Aval((), floating, True),
            complex: Aval((), np.dtype(wide), True),
        }
    )
    _weak_scalars.clear()
    if config.numpy_scalars == "weak":
        wide_dtypes = (np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.complex128))
        _weak_scalars.update({d: Aval((), canonical(d), True) for d in wide_dtypes})


config.watch(_read_settings)
_read_settings()


def default_dtype(kind: int) -> np.dtype:
    """Return the dtype of Python numbers of this category."""
    return _defaults[kind]


def weak_aval(scalar_type: type) -> Aval | None:
    """Return the type of a Python scalar; None for other classes."""
    return WEAK.get(scalar_type)


def scalar_aval(x: "np.generic[Any]") -> Aval:
    """Return the type of a numpy scalar.

    Those of 64 bits are what numpy makes of Python's numbers (`np.sqrt(2)`, `xs.mean()`), so they
    are weak as these are, and keep their dtype only among numbers.  An integer that the default
    dtype cannot hold stays strong: it would not survive a meeting with a narrower array.
    """
    weak = _weak_scalars.get(x.dtype)
    if weak is None:
        return Aval((), canonical(x.dtype))
    if weak.category == INTEGER:
        info = np.iinfo(_defaults[INTEGER])
        if not info.min <= x.item() <= info.max:
            return weak.strong()
    return weak


def aval_for(shape: tuple[int | Dim, ...], dtype: str | type) -> Aval:
    """Return the strong type of an array."""
    return Aval(tuple(shape), dtype_of(dtype))


def _meet(a: np.dtype, b: np.dtype) -> np.dtype:
    if a == b:
        return a
    if category(a) == FLOATING and EXTRA_DTYPES.keys() & {a.name, b.name}:
        narrow = {a.name, b.name}
        if narrow == {"bfloat16", "float16"}:
            return FLOAT32
        if not narrow & {"float16", "float32", "float64", "bfloat16"} or a.itemsize == b.itemsize:
            raise OperandTypeError(
                f"no dtype holds both {a} and {b}", fix="convert one of them with .astype first"
            )
        return a if a.itemsize > b.itemsize else b
    for narrow, other in ((a, b), (b, a)):  # numpy has no rules for 4-bit integers
        if narrow.name == "uint4":
            return INT8 if other.name == "int4" else other
    for narrow, other in ((a, b), (b, a)):
        if narrow.name == "int4":
            return np.promote_types(INT8, other)
    return np.promote_types(a, b)


def _same(avals: "Sequence[Aval]") -> Any:
    """Return the common dtype of operands that are not all numbers; raise TypeRule if they
    differ."""
    first = max(avals, key=lambda a: a.category)
    if all(a.dtype == first.dtype for a in avals):
        return first.dtype
    other = next(a for a in avals if a.dtype != first.dtype)
    if first.category == OPAQUE:
        raise no_number(f"promotion with {other!r}", first)
    raise nothing_to_do(avals)


def _equal(avals: "Sequence[Aval]", strong: "Sequence[Any]", kind: int) -> None:
    """Raise TypeRule for operands of the user, unless all have one dtype, or are numbers that may
    take it."""
    bows = not strong or all(a.dtype == strong[0] for a in avals if not a.weak_type)
    if bows and strong and len(strong) < len(avals):
        bows = kind == category(strong[0]) != BOOLEAN
    if not bows and _of_user(avals):
        said = [f"{short_name(a.dtype)}{'*' * a.weak_type}" for a in avals]
        every = ", ".join(dict.fromkeys(said))
        raise OperandTypeError(
            f"{every} are not promoted to one dtype while numpy_dtype_promotion is 'strict'",
            fix="convert with .astype, so that all have one dtype; a Python number takes that of "
            "an array of the same or a wider kind",
        )


def promote(avals: "Sequence[Aval]", strict: bool = True) -> tuple[np.dtype, bool]:
    """Return the dtype that these operands are promoted to, and whether it is still weak.

    Strong operands follow numpy's promotion, except that integers never widen floats.  A weak
    operand counts only if it is of a higher category (bool < integer < floating < complex).  The
    setting numpy_dtype_promotion concerns the user's operations: it is ignored if `strict` is
    False.
    """
    strong = [a.dtype for a in avals if not a.weak_type]
    kind = max([a.category for a in avals])
    if kind >= NOTHING:
        return _same(avals), False
    if strict and _strict[0]:
        _equal(avals, strong, kind)
    if not strong:
        return _widest(avals, kind), kind != BOOLEAN
    top = max([category(d) for d in strong])
    if kind > top:
        if kind == COMPLEX and top == FLOATING:
            wide = any(d.itemsize == 8 for d in strong if category(d) == FLOATING)
            return np.dtype(np.complex128 if wide else np.complex64), False
        return _defaults[kind], True
    at_top = [d for d in strong if category(d) == top]
    out = at_top[0]
    for d in at_top[1:]:
        out = _meet(out, d)
    if top == COMPLEX and any(d == np.float64 for d in strong):
        out = np.dtype(np.complex128)
    if not config.x64 and out not in at_top:  # signed and unsigned integers meet in a wider dtype
        out = canonical(out)
    return out, False


def _widest(avals: "Sequence[Aval]", kind: int) -> np.dtype:
    """Return the dtype of numbers alone: the default one, or a wider one that a number has."""
    least = _defaults[kind]
    if kind == COMPLEX and any(a.dtype == np.float64 for a in avals):
        least = np.dtype(np.complex128)
    return max([least, *[a.dtype for a in avals if a.category == kind]], key=_itemsize)


_itemsize = attrgetter("itemsize")


def met(avals: "tuple[Aval, ...]") -> Aval:
    """Return the type that operands of these types are promoted and broadcast to."""
    try:
        return _met[avals]
    except KeyError:
        dtype, weak = promote(avals)
        shape = broadcast_dims([a.shape for a in avals])
        judge_ranks(avals)
        out = Aval(shape, dtype, weak)
        if not _strict[0] and _ranks[0] == "allow":  # otherwise it depends on the caller, too
            _met[avals] = out
        return out


def judge_ranks(avals: "Sequence[Aval]", of_user: bool = False) -> None:
    """Warn or raise, by the setting, if operands of the user have different numbers of axes.

    Scalars fit any number.  of_user: True if the operands are the user's for certain.
    """
    if _ranks[0] == "allow":
        return
    ranks = {a.ndim for a in avals if a.ndim}
    if len(ranks) < 2:
        return
    if not of_user:
        given = later("_types.strictness").users_operands()
        if given is None or not ranks <= {_described(x).ndim for x in given}:
            return
    error = ShapeError(
        f"{' and '.join(map(repr, avals))} have different numbers of axes, while "
        f"numpy_rank_promotion is {_ranks[0]!r}",
        fix="write the axes of size 1 that are missing: x[None, :]",
    )
    if _ranks[0] == "raise":
        raise error
    warn(str(error))


def _of_user(avals: "Sequence[Aval]") -> bool:
    """Return whether the user's call was given operands of these dtypes, numbers for weak ones."""
    given = later("_types.strictness").users_operands()
    if given is None:
        return False
    kinds = {_kind(_described(x)) for x in given}
    return all(_kind(a) in kinds for a in avals)


def _kind(aval: Aval) -> Any:
    return aval.category if aval.weak_type else aval.dtype


def _described(x: Any) -> Aval:
    """Return the type of an argument: an array, a number, or a description of a dtype."""
    if hasattr(x, "aval"):
        return x.aval
    try:
        if x.__class__ in WEAK:
            return WEAK[x.__class__]
        if isinstance(x, np.generic):
            return scalar_aval(cast("np.generic[Any]", x))
        return Aval(getattr(x, "shape", ()), canonical(np.dtype(getattr(x, "dtype", x))))
    except (TypeError, ValueError, OperandTypeError):
        return WEAK[bool]


def broadcast_shapes(shapes: "Sequence[tuple[Any, ...]]") -> tuple[Any, ...]:
    """Return the shape that these broadcast to by numpy's rules; sizes may be symbolic."""
    return broadcast_dims(shapes)
