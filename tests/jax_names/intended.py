"""Answers that differ from jax's by intent: which, and why.

Values of distributions and of special functions may be scipy's: nan outside of the parameters, and
digits at poles, far out and in half precision, where jax has others.

Invariant: each row has a reason; a call without a row has jax's answer.
"""

import importlib
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from . import calls

ROWS = """
class | * | errors have classes of Plait, which are also ValueError, TypeError or IndexError
dtype float64 for float32 | * | with x64 narrow integers and booleans become the default float
dtype complex128 for complex64 | * | with x64 narrow integers and booleans become the default float
weak | * | numbers stay weak in functions of one number; booleans are never weak
accepted | * | a call with one meaning is computed
value | jax.scipy.special.bessel_jn | the recurrence does not overflow
value | jax.scipy.special.comb | numbers of elements that are not whole
value | jax.scipy.special.hyp2f1 | nan beyond 1
refused | jax.scipy.stats.* | complex numbers and sequences have no distribution
refused | jax.scipy.special.* | lists are not arrays
value | jax.numpy.amax | nan spreads, as in numpy
value | jax.numpy.full_like | numbers out of the range of a dtype
value | jax.numpy.geomspace | logarithms of infinity and of negative numbers
value | jax.numpy.setxor1d | a false promise that elements are unique
value | jax.numpy.sinc | whole numbers are exact
value | jax.*cho* | a factor that does not exist is nan everywhere
value | jax.scipy.linalg.eigh | one triangle is read, as in scipy
value | jax.numpy.linalg.pinv | a false promise that the matrix is Hermitian
value | jax.numpy.linalg.svd | a false promise that the matrix is Hermitian
value | jax.scipy.linalg.expm | a false promise that the matrix is triangular
value | jax.scipy.linalg.qr_multiply | infinite elements
value | jax.scipy.fft.* | infinite elements
value | jax.lax.approx_* | a nan is the greatest element, as in top_k
value | jax.lax.dot_general | products are made before they are converted to integers
value | jax.lax.linalg.qdwh | an iteration of no steps
kind | jax.lax.shape_as_value | the result is an array here, too
dtype | jax.numpy.*var | the variance in an integer dtype
dtype | jax.numpy.roots | no roots of a number
dtype | jax.scipy.signal.* | convolutions of integers are integers, as in numpy
dtype | jax.scipy.special.owens_t | results have the dtype of promotion
dtype | jax.scipy.linalg.toeplitz | results have the dtype of promotion
dtype int32 for int64 | jax.*linalg.* | ranks and counts of steps are int32
refused | jax.numpy.arctan2 | complex numbers have no such angle, as in numpy
refused | jax.numpy.radians | complex numbers have no such angle, as in numpy
refused | jax.numpy.rad2deg | sequences are not arrays
refused | jax.numpy.isrealobj | sequences are not arrays
refused | jax.numpy.argsort | positions are integers
refused | jax.numpy.asarray | a copy has to be made
refused | jax.numpy.astype | a number that the dtype does not hold
refused | jax.numpy.compress | fill_value is one number
refused | jax.numpy.extract | fill_value is one number
refused | jax.numpy.union1d | fill_value is one number
refused | jax.numpy.unique_* | fill_value is one number
refused | jax.numpy.histogram* | no bins, and complex numbers, as in numpy
refused | jax.numpy.insert | static positions out of range, as in numpy
refused | jax.numpy.lexsort | keys without axes
refused | jax.numpy.mod | remainders of booleans
refused | jax.numpy.*quantile | q out of range, as in numpy
refused | jax.numpy.*percentile | q out of range, as in numpy
refused | jax.numpy.packbits | nothing to pack
refused | jax.numpy.poly* | coefficients have one axis, as in numpy
refused | jax.numpy.repeat | a number has no axis
refused | jax.numpy.take_along_axis | an unknown mode
refused | jax.numpy.trim_zeros | an unknown trim
refused | jax.numpy.unravel_index | a negative shape
refused | jax.numpy.vsplit | a vector has no rows, as in numpy
refused | jax.numpy.linalg.tensordot | negative numbers of axes, as in numpy
refused | jax.numpy.fft.* | transforms of nothing, and frequencies of integers, as in numpy
refused | jax.scipy.linalg.eigh* | matrices that are not square, and other options
refused | jax.scipy.linalg.svd | lapack_driver None
refused | jax.scipy.linalg.fiedler_companion | coefficients have one axis
refused | jax.scipy.linalg.hankel | vectors have one axis
refused | jax.scipy.linalg.toeplitz | vectors have one axis
refused | jax.scipy.linalg.invhilbert | negative sizes
refused | jax.scipy.linalg.pascal | negative sizes
refused | jax.scipy.linalg.rsf2csf | half precision
refused | jax.scipy.linalg.solve* | half precision, and batches of equations
refused | jax.scipy.signal.stft | nothing to transform
refused | jax.lax.concatenate | an axis out of range
refused | jax.lax.cum* | running extremes of complex numbers, and logarithms of other than reals
refused | jax.lax.pcast | no axes
value | jax.nn.celu | a slope of 0
value | jax.nn.log_sigmoid | unsigned integers are not negated
value | jax.nn.softmax | infinite elements
refused | jax.nn.relu | booleans
refused | jax.ops.segment_* | as many segment numbers as rows, and known modes
value | jax.random.ball | nan outside of the parameters
value | jax.random.f | nan outside of the parameters
value | jax.random.generalized_normal | nan outside of the parameters
value | jax.random.chisquare | half precision is drawn in float32
value | jax.random.multinomial | weights are probabilities
value | jax.random.key_dtype | the class of dtypes of keys
dtype | jax.random.bits | uint32 in every setting
dtype | jax.random.generalized_normal | the dtype that was given
shape | jax.random.double_sided_maxwell | parameters broadcast to the shape
refused | jax.random.multinomial | complex counts
refused | jax.random.orthogonal | complex matrices
refused | jax.random.weibull_min | a shape that the parameters do not broadcast to
refused | jax.image.* | unknown methods
"""


def _row(line: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in line.split("|", 2))


LIST = [_row(line) for line in ROWS.strip().splitlines()]


def reason(call: dict[str, Any], what: str, ours: Any = None, jax: Any = None) -> str:
    """Return why a difference is intended, or ""."""
    for start, path, why in LIST:
        if what.startswith(start) and fnmatchcase(call["path"], path):
            return why
    if what.startswith("value") and call["path"].startswith(("jax.scipy.sp", "jax.scipy.stats.")):
        return "scipy gives it" if is_scipys(call, ours, jax) else ""
    return ""


def is_scipys(call: dict[str, Any], ours: Any, jax: Any) -> bool:
    """Return True if scipy, in double precision, gives what was found."""
    module, _, name = call["path"].removeprefix("jax.").rpartition(".")
    owner = importlib.import_module("scipy.stats" if ".stats." in module else module)
    if ".stats." in module:
        owner = getattr(owner, module.rpartition(".")[2])
    args = [_wide(x, jax) for x in call["args"]]
    named = {n: _wide(x, jax) for n, x in call["named"].items()}
    with np.errstate(all="ignore"):
        want = getattr(owner, name)(*args, **named)
    parts = ours.get("tuple", [ours])
    wants = want if "tuple" in ours else [want]
    return all(_alike(a, np.asarray(b)) for a, b in zip(parts, wants, strict=True))


def _alike(ours: Any, want: np.ndarray) -> bool:
    dtype, _, weak, _ = ours["array"]
    flat = [calls.number(v) for v in want.reshape(-1)[: calls.MOST]]
    return calls.difference(ours, {"array": [dtype, list(want.shape), weak, flat]}) == ""


def _wide(x: Any, jax: Any) -> Any:
    made = calls.unpack(x, jax)
    return np.asarray(made, np.float64) if hasattr(made, "dtype") else made
