"""Names of the functions of arrays that apply to each number, and so to the rows of piles.

Invariant: a public function of `plait.numpy`, `plait.scipy.special` or `plait.nn` is named here if
and only if its results are those of single numbers, of the shape that its operands broadcast to.
"""

__all__ = ["ELEMENTWISE"]

# fmt: off
ELEMENTWISE = frozenset([
    "abs", "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "around", "asin", "asinh", "atan", "atan2",
    "atanh", "beta", "betainc", "betaln", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "boxcox", "boxcox1p", "cbrt", "ceil", "celu", "clip", "comb", "conj", "conjugate", "copy",
    "copysign", "cos", "cosh", "dawsn", "deg2rad", "degrees", "digamma", "divide", "divmod",
    "elu", "empty_like", "entr", "equal", "erf", "erfc", "erfcx", "erfinv", "exp", "exp1", "exp2",
    "expi", "expit", "expm1", "expn", "fabs", "factorial", "fix", "float_power", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "fresnel", "frexp", "full_like", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "gcd", "gelu", "greater", "greater_equal",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "heaviside", "hyp1f1", "hyp2f1",
    "hypot", "i0", "i0e", "i1", "i1e", "identity", "imag", "invert", "isclose", "iscomplex",
    "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "kl_div", "lcm", "ldexp",
    "leaky_relu", "left_shift", "less", "less_equal", "lgamma", "log", "log10", "log1mexp",
    "log1p", "log2", "log_ndtr", "log_sigmoid", "logaddexp", "logaddexp2", "loggamma",
    "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "maximum", "minimum",
    "mish", "mod", "modf", "multiply", "nan_to_num", "ndtr", "ndtri", "negative", "nextafter",
    "not_equal", "ones_like", "owens_t", "poch", "polygamma", "positive", "pow", "power", "rad2deg",
    "radians", "real", "reciprocal", "rel_entr", "relu", "relu6", "remainder", "right_shift",
    "rint", "round", "rsqrt", "selu", "sici", "sigmoid", "sign", "signbit", "silu", "sin",
    "sinc", "sinh", "soft_sign", "softplus", "spacing", "sparse_plus", "sparse_sigmoid",
    "spence", "sqrt", "square", "squareplus", "subtract", "swish", "tan", "tanh", "true_divide",
    "trunc", "where", "wofz", "xlog1py", "xlogy", "zeros_like", "zeta",
])
# fmt: on
