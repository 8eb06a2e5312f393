# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait.scipy.cluster import vq as vq
from plait_numpy.scipy.cluster import *
