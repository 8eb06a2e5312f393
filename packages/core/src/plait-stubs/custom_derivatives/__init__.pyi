# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_autodiff import CustomPrimal as _CustomVJPPrimal
CustomVJPPrimal = _CustomVJPPrimal
from plait_autodiff import SymbolicZero as SymbolicZero
from plait_autodiff import closure_convert as closure_convert
from plait_autodiff import custom_gradient as custom_gradient
from plait_autodiff import custom_jvp as custom_jvp
from plait_autodiff import custom_vjp as custom_vjp
from plait_autodiff import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from plait_autodiff import linear_call as linear_call
