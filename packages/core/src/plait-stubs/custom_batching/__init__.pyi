# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_batching import custom_vmap as custom_vmap
from plait_batching import sequential_vmap as sequential_vmap
