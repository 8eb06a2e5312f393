"""The names of scipy.linalg.

SciPy's arguments about overwriting and checking (`overwrite_a`, `check_finite`, ...) are accepted
and have no effect: arrays are immutable, and no value raises an error.  Functions of matrices take
stacks of them: any leading axes.

Invariant: functions with the name of one in `plait.numpy.linalg` compute the same.
"""

from plait.ext.surface import advise as _advise

from ...refusals import explain
from . import factors, patterns
from .factors import *
from .functions import expm, expm_frechet, funm, polar, sqrtm
from .patterns import *
from .systems import cho_solve, det, inv, lu_solve, solve, solve_sylvester, solve_triangular

__all__ = [
    "cho_solve", "det", "expm", "expm_frechet", "funm", "inv", "lu_solve", "polar", "solve",
    "solve_sylvester", "solve_triangular", "sqrtm",
]  # fmt: skip
__all__ += factors.__all__
__all__ += patterns.__all__

explain(globals())

_advise("plait.scipy.linalg", globals())
