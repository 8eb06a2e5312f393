# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.ops import segment_max as segment_max
from plait_numpy.ops import segment_min as segment_min
from plait_numpy.ops import segment_prod as segment_prod
from plait_numpy.ops import segment_sum as segment_sum
