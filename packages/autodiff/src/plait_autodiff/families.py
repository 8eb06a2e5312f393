"""The primitives of this package, with their rules, for modules that need all of them by name.

Invariant: importing this module defines every primitive of `autodiff`.
"""

from .custom import jvp, linear, linear_solve, transposes, vjp
from .inversion import functions
from .rematerialisation import checkpointing, policies, residuals

__all__ = [
    "checkpointing", "functions", "jvp", "linear", "linear_solve", "policies", "residuals",
    "transposes", "vjp",
]  # fmt: skip
