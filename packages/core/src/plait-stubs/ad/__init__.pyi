# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_autodiff import DidntWant as DidntWant
from plait_autodiff import DontWant as DontWant
from plait_autodiff import GradRef as GradRef
from plait_autodiff import GradValue as GradValue
