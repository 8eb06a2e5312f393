"""What authors of rules and of other plugins build on: the tables of derivatives, the division of
programs into known and unknown halves, reversal, partial evaluation.

Invariant: nothing is defined here.
"""

from .custom.jvp import (
    custom_jvp_call as custom_jvp_call,
)
from .custom.linear_solve import (
    linear_solve as linear_solve,
)
from .custom.root import (
    dense_solve as dense_solve,
)
from .custom.vjp import (
    custom_vjp_call as custom_vjp_call,
)
from .forward import (
    JVP as JVP,
)
from .forward import (
    ZERO as ZERO,
)
from .forward import (
    instantiate as instantiate,
)
from .forward import (
    jvp_rules as jvp_rules,
)
from .inversion.functions import (
    along as along,
)
from .inversion.functions import (
    custom_ivjp_call as custom_ivjp_call,
)
from .inversion.functions import (
    invertible_call as invertible_call,
)
from .inversion.reverse_pass import (
    Reverse as Reverse,
)
from .inversion.reverse_pass import (
    Unknown as Unknown,
)
from .inversion.reverse_pass import (
    inverse_rules as inverse_rules,
)
from .inversion.reverse_pass import (
    reverse as reverse,
)
from .partial import (
    PartialProgram as PartialProgram,
)
from .partial import (
    PartialVal as PartialVal,
)
from .partial import (
    partial_eval as partial_eval,
)
from .partial import (
    partial_trace as partial_trace,
)
from .rematerialisation.residuals import (
    Kept as Kept,
)
from .rematerialisation.residuals import (
    economise as economise,
)
from .rematerialisation.residuals import (
    recompute_rules as recompute_rules,
)
from .split import (
    Halves as Halves,
)
from .split import (
    Split as Split,
)
from .split import (
    choose as choose,
)
from .split import (
    divide as divide,
)
from .split import (
    merge as merge,
)
from .split import (
    part as part,
)
from .split import (
    split_program as split_program,
)
from .split import (
    split_rules as split_rules,
)
from .taylor.laplacian import (
    Laplacian as Laplacian,
)
from .taylor.laplacian import (
    laplacian_rules as laplacian_rules,
)
from .taylor.series import (
    Jet as Jet,
)
from .taylor.series import (
    jet_rules as jet_rules,
)
from .transpose import (
    Linear as Linear,
)
from .transpose import (
    backward as backward,
)
from .transpose import (
    is_linear as is_linear,
)
from .transpose import (
    transpose_divided as transpose_divided,
)
from .transpose import (
    transpose_program as transpose_program,
)
from .transpose import (
    transpose_rules as transpose_rules,
)

__all__ = [
    "Halves",
    "JVP",
    "Jet",
    "Kept",
    "Laplacian",
    "Linear",
    "PartialProgram",
    "PartialVal",
    "Reverse",
    "Split",
    "Unknown",
    "ZERO",
    "along",
    "backward",
    "choose",
    "custom_ivjp_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "dense_solve",
    "divide",
    "economise",
    "instantiate",
    "inverse_rules",
    "invertible_call",
    "is_linear",
    "jet_rules",
    "jvp_rules",
    "laplacian_rules",
    "linear_solve",
    "merge",
    "part",
    "partial_eval",
    "partial_trace",
    "recompute_rules",
    "reverse",
    "split_program",
    "split_rules",
    "transpose_divided",
    "transpose_program",
    "transpose_rules",
]
