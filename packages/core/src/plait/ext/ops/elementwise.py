"""Elementwise operations, and reading bits as another dtype.

Invariant: nothing is defined here.
"""

from ..._ops.accuracy import (
    PLAIN as PLAIN,
)
from ..._ops.accuracy import (
    accurate as accurate,
)
from ..._ops.conversion import (
    bitcast_ as bitcast_,
)
from ..._ops.elementwise import (
    INEXACT as INEXACT,
)
from ..._ops.elementwise import (
    LOGIC as LOGIC,
)
from ..._ops.elementwise import (
    NUMBER as NUMBER,
)
from ..._ops.elementwise import (
    abs_ as abs_,
)
from ..._ops.elementwise import (
    acos as acos,
)
from ..._ops.elementwise import (
    acosh as acosh,
)
from ..._ops.elementwise import (
    add as add,
)
from ..._ops.elementwise import (
    and_ as and_,
)
from ..._ops.elementwise import (
    asin as asin,
)
from ..._ops.elementwise import (
    asinh as asinh,
)
from ..._ops.elementwise import (
    atan as atan,
)
from ..._ops.elementwise import (
    atan2 as atan2,
)
from ..._ops.elementwise import (
    atanh as atanh,
)
from ..._ops.elementwise import (
    cbrt as cbrt,
)
from ..._ops.elementwise import (
    ceil as ceil,
)
from ..._ops.elementwise import (
    clamp as clamp,
)
from ..._ops.elementwise import (
    clz as clz,
)
from ..._ops.elementwise import (
    complex_ as complex_,
)
from ..._ops.elementwise import (
    conj as conj,
)
from ..._ops.elementwise import (
    cos as cos,
)
from ..._ops.elementwise import (
    cosh as cosh,
)
from ..._ops.elementwise import (
    digamma as digamma,
)
from ..._ops.elementwise import (
    div as div,
)
from ..._ops.elementwise import (
    eq as eq,
)
from ..._ops.elementwise import (
    erf as erf,
)
from ..._ops.elementwise import (
    erf_inv as erf_inv,
)
from ..._ops.elementwise import (
    erfc as erfc,
)
from ..._ops.elementwise import (
    exp as exp,
)
from ..._ops.elementwise import (
    expm1 as expm1,
)
from ..._ops.elementwise import (
    floor as floor,
)
from ..._ops.elementwise import (
    ge as ge,
)
from ..._ops.elementwise import (
    gt as gt,
)
from ..._ops.elementwise import (
    imag as imag,
)
from ..._ops.elementwise import (
    integer_pow as integer_pow,
)
from ..._ops.elementwise import (
    is_finite as is_finite,
)
from ..._ops.elementwise import (
    le as le,
)
from ..._ops.elementwise import (
    lgamma as lgamma,
)
from ..._ops.elementwise import (
    log as log,
)
from ..._ops.elementwise import (
    log1p as log1p,
)
from ..._ops.elementwise import (
    logistic as logistic,
)
from ..._ops.elementwise import (
    lt as lt,
)
from ..._ops.elementwise import (
    maximum as maximum,
)
from ..._ops.elementwise import (
    minimum as minimum,
)
from ..._ops.elementwise import (
    mul as mul,
)
from ..._ops.elementwise import (
    ne as ne,
)
from ..._ops.elementwise import (
    neg as neg,
)
from ..._ops.elementwise import (
    nextafter as nextafter,
)
from ..._ops.elementwise import (
    not_ as not_,
)
from ..._ops.elementwise import (
    or_ as or_,
)
from ..._ops.elementwise import (
    population_count as population_count,
)
from ..._ops.elementwise import (
    pow_ as pow_,
)
from ..._ops.elementwise import (
    real as real,
)
from ..._ops.elementwise import (
    reduce_precision as reduce_precision,
)
from ..._ops.elementwise import (
    relu as relu,
)
from ..._ops.elementwise import (
    rem as rem,
)
from ..._ops.elementwise import (
    round_away as round_away,
)
from ..._ops.elementwise import (
    round_even as round_even,
)
from ..._ops.elementwise import (
    rsqrt as rsqrt,
)
from ..._ops.elementwise import (
    select as select,
)
from ..._ops.elementwise import (
    shift_left as shift_left,
)
from ..._ops.elementwise import (
    shift_right_arithmetic as shift_right_arithmetic,
)
from ..._ops.elementwise import (
    shift_right_logical as shift_right_logical,
)
from ..._ops.elementwise import (
    sign as sign,
)
from ..._ops.elementwise import (
    sin as sin,
)
from ..._ops.elementwise import (
    sinh as sinh,
)
from ..._ops.elementwise import (
    sqrt as sqrt,
)
from ..._ops.elementwise import (
    stop as stop,
)
from ..._ops.elementwise import (
    sub as sub,
)
from ..._ops.elementwise import (
    tan as tan,
)
from ..._ops.elementwise import (
    tanh as tanh,
)
from ..._ops.elementwise import (
    xor as xor,
)

__all__ = [
    "INEXACT",
    "LOGIC",
    "NUMBER",
    "PLAIN",
    "abs_",
    "accurate",
    "acos",
    "acosh",
    "add",
    "and_",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast_",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "complex_",
    "conj",
    "cos",
    "cosh",
    "digamma",
    "div",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "ge",
    "gt",
    "imag",
    "integer_pow",
    "is_finite",
    "le",
    "lgamma",
    "log",
    "log1p",
    "logistic",
    "lt",
    "maximum",
    "minimum",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "not_",
    "or_",
    "population_count",
    "pow_",
    "real",
    "reduce_precision",
    "relu",
    "rem",
    "round_away",
    "round_even",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "stop",
    "sub",
    "tan",
    "tanh",
    "xor",
]
