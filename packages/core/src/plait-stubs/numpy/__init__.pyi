# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait.numpy import fft as fft
from plait.numpy import linalg as linalg
from plait_numpy.numpy import *
