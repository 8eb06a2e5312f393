# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_autodiff import checkpoint as _remat
remat = _remat
from plait_autodiff import checkpoint as checkpoint
from plait_autodiff import checkpoint_name as checkpoint_name
from plait_autodiff import print_saved_residuals as print_saved_residuals
from plait_autodiff.rematerialisation import policies as _checkpoint_policies
checkpoint_policies = _checkpoint_policies
