"""Dtypes: their names, kinds, promotion and limits.

Invariant: a scalar type (`float32`, `bfloat16`, ...) is accepted wherever a dtype is, and equals
the dtype it stands for.  Calling it makes an array of that dtype.
"""

from typing import Any, Literal, overload

import numpy as np

from ._base.errors import OperandTypeError, TypeRule
from ._base.jaxlib_api import ml_dtypes
from ._base.lazy import advise as _advise
from ._base.lazy import later
from ._base.tracebacks import explained_calls as _explained_calls
from ._core.array import as_value, canonical
from ._core.interpreter import GROUND, current
from ._ops.conversion import bits_of
from ._ops.shape import array as make_array
from ._types.avals import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    INTEGER,
    NOTHING,
    OPAQUE,
    WEAK,
    Aval,
    Opaque,
    category,
    default_dtype,
    dtype_of,
    float0,
    promote,
    short_name,
)

__all__ = [
    "ScalarType", "canonicalize_dtype", "dtype", "finfo", "float0", "iinfo", "isdtype",
    "issubdtype", "itemsize_bits", "opaque", "prng_key", "promote_types", "promotion_table",
    "result_type", "scalar_type_of",
]  # fmt: skip


class ScalarType(type):
    """The class of classes that stand for a dtype; calling one makes an array of that dtype.

    They have no instances: `isinstance` and `issubclass` are those of numpy's scalars, and a class
    that inherits from one stands for the same dtype.

    >>> import plait
    >>> plait.numpy.int8([1, 2])
    Array([1, 2], dtype=int8)
    """

    dtype: Any

    def __new__(cls, of: Any, bases: Any = None, names: Any = None) -> "ScalarType":
        if bases is not None:  # a class statement
            return super().__new__(cls, of, bases, names)
        dtype = dtype_of(of)
        place = "bool_" if dtype == np.bool_ else dtype.name
        names = {"dtype": dtype, "__module__": __name__, "__qualname__": place}
        return super().__new__(cls, dtype.name, (), names)

    def __init__(cls, *args: object):
        super().__init__(cls.__name__, (), {})

    def __call__(cls, x: Any = 0) -> Any:
        made = make_array(x, canonical(cls.dtype))
        if current() is GROUND or made is x:
            return made
        return later("_api.default_devices").placed_by_default(made)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        if not isinstance(other, ScalarType | np.dtype | type):
            return NotImplemented
        try:
            return np.dtype(other) == cls.dtype
        except (TypeError, ValueError):  # a user's class that is not a dtype
            return False

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"plait.numpy.{cls.dtype.name}"


bool_ = ScalarType(np.bool_)
int8, int16, int32, int64 = map(ScalarType, (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = map(ScalarType, (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = map(ScalarType, (np.float16, np.float32, np.float64))
complex64, complex128 = map(ScalarType, (np.complex64, np.complex128))
bfloat16 = ScalarType("bfloat16")
int4, uint4, float4_e2m1fn = map(ScalarType, ("int4", "uint4", "float4_e2m1fn"))
float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn = map(
    ScalarType, ("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn")
)
float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = map(
    ScalarType, ("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
)
__all__ += [n for n, v in list(globals().items()) if isinstance(v, ScalarType)]


class _Dtype(type):
    """The metaclass that makes `dtype(x)` return numpy's dtype, and any such an instance of
    `dtype`."""

    def __call__(
        cls, dtype: Any, align: bool = False, copy: bool = False, **kwargs: Any
    ) -> np.dtype:
        x = dtype
        if align or copy or kwargs:
            return np.dtype(x, align, copy, **kwargs)
        if isinstance(x, type | str | np.dtype | ScalarType | Opaque) or x is None:
            return dtype_of("float64" if x is None else x)
        return x.dtype if hasattr(x, "dtype") else as_value(x).aval.dtype

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, np.dtype)


class dtype(metaclass=_Dtype):  # noqa: N801
    """The dtype of an array, of an object that can become one, or with a name, as numpy's.

    >>> import plait
    >>> plait.numpy.dtype("bfloat16").itemsize
    2
    """


# ---- kinds ---------------------------------------------------------------------------------

_ABSTRACT = {
    np.generic: lambda k, u: True,
    np.number: lambda k, u: k in (INTEGER, FLOATING, COMPLEX),
    np.integer: lambda k, u: k == INTEGER,
    np.signedinteger: lambda k, u: k == INTEGER and not u,
    np.unsignedinteger: lambda k, u: k == INTEGER and u,
    np.inexact: lambda k, u: k in (FLOATING, COMPLEX),
    np.floating: lambda k, u: k == FLOATING,
    np.complexfloating: lambda k, u: k == COMPLEX,
}


class opaque(np.generic):  # noqa: N801
    """The kind of dtypes whose elements are not numbers."""


class prng_key(opaque):  # noqa: N801
    """The kind of dtypes of keys of random numbers.

    >>> import plait
    >>> plait.dtypes.issubdtype(plait.random.key(0).dtype, plait.dtypes.prng_key)
    True
    """


_FAMILY = {opaque: None, prng_key: "key"}


def kind_of(dtype: Opaque) -> type:
    """Return the most specific kind that an opaque dtype belongs to."""
    return next((k for k, family in _FAMILY.items() if family == dtype.family), opaque)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether one dtype is the other, or of the kind it names; includes narrow dtypes.

    Args:
      arg1: a dtype, or a kind: `floating`, `integer`, ...
      arg2: the same.

    Raises OperandTypeError if an argument is neither.

    >>> import plait
    >>> plait.numpy.issubdtype("bfloat16", plait.numpy.floating)
    True
    """
    if arg1 in _ABSTRACT or arg1 in _FAMILY:
        return (arg2 in _ABSTRACT or arg2 in _FAMILY) and issubclass(arg1, arg2)
    have: Any = dtype_of(arg1)
    if arg2 in _FAMILY:
        return have.__class__ is Opaque and _FAMILY[arg2] in (None, have.family)
    if arg2 in _ABSTRACT:
        kind = category(have)
        return kind != NOTHING and _ABSTRACT[arg2](kind, have.name.startswith("uint"))
    return have == dtype_of(arg2)


_KIND_NAMES = {
    "bool": lambda d: category(d) == BOOLEAN,
    "signed integer": lambda d: issubdtype(d, np.signedinteger),
    "unsigned integer": lambda d: issubdtype(d, np.unsignedinteger),
    "integral": lambda d: category(d) == INTEGER,
    "real floating": lambda d: category(d) == FLOATING,
    "complex floating": lambda d: category(d) == COMPLEX,
    "numeric": lambda d: category(d) in (INTEGER, FLOATING, COMPLEX),
}


def isdtype(dtype: object, kind: object) -> bool:
    """Return whether a dtype is of a kind in the array API's sense, or of one of several.

    Args:
      dtype: a dtype.
      kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
        "complex floating", "numeric", a dtype, or a tuple of these.

    Raises TypeRule for other names.

    >>> import plait
    >>> plait.numpy.isdtype("int8", "signed integer")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KIND_NAMES:
        return _KIND_NAMES[kind](dtype_of(dtype))
    if isinstance(kind, str):
        raise OperandTypeError(
            f"{kind!r} is not a kind of dtypes", fix=f"use one of {sorted(_KIND_NAMES)}"
        )
    return dtype_of(dtype) == dtype_of(kind)


# ---- promotion -----------------------------------------------------------------------------


def _aval(x: Any) -> Aval:
    """Return the type of an array, a Python scalar or its class, or a dtype."""
    if x.__class__ in WEAK:
        return WEAK[x.__class__]
    if isinstance(x, type) and x in WEAK:
        return WEAK[x]
    if x is None:  # as in numpy, the default dtype
        return WEAK[float].strong()
    if isinstance(x, np.dtype | str | ScalarType | type | Opaque):
        return Aval((), canonical(dtype_of(x)))
    aval = getattr(x, "aval", None)
    if isinstance(aval, Aval):
        return aval
    if hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return Aval((), canonical(dtype_of(x.dtype)))
    if isinstance(x, np.ndarray):
        return Aval((), canonical(x.dtype))
    return as_value(x).aval


@overload
def result_type(*args: object, return_weak_type_flag: Literal[False] = ...) -> np.dtype: ...
@overload
def result_type(*args: object, return_weak_type_flag: bool) -> np.dtype | tuple[np.dtype, bool]: ...
def result_type(
    *args: object, return_weak_type_flag: bool = False
) -> np.dtype | tuple[np.dtype, bool]:
    """Return the dtype that arrays, Python scalars and dtypes are promoted to.

    With `return_weak_type_flag`, return (dtype, whether it is weak).  Python scalars, and the
    classes bool, int, float and complex, are weak: they count only if they are of a higher kind
    than everything else.

    Raises OperandTypeError if nothing is given, or a text that is not a dtype.

    >>> import plait
    >>> plait.numpy.result_type("int8", 1.5), plait.numpy.result_type("bfloat16", 1)
    (dtype('float32'), dtype(bfloat16))
    """
    if not args:
        raise OperandTypeError("result_type was given nothing: neither arrays nor dtypes")
    dtype, weak = promote([_aval(x) for x in args])
    return (dtype, weak) if return_weak_type_flag else dtype


def promote_types(a: object, b: object) -> np.dtype:
    """Return the dtype that two dtypes are promoted to; bool, int, float and complex are weak.

    Raises OperandTypeError if `a` or `b` is not a dtype.

    >>> import plait
    >>> plait.numpy.promote_types("int32", "float16")
    dtype('float16')
    """
    return result_type(*(x if isinstance(x, type) else dtype_of(x) for x in (a, b)))


_TABLE = (
    "bool uint4 uint8 uint16 uint32 uint64 int4 int8 int16 int32 int64 float8_e4m3fn bfloat16 "
    "float16 float32 float64 complex64 complex128"
)


def promotion_table(*names: object) -> str:
    """Return the promotions of each pair of dtypes, as a Markdown table.

    Args:
      names: dtypes, and the classes int, float and complex for Python numbers; by default all
        except the rarer float8s.  In the table i*, f* and c* are weak: Python numbers, or results
        of them alone. A dash is a pair that is refused.

    >>> import plait
    >>> print(plait.dtypes.promotion_table("int32", "float16", float))
    |  | i32 | f16 | f* |
    |---|---|---|---|
    | **i32** | i32 | f16 | f* |
    | **f16** | f16 | f16 | f16 |
    | **f*** | f* | f16 | f* |
    """
    kinds = [_aval(n) for n in names or (*_TABLE.split(), int, float, complex)]
    heads = [_table_name(a.dtype, a.weak_type) for a in kinds]
    lines = [f"|  | {' | '.join(heads)} |", f"|---{'|---' * len(heads)}|"]
    for head, a in zip(heads, kinds):
        cells = [_table_cell(a, b) for b in kinds]
        lines.append(f"| **{head}** | {' | '.join(cells)} |")
    return "\n".join(lines)


def _table_name(dtype: np.dtype, weak: bool) -> str:
    return (
        {INTEGER: "i*", FLOATING: "f*", COMPLEX: "c*"}[category(dtype)]
        if weak
        else (short_name(dtype))
    )


def _table_cell(a: Aval, b: Aval) -> str:
    try:
        return _table_name(*promote((a, b)))
    except TypeRule:
        return "-"


def canonicalize_dtype(dtype: object, allow_extended_dtype: bool = False) -> np.dtype:
    """Return the dtype that arrays of `dtype` have: another one only if the setting `x64` is off.

    None is the default float.  Raises TypeRule for dtypes of keys unless `allow_extended_dtype`.

    >>> import plait
    >>> plait.dtypes.canonicalize_dtype(float)
    dtype('float32')
    """
    if dtype is None:
        return default_dtype(FLOATING)
    if not allow_extended_dtype and _aval(dtype).category == OPAQUE:
        raise OperandTypeError(
            f"canonicalize_dtype: {dtype!r} is not a dtype of numbers",
            fix="give a dtype of numbers, or say allow_extended_dtype=True",
        )
    found = _aval(dtype)
    return found.dtype if found.category == OPAQUE else canonical(found.dtype)


def scalar_type_of(x: object) -> type:
    """Return the Python class of numbers like the elements of `x`: bool, int, float or complex."""
    kinds = {BOOLEAN: bool, INTEGER: int, FLOATING: float, COMPLEX: complex}
    return kinds[_aval(x).category]


# ---- limits --------------------------------------------------------------------------------


def itemsize_bits(dtype: object) -> int:
    """Return the number of bits of one element.

    >>> import plait
    >>> plait.dtypes.itemsize_bits("bfloat16"), plait.dtypes.itemsize_bits("int4")
    (16, 4)
    """
    return bits_of(_aval(dtype).dtype)


class finfo:  # noqa: N801
    """The limits of a floating (or complex) dtype, as numpy's: eps, max, min, tiny, bits, ...

    They are Python numbers, which take the dtype of the arrays they are combined with.  `dtype` is
    the floating dtype; for complex dtypes, that of the parts.

    >>> import plait
    >>> plait.numpy.finfo("bfloat16").eps
    0.0078125
    """

    dtype: np.dtype[Any]
    bits: int
    eps: float
    epsneg: float
    iexp: int
    machep: int
    max: float
    maxexp: int
    min: float
    minexp: int
    negep: int
    nexp: int
    nmant: int
    precision: int
    resolution: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float

    def __init__(self, dtype: Any):
        aval = _aval(dtype)
        if aval.category not in (FLOATING, COMPLEX):
            raise OperandTypeError(
                f"finfo: {short_name(aval.dtype)} is not a floating dtype",
                fix="ask iinfo for the limits of integers",
            )
        found = ml_dtypes.finfo(aval.dtype)
        self.dtype = np.dtype(found.dtype)
        for name, kind in finfo.__annotations__.items():
            if name != "dtype":
                setattr(self, name, kind(getattr(found, name)))

    def __repr__(self) -> str:
        return f"finfo(min={self.min}, max={self.max}, eps={self.eps}, dtype={self.dtype.name})"


def iinfo(int_type: object) -> np.iinfo:
    """Return the limits of an integer dtype, as numpy's: max, min, bits.

    Raises OperandTypeError if `int_type` is not an integer dtype.

    >>> import plait
    >>> plait.numpy.iinfo("int8").max
    127
    """
    aval = _aval(int_type)
    if aval.category != INTEGER:
        raise OperandTypeError(
            f"iinfo: {short_name(aval.dtype)} is not an integer dtype",
            fix="ask finfo for the limits of floats",
        )
    return ml_dtypes.iinfo(aval.dtype)  # type: ignore[return-value]  # ml_dtypes has a class of its own


_explained_calls(globals())
_advise("plait.dtypes", globals())
