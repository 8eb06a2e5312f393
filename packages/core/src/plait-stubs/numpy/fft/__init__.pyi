# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.numpy.fft import fft as fft
from plait_numpy.numpy.fft import fft2 as fft2
from plait_numpy.numpy.fft import fftfreq as fftfreq
from plait_numpy.numpy.fft import fftn as fftn
from plait_numpy.numpy.fft import fftshift as fftshift
from plait_numpy.numpy.fft import hfft as hfft
from plait_numpy.numpy.fft import ifft as ifft
from plait_numpy.numpy.fft import ifft2 as ifft2
from plait_numpy.numpy.fft import ifftn as ifftn
from plait_numpy.numpy.fft import ifftshift as ifftshift
from plait_numpy.numpy.fft import ihfft as ihfft
from plait_numpy.numpy.fft import irfft as irfft
from plait_numpy.numpy.fft import irfft2 as irfft2
from plait_numpy.numpy.fft import irfftn as irfftn
from plait_numpy.numpy.fft import rfft as rfft
from plait_numpy.numpy.fft import rfft2 as rfft2
from plait_numpy.numpy.fft import rfftfreq as rfftfreq
from plait_numpy.numpy.fft import rfftn as rfftn
