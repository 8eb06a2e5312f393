"""Numpy's functions, on arrays of Plait.

Names, arguments and results are numpy's, with these differences.  Arrays are immutable.  Lists are
not arrays: convert them with `array`.  Python numbers are weak: they take the dtype of the other
operand.  Floats are float32 by default.  Shapes never depend on traced values.  Indexing out of
bounds gives nan (or clamps) instead of an error.

Invariant: functions here apply primitives only; importing it imports no compiler and no plugin.
"""

import numpy as _np

from plait.dtypes import (
    bfloat16,
    bool_,
    canonicalize_dtype,
    complex64,
    complex128,
    dtype,
    finfo,
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    iinfo,
    int4,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    issubdtype,
    promote_types,
    result_type,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from plait.ext.surface import advise as _advise
from plait.ext.surface import found_by_name as _found_by_name

from ..refusals import explain
from . import (
    arithmetic,
    contraction,
    creation,
    fft,
    linalg,
    logic,
    manipulation,
    matrices,
    nan_reductions,
    polynomials,
    reductions,
    running_sums,
    selection,
    sets,
    stacking,
    statistics,
    transcendental,
)
from .arithmetic import *
from .contraction import *
from .creation import *
from .differences import diff, ediff1d, gradient, trapezoid, unwrap
from .inspection import (
    __array_namespace_info__,
    array_repr,
    array_str,
    broadcast_shapes,
    can_cast,
    iterable,
    ndarray,
    ndim,
    shape,
    size,
)
from .interchange import from_dlpack, frombuffer, fromfile, fromiter, fromstring, load, save, savez
from .joining import c_, r_
from .logic import *
from .manipulation import *
from .mapping import apply_along_axis, apply_over_axes, vectorize
from .matrices import *
from .nan_reductions import *
from .ordering import argsort, lexsort, sort, sort_complex
from .packing import packbits, unpackbits
from .padding import pad
from .polynomials import *
from .reductions import *
from .repetition import delete, insert, repeat, resize, tile, trim_zeros
from .running_sums import *
from .search import argpartition, digitize, interp, partition, searchsorted
from .selection import *
from .sets import *
from .stacking import *
from .statistics import *
from .subscripts import einsum, einsum_path
from .transcendental import *
from .ufuncs import frompyfunc, ufunc

__array_api_version__ = "2024.12"
bool = bool_  # noqa: A001
int_, uint, float_, complex_ = int32, uint32, float32, complex64
single, double, csingle, cdouble = float32, float64, complex64, complex128

ComplexWarning = _np.exceptions.ComplexWarning
generic, number, integer, inexact = _np.generic, _np.number, _np.integer, _np.inexact
signedinteger, unsignedinteger = _np.signedinteger, _np.unsignedinteger
floating, complexfloating, character = _np.floating, _np.complexfloating, _np.character
flexible, object_ = _np.flexible, _np.object_

pi, e, euler_gamma, inf, nan, newaxis = _np.pi, _np.e, _np.euler_gamma, _np.inf, _np.nan, None
s_, index_exp = _np.s_, _np.index_exp
set_printoptions, get_printoptions, printoptions = (
    _np.set_printoptions,
    _np.get_printoptions,
    _np.printoptions,
)

__all__ = [
    "apply_along_axis", "apply_over_axes", "argpartition", "argsort", "array_repr", "array_str",
    "bfloat16", "bool", "bool_", "broadcast_shapes", "c_", "can_cast", "canonicalize_dtype",
    "cdouble", "character", "complex128", "complex64", "complex_", "complexfloating",
    "ComplexWarning", "csingle", "delete", "diff", "digitize", "double", "dtype", "e", "ediff1d",
    "einsum", "einsum_path", "euler_gamma", "fft", "finfo", "flexible", "float16", "float32",
    "float4_e2m1fn", "float64", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "floating",
    "from_dlpack", "frombuffer", "fromfile", "fromiter", "frompyfunc", "fromstring", "generic",
    "get_printoptions", "gradient", "iinfo", "index_exp", "inexact", "inf", "insert", "int16",
    "int32", "int4", "int64", "int8", "int_", "integer", "interp", "isdtype", "issubdtype",
    "iterable", "lexsort", "linalg", "load", "nan", "ndarray", "ndim", "newaxis", "number",
    "object_", "packbits", "pad", "partition", "pi", "printoptions", "promote_types", "r_",
    "repeat", "resize", "result_type", "s_", "save", "savez", "searchsorted", "set_printoptions",
    "shape", "signedinteger", "single", "size", "sort", "sort_complex", "tile", "trapezoid",
    "trim_zeros", "ufunc", "uint", "uint16", "uint32", "uint4", "uint64", "uint8", "unpackbits",
    "unsignedinteger", "unwrap", "vectorize",
]  # fmt: skip
__all__ += arithmetic.__all__
__all__ += contraction.__all__
__all__ += creation.__all__
__all__ += logic.__all__
__all__ += manipulation.__all__
__all__ += matrices.__all__
__all__ += polynomials.__all__
__all__ += reductions.__all__
__all__ += nan_reductions.__all__
__all__ += running_sums.__all__
__all__ += selection.__all__
__all__ += sets.__all__
__all__ += stacking.__all__
__all__ += statistics.__all__
__all__ += transcendental.__all__

_found_by_name(globals())
explain(globals())
_advise("plait.numpy", globals())
