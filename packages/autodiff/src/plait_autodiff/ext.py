"""The public interface for authors of rules and plugins: tables of derivatives, division of
programs into known and unknown halves, reversal, partial evaluation.

Invariant: nothing is defined here.
"""

from .cotangents import sum_over_devices
from .custom.jvp import custom_jvp_call
from .custom.linear_solve import linear_solve
from .custom.root import dense_solve
from .custom.vjp import custom_vjp_call
from .forward import JVP, ZERO, instantiate, jvp_rules
from .inversion.functions import along, custom_ivjp_call, invertible_call
from .inversion.recovery import Reverse, Unknown, inverse_rules, reverse
from .partial_evaluation import PartialProgram, PartialVal, partial_eval, partial_trace
from .rematerialisation.residuals import Kept, economise, recompute_rules
from .row_operations import Rowwise, rowwise
from .split import Halves, Split, choose, divide, merge, part, split_program, split_rules
from .taylor.laplacian import Laplacian, laplacian_rules
from .taylor.series import Jet, jet_rules
from .transpose import (
    Linear,
    backward,
    is_linear,
    transpose_divided,
    transpose_program,
    transpose_rules,
)

__all__ = [
    "Halves", "JVP", "Jet", "Kept", "Laplacian", "Linear", "PartialProgram", "PartialVal",
    "Reverse", "Rowwise", "Split", "Unknown", "ZERO", "along", "backward", "choose",
    "custom_ivjp_call", "custom_jvp_call", "custom_vjp_call", "dense_solve", "divide", "economise",
    "instantiate", "inverse_rules", "invertible_call", "is_linear", "jet_rules", "jvp_rules",
    "laplacian_rules", "linear_solve", "merge", "part", "partial_eval", "partial_trace",
    "recompute_rules", "reverse", "rowwise", "split_program", "split_rules", "sum_over_devices",
    "transpose_divided", "transpose_program", "transpose_rules",
]  # fmt: skip
