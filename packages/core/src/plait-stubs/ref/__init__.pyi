# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_state import Ref as Ref
from plait_state import empty_ref as empty_ref
from plait_state import free_ref as free_ref
from plait_state import freeze as freeze
from plait_state import new_ref as new_ref
from plait_state.api import addupdate as addupdate
from plait_state.api import get as get
from plait_state.api import set as set
from plait_state.api import swap as swap
