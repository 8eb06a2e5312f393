"""Derivatives for Weft: forward and reverse mode, custom rules, checkpointing.

Users find these names in `weft` (`weft.grad`); importing this package is for those who write
rules.

Invariant: everything public is named here.
"""

import os as _os

from weft.source import hide as _hide

from .api import (
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from .custom import custom_jvp, custom_jvp_call, custom_vjp, custom_vjp_call
from .forward import JVP, ZERO, instantiate, jvp_rules
from .numerical import check_grads
from .remat import checkpoint
from .split import Split, split_program, split_rules
from .transpose import Linear, backward, is_linear, transpose_program, transpose_rules

__all__ = [
    "JVP",
    "Linear",
    "Split",
    "ZERO",
    "backward",
    "check_grads",
    "checkpoint",
    "custom_jvp",
    "custom_jvp_call",
    "custom_vjp",
    "custom_vjp_call",
    "grad",
    "hessian",
    "instantiate",
    "is_linear",
    "jacfwd",
    "jacrev",
    "jvp",
    "jvp_rules",
    "linear_transpose",
    "linearize",
    "split_program",
    "split_rules",
    "transpose_program",
    "transpose_rules",
    "value_and_grad",
    "vjp",
]

_hide(_os.path.dirname(__file__))
