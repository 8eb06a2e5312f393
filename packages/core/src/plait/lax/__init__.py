"""The compiler's operations: explicit, strict, each with one meaning.

Names and arguments are those of JAX's `lax`.  Unlike `plait.numpy`, functions here neither promote
nor broadcast: operands have one dtype and equal shapes, and axes are named.

Linear algebra, special functions and ragged products are found at their first use, like the names
of plugins.

Invariant: functions here apply primitives and `plait._control` only; importing it imports no
compiler, no plugin, and no primitive of another namespace than `core`.
"""

from .._base.tracebacks import explained_calls as _explained_calls
from .._base.wrapping import found_by_name as _found_by_name
from .._control import cond, fori_loop, scan, switch, while_loop
from .._control import map_ as map
from .._control.prefixes import associative_scan
from .._core.axis_names import axis_size
from .._ops.collective import (
    all_gather,
    all_to_all,
    axis_index,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)
from .._ops.convolution import ConvDims as ConvDimensionNumbers
from .._ops.convolution import (
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
)
from .._ops.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
)
from .._ops.fourier import FftType, fft
from .._ops.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from .._ops.ragged_exchange import ragged_all_to_all
from .._ops.scattering import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from .._ops.windows import select_and_scatter_add
from .._plugins.metadata import additions as _additions
from . import contractions, convolutions, elementwise, reductions, structure
from .composites import composite
from .contractions import *
from .convolutions import *
from .creation import broadcasted_iota, empty, full, full_like, iota, shape_as_value
from .elementwise import *
from .gathering import index_take, scatter_apply
from .generator import RandomAlgorithm, rng_bit_generator
from .operands import AccuracyMode, Tolerance
from .platforms import platform_dependent
from .reductions import *
from .selection import clamp, select, select_n, stop_gradient
from .slices import concatenate, pad, slice, slice_in_dim, split, stack, unstack
from .sorting import approx_max_k, approx_min_k, sort, sort_key_val, top_k
from .structure import *
from .windows import padtype_to_pads, reduce_window, reduce_window_shape_tuple

__all__ = [
    "AccuracyMode", "all_gather", "all_to_all", "approx_max_k", "approx_min_k", "associative_scan",
    "axis_index", "axis_size", "broadcasted_iota", "clamp", "composite", "concatenate", "cond",
    "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_transpose",
    "conv_with_general_padding", "ConvDimensionNumbers", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "fft", "FftType", "fori_loop", "full", "full_like",
    "gather", "GatherDimensionNumbers", "GatherScatterMode", "index_in_dim", "index_take", "iota",
    "map", "pad", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent", "pmax", "pmean",
    "pmin", "ppermute", "pshuffle", "psum", "psum_scatter", "pswapaxes", "ragged_all_to_all",
    "RandomAlgorithm", "reduce_window", "reduce_window_shape_tuple", "rng_bit_generator", "scan",
    "scatter", "scatter_add", "scatter_apply", "scatter_max", "scatter_min", "scatter_mul",
    "scatter_sub", "ScatterDimensionNumbers", "select", "select_and_scatter_add", "select_n",
    "shape_as_value", "slice", "slice_in_dim", "sort", "sort_key_val", "split", "stack",
    "stop_gradient", "switch", "Tolerance", "top_k", "unstack", "while_loop",
]  # fmt: skip
__all__ += contractions.__all__
__all__ += convolutions.__all__
__all__ += elementwise.__all__
__all__ += reductions.__all__
__all__ += structure.__all__

_explained_calls(globals())
_found_by_name(globals())
__getattr__, __dir__ = _additions(globals(), "plait.lax")
