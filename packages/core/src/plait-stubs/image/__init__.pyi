# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.image import ResizeMethod as ResizeMethod
from plait_numpy.image import resize as resize
from plait_numpy.image import scale_and_translate as scale_and_translate
