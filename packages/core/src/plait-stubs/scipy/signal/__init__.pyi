# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.scipy.signal import convolve as convolve
from plait_numpy.scipy.signal import convolve2d as convolve2d
from plait_numpy.scipy.signal import correlate as correlate
from plait_numpy.scipy.signal import correlate2d as correlate2d
from plait_numpy.scipy.signal import csd as csd
from plait_numpy.scipy.signal import detrend as detrend
from plait_numpy.scipy.signal import fftconvolve as fftconvolve
from plait_numpy.scipy.signal import istft as istft
from plait_numpy.scipy.signal import stft as stft
from plait_numpy.scipy.signal import welch as welch
