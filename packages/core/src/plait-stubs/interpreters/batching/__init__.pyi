# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_batching import register_vmappable as register_vmappable
from plait_batching import unregister_vmappable as unregister_vmappable
