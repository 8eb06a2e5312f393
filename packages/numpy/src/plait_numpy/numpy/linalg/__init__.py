"""The names of numpy.linalg, and of the linear algebra extension of the array API standard.

Matrices are float32, float64, complex64 or complex128 (integers become floats); shorter floats
are refused, as by numpy.  All but `lstsq`, `multi_dot` and the tensor functions take stacks.

Invariant: a matrix outside a function's domain gives nan or infinities, never an error, since this
depends on values: there is no LinAlgError.
"""

from plait.ext.surface import advise as _advise

from ...refusals import explain
from . import equations, factors, products
from .equations import *
from .factors import *
from .norms import cond, matrix_norm, norm, vector_norm
from .products import *

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]
__all__ += equations.__all__
__all__ += factors.__all__
__all__ += products.__all__

explain(globals())

_advise("plait.numpy.linalg", globals())
