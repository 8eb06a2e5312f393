# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_autodiff import check_grads as check_grads
from plait_autodiff import check_jvp as check_jvp
from plait_autodiff import check_vjp as check_vjp
