# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait.export import tensorflow as tensorflow
from plait_export import *
