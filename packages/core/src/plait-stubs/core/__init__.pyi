# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait import ensure_compile_time_eval as ensure_compile_time_eval
from plait._core.array import Literal as Literal
from plait._core.interpreter import Tracer as Tracer
from plait._types.avals import Aval as _ShapedArray
ShapedArray = _ShapedArray
from plait._types.dims import max_dim as max_dim
from plait._types.dims import min_dim as min_dim
