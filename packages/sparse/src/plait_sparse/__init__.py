"""Sparse arrays in five formats, their operations, and `sparsify` for functions of arrays.

    x = plait.sparse.BCOO.fromdense(dense)
    y = x @ v
    slope = plait.sparse.grad(lambda x: (x @ v).sum())(x)
    z = plait.sparse.sparsify(lambda x, v: plait.numpy.sin(x) @ v)(x, v)

Names and signatures are those of `jax.experimental.sparse`.

Invariant: no name is defined here.
"""

import os as _os

from plait.ext.errors import hide as _hide
from plait.ext.surface import advise as _advise

from . import linalg
from . import mapping as _mapping
from . import matrices as _matrices
from . import operations as _operations
from .base import JAXSparse
from .bcoo import BCOO
from .bcsr import BCSR
from .derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from .making import empty, eye, random_bcoo
from .matrices import *
from .operations import *
from .transform import sparsify, todense

__all__ = [
    "BCOO", "BCSR", "JAXSparse", "empty", "eye", "grad", "jacfwd", "jacobian", "jacrev", "linalg",
    "random_bcoo", "sparsify", "todense", "value_and_grad",
]  # fmt: skip
__all__ += _operations.__all__
__all__ += _matrices.__all__

_mapping.register()
_hide(_os.path.dirname(__file__))
_advise("plait.sparse", globals())
