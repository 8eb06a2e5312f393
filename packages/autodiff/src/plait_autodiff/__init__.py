"""Derivatives for Plait: forward and reverse mode, custom rules, checkpointing.

Users find these names in `plait` (`plait.grad`); only authors of rules import this package.

Invariant: every public name is listed here.
"""

import os as _os
from typing import TYPE_CHECKING

from plait.ext.errors import hide as _hide
from plait.ext.rules import later_names as _later_names

if TYPE_CHECKING:  # for editors; at run time a module is imported when one of its names is used
    from .adable import is_adable, register_adable, unregister_adable
    from .api import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
    from .custom.conversions import closure_convert, custom_gradient, fwd_and_bwd
    from .custom.jvp import custom_jvp
    from .custom.linear_solve import custom_linear_solve
    from .custom.root import custom_root, implicit_diff
    from .custom.symbolic_zeros import CustomPrimal, SymbolicZero, custom_vjp_primal_tree_values
    from .custom.transposes import linear_call
    from .custom.vjp import custom_vjp
    from .destinations import DidntWant, DontWant, GradRef, GradValue
    from .gradient_checking import check_grads, check_jvp, check_vjp
    from .hessian_products import hvp, vhp
    from .inversion.functions import custom_ivjp, invertible
    from .jacobian import hessian, jacfwd, jacrev
    from .rematerialisation.checkpointing import checkpoint
    from .rematerialisation.policies import checkpoint_name
    from .rematerialisation.report import Residual, print_saved_residuals, saved_residuals
    from .rematerialisation.scans import checkpoint_scan
    from .taylor.laplacian import fwd_laplacian
    from .taylor.series import jet

__all__ = [
    "CustomPrimal", "DidntWant", "DontWant", "GradRef", "GradValue", "Residual", "SymbolicZero",
    "check_grads", "check_jvp", "check_vjp", "checkpoint", "checkpoint_name", "checkpoint_scan",
    "closure_convert",
    "custom_gradient", "custom_ivjp", "custom_jvp", "custom_linear_solve", "custom_root",
    "custom_vjp", "custom_vjp_primal_tree_values", "fwd_and_bwd", "fwd_laplacian", "grad",
    "hessian", "hvp", "implicit_diff", "invertible", "is_adable", "jacfwd", "jacrev", "jet", "jvp",
    "linear_call", "linear_transpose", "linearize", "print_saved_residuals", "register_adable",
    "saved_residuals", "unregister_adable", "value_and_grad", "vhp", "vjp",
]  # fmt: skip

__getattr__, __dir__ = _later_names(
    __name__,
    {
        "adable": "is_adable register_adable unregister_adable",
        "api": "grad jvp linear_transpose linearize value_and_grad vjp",
        "custom.conversions": "closure_convert custom_gradient fwd_and_bwd",
        "custom.jvp": "custom_jvp",
        "custom.transposes": "linear_call",
        "custom.linear_solve": "custom_linear_solve",
        "custom.root": "custom_root implicit_diff",
        "custom.symbolic_zeros": "CustomPrimal SymbolicZero custom_vjp_primal_tree_values",
        "custom.vjp": "custom_vjp",
        "destinations": "DidntWant DontWant GradRef GradValue",
        "gradient_checking": "check_grads check_jvp check_vjp",
        "hessian_products": "hvp vhp",
        "inversion.functions": "custom_ivjp invertible",
        "jacobian": "hessian jacfwd jacrev",
        "rematerialisation.checkpointing": "checkpoint",
        "rematerialisation.policies": "checkpoint_name",
        "rematerialisation.report": "Residual print_saved_residuals saved_residuals",
        "rematerialisation.scans": "checkpoint_scan",
        "taylor.laplacian": "fwd_laplacian",
        "taylor.series": "jet",
    },
)

_hide(_os.path.dirname(__file__))
