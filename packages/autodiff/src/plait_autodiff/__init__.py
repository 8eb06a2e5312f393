"""Derivatives for Plait: forward and reverse mode, custom rules, checkpointing.

Users find these names in `plait` (`plait.grad`); importing this package is for those who write
rules.

Invariant: everything public is named here.
"""

import os as _os

from plait.source import hide as _hide

from .api import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from .conversion import closure_convert, custom_gradient, fwd_and_bwd
from .directions import custom_jvp, custom_jvp_call
from .equations import custom_linear_solve, linear_solve
from .forward import JVP, ZERO, instantiate, jvp_rules
from .implicit import custom_root, dense_solve, implicit_diff
from .inversion import Reverse, Unknown, inverse_rules, reverse
from .jacobian import hessian, jacfwd, jacrev
from .laplacian import Laplacian, fwd_laplacian, laplacian_rules
from .numerical import check_grads
from .partial import PartialProgram, PartialVal, partial_eval, partial_trace
from .policies import checkpoint_name
from .products import hvp, vhp
from .pullbacks import custom_vjp, custom_vjp_call
from .remat import checkpoint
from .report import Residual, print_saved_residuals, saved_residuals
from .residuals import economise, recompute_rules
from .reversible import custom_ivjp, custom_ivjp_call, invertible, invertible_call
from .schedule import checkpoint_scan
from .split import Split, split_program, split_rules
from .symbolic import CustomPrimal, SymbolicZero
from .taylor import Jet, jet, jet_rules
from .transpose import Linear, backward, is_linear, transpose_program, transpose_rules

__all__ = [
    "CustomPrimal",
    "JVP",
    "Jet",
    "Laplacian",
    "Linear",
    "Reverse",
    "PartialProgram",
    "PartialVal",
    "Residual",
    "Split",
    "SymbolicZero",
    "Unknown",
    "ZERO",
    "backward",
    "check_grads",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_scan",
    "closure_convert",
    "custom_gradient",
    "custom_ivjp",
    "custom_ivjp_call",
    "custom_jvp",
    "custom_jvp_call",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "custom_vjp_call",
    "dense_solve",
    "economise",
    "fwd_and_bwd",
    "fwd_laplacian",
    "grad",
    "hessian",
    "hvp",
    "implicit_diff",
    "instantiate",
    "inverse_rules",
    "invertible",
    "invertible_call",
    "is_linear",
    "jacfwd",
    "jacrev",
    "jet",
    "jet_rules",
    "jvp",
    "jvp_rules",
    "laplacian_rules",
    "linear_solve",
    "linear_transpose",
    "linearize",
    "partial_eval",
    "partial_trace",
    "print_saved_residuals",
    "recompute_rules",
    "saved_residuals",
    "reverse",
    "split_program",
    "split_rules",
    "transpose_program",
    "transpose_rules",
    "value_and_grad",
    "vhp",
    "vjp",
]

_hide(_os.path.dirname(__file__))
