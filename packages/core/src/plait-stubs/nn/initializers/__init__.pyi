# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.nn.initializers import constant as constant
from plait_numpy.nn.initializers import delta_orthogonal as delta_orthogonal
from plait_numpy.nn.initializers import glorot_normal as glorot_normal
from plait_numpy.nn.initializers import glorot_uniform as glorot_uniform
from plait_numpy.nn.initializers import he_normal as he_normal
from plait_numpy.nn.initializers import he_uniform as he_uniform
from plait_numpy.nn.initializers import kaiming_normal as kaiming_normal
from plait_numpy.nn.initializers import kaiming_uniform as kaiming_uniform
from plait_numpy.nn.initializers import lecun_normal as lecun_normal
from plait_numpy.nn.initializers import lecun_uniform as lecun_uniform
from plait_numpy.nn.initializers import normal as normal
from plait_numpy.nn.initializers import ones as ones
from plait_numpy.nn.initializers import orthogonal as orthogonal
from plait_numpy.nn.initializers import truncated_normal as truncated_normal
from plait_numpy.nn.initializers import uniform as uniform
from plait_numpy.nn.initializers import variance_scaling as variance_scaling
from plait_numpy.nn.initializers import xavier_normal as xavier_normal
from plait_numpy.nn.initializers import xavier_uniform as xavier_uniform
from plait_numpy.nn.initializers import zeros as zeros
