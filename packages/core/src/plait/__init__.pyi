"""The names of `plait`, for editors and type checkers, which can not see those found at run time.

Names of plugins have the types that the plugin gives them, where it is installed.

Invariant: it declares the names in `dir(plait)` with all of the project's plugins installed, and no
others; `tests/typing/test_stubs.py` compares them.
"""

import plait_export as _export
import plait_sharding as _sharding
import plait_sharding.distributed as _distributed
from plait_autodiff import CustomPrimal as CustomPrimal
from plait_autodiff import SymbolicZero as SymbolicZero
from plait_autodiff import check_grads as check_grads
from plait_autodiff import checkpoint as checkpoint
from plait_autodiff import checkpoint_name as checkpoint_name
from plait_autodiff import checkpoint_scan as checkpoint_scan
from plait_autodiff import closure_convert as closure_convert
from plait_autodiff import custom_gradient as custom_gradient
from plait_autodiff import custom_ivjp as custom_ivjp
from plait_autodiff import custom_jvp as custom_jvp
from plait_autodiff import custom_vjp as custom_vjp
from plait_autodiff import fwd_and_bwd as fwd_and_bwd
from plait_autodiff import fwd_laplacian as fwd_laplacian
from plait_autodiff import grad as grad
from plait_autodiff import hessian as hessian
from plait_autodiff import hvp as hvp
from plait_autodiff import implicit_diff as implicit_diff
from plait_autodiff import invertible as invertible
from plait_autodiff import is_adable as is_adable
from plait_autodiff import jacfwd as jacfwd
from plait_autodiff import jacrev as jacrev
from plait_autodiff import jet as jet
from plait_autodiff import jvp as jvp
from plait_autodiff import linear_transpose as linear_transpose
from plait_autodiff import linearize as linearize
from plait_autodiff import print_saved_residuals as print_saved_residuals
from plait_autodiff import register_adable as register_adable
from plait_autodiff import saved_residuals as saved_residuals
from plait_autodiff import unregister_adable as unregister_adable
from plait_autodiff import value_and_grad as value_and_grad
from plait_autodiff import vhp as vhp
from plait_autodiff import vjp as vjp
from plait_autodiff.rematerialisation import policies as _policies
from plait_batching import custom_vmap as custom_vmap
from plait_batching import is_vmappable as is_vmappable
from plait_batching import register_vmappable as register_vmappable
from plait_batching import sequential_vmap as sequential_vmap
from plait_batching import unregister_vmappable as unregister_vmappable
from plait_batching import vmap as vmap
from plait_batching import vtile as vtile
from plait_batching.piles import Pile as Pile
from plait_batching.piles import mask as mask
from plait_batching.piles import pile_axis as pile_axis
from plait_sharding import Mesh as Mesh
from plait_sharding import NamedSharding as NamedSharding
from plait_sharding import P as P
from plait_sharding import PartitionSpec as PartitionSpec
from plait_sharding import Shard as Shard
from plait_sharding import SingleDeviceSharding as SingleDeviceSharding
from plait_sharding import device_put as device_put
from plait_sharding import make_array_from_callback as make_array_from_callback
from plait_sharding import make_array_from_process_local_data as make_array_from_process_local_data
from plait_sharding import (
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from plait_sharding import make_mesh as make_mesh
from plait_sharding import pmap as pmap
from plait_sharding import set_mesh as set_mesh
from plait_sharding import shard_map as shard_map
from plait_sharding import with_sharding_constraint as with_sharding_constraint
from plait_sharding import xmap as xmap
from plait_state import Ref as Ref
from plait_state import empty_ref as empty_ref
from plait_state import free_ref as free_ref
from plait_state import freeze as freeze
from plait_state import new_ref as new_ref

from . import checks as checks
from . import debug as debug
from . import dtypes as dtypes
from . import errors as errors
from . import events as events
from . import ext as ext
from . import ffi as ffi
from . import flatten_util as flatten_util
from . import image as image
from . import lax as lax
from . import nn as nn
from . import numpy as numpy
from . import ops as ops
from . import random as random
from . import scipy as scipy
from . import stages as stages
from . import testing as testing
from . import text as text
from . import tree as tree
from . import tree_util as tree_util
from . import typing as typing
from ._api.blocks import check_tracer_leaks as check_tracer_leaks
from ._api.blocks import checking_leaks as checking_leaks
from ._api.blocks import debug_infs as debug_infs
from ._api.blocks import debug_key_reuse as debug_key_reuse
from ._api.blocks import debug_nans as debug_nans
from ._api.blocks import default_matmul_precision as default_matmul_precision
from ._api.blocks import default_prng_impl as default_prng_impl
from ._api.blocks import enable_checks as enable_checks
from ._api.blocks import enable_x64 as enable_x64
from ._api.blocks import ensure_compile_time_eval as ensure_compile_time_eval
from ._api.blocks import explain_cache_misses as explain_cache_misses
from ._api.blocks import log_compiles as log_compiles
from ._api.blocks import numpy_dtype_promotion as numpy_dtype_promotion
from ._api.blocks import numpy_rank_promotion as numpy_rank_promotion
from ._api.default_devices import default_device as default_device
from ._api.hardware import Device as Device
from ._api.hardware import block_until_ready as block_until_ready
from ._api.hardware import clear_caches as clear_caches
from ._api.hardware import copy_to_host_async as copy_to_host_async
from ._api.hardware import default_backend as default_backend
from ._api.hardware import device_count as device_count
from ._api.hardware import device_get as device_get
from ._api.hardware import devices as devices
from ._api.hardware import effects_barrier as effects_barrier
from ._api.hardware import host_count as host_count
from ._api.hardware import host_id as host_id
from ._api.hardware import host_ids as host_ids
from ._api.hardware import live_arrays as live_arrays
from ._api.hardware import local_device_count as local_device_count
from ._api.hardware import local_devices as local_devices
from ._api.hardware import print_environment_info as print_environment_info
from ._api.hardware import process_count as process_count
from ._api.hardware import process_index as process_index
from ._api.hardware import process_indices as process_indices
from ._api.program_passes import reroll as reroll
from ._api.scopes import named_call as named_call
from ._api.scopes import named_scope as named_scope
from ._base.config import config as config
from ._base.errors import PlaitError as PlaitError
from ._control import map_axes as map_axes
from ._control.stepping import disable_jit as disable_jit
from ._jit.jittable import is_jittable as is_jittable
from ._jit.jittable import register_jittable as register_jittable
from ._jit.jittable import unregister_jittable as unregister_jittable
from ._jit.jitted import jit as jit
from ._jit.programs import make_program as make_program
from ._jit.shapes import ShapeDtypeStruct as ShapeDtypeStruct
from ._jit.shapes import typeof as typeof
from ._jit.tracing import eval_shape as eval_shape
from ._ops.callbacks import io_callback as io_callback
from ._ops.callbacks import pure_callback as pure_callback
from ._types.avals import float0 as float0
from ._types.dims import Dim as Dim
from ._types.dims import Scope as Scope
from ._types.dims import symbolic_dims as symbolic_dims
from .typing import Array as Array

checkpoint_policies = _policies
distributed = _distributed
export = _export
jacobian = jacrev
make_jaxpr = make_program
remat = checkpoint
sharding = _sharding

__all__: list[str]
__version__: str
