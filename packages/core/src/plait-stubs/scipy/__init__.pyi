# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait.scipy import cluster as cluster
from plait.scipy import fft as fft
from plait.scipy import integrate as integrate
from plait.scipy import interpolate as interpolate
from plait.scipy import linalg as linalg
from plait.scipy import ndimage as ndimage
from plait.scipy import optimize as optimize
from plait.scipy import signal as signal
from plait.scipy import sparse as sparse
from plait.scipy import special as special
from plait.scipy import stats as stats
from plait_numpy.scipy import *
