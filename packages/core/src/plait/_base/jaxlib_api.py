"""The one door to jaxlib.

Everything Plait asks of jaxlib is asked here, and the differences between its releases end here.
Functions are thin; buffers (`ArrayImpl`) that they return never leave `plait._core.array.Array`.

Invariant: no other module imports jaxlib.  Of its process-wide switches we set the one that lets
tracebacks be taken, and those that `hosted` names, which jax sets anew when it is imported; so
`jax` may live in the same process.
"""

import ctypes
import gc
import importlib.util
import io
import operator
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from threading import RLock
from types import SimpleNamespace
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # read once, when jaxlib is loaded

import ml_dtypes  # noqa: E402  (a dependency of jaxlib, reached through this door too)
import numpy as np  # noqa: E402
from jaxlib import _jax, xla_client  # noqa: E402  # type: ignore[attr-defined]
from jaxlib import version as _jaxlib_version  # noqa: E402

try:
    from jaxlib import _hlo  # type: ignore[attr-defined]
except ImportError:  # before 0.10 these lived in _jax
    _hlo = _jax

from . import jax_coexistence  # noqa: E402
from .pjrt_plugins import GPUS, Plugin, companions, extension_modules  # noqa: E402

JAXLIB_VERSION = _jaxlib_version.__version__
JAXLIB_FOLDER = os.path.dirname(os.path.abspath(_jaxlib_version.__file__))

# ---- source locations ----------------------------------------------------------------------

if hasattr(_jax, "set_tracebacks_enabled"):
    _jax.set_tracebacks_enabled(True)
else:
    _jax.Traceback.enabled = True

take_traceback = _jax.Traceback.get_traceback
"""An opaque token for the Python stack as it is now; 0.3 us."""

# ---- trees ---------------------------------------------------------------------------------

pytree = _jax.pytree


def new_registry():
    """Return a new pytree registry: nothing is ever registered in anybody else's."""
    return pytree.PyTreeRegistry(
        enable_none=True,
        enable_tuple=True,
        enable_namedtuple=True,
        enable_list=True,
        enable_dict=True,
    )


# ---- dtypes numpy lacks --------------------------------------------------------------------

EXTRA_DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        "bfloat16",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
        "int4",
        "uint4",
    )
    if hasattr(ml_dtypes, name)
}


def limits(dtype: np.dtype) -> tuple:
    """Return (least, greatest) of the finite values of a real dtype: ints, scalars of the floating
    dtype, or (False, True)."""
    if dtype == bool:
        return False, True
    info = (ml_dtypes.iinfo if "int" in dtype.name else ml_dtypes.finfo)(dtype)
    return info.min, info.max


# ---- life beside jax -----------------------------------------------------------------------


@cache
def guard_jax() -> None:
    """Prepare jaxlib for a later `import jax` in this process, once.

    jaxlib freezes two tables from Python types to handlers at the first conversion of a host
    value, and knows jax's typed scalars in them only if jax came first.  Placeholders registered
    now, which become bases of jax's classes when it defines them, are found by the MRO.
    """
    if jax_coexistence.LITERALS in sys.modules or not hasattr(_jax, "set_typed_int_type"):
        return
    if importlib.util.find_spec("jax") is None:
        return
    importlib.import_module("jaxlib.weakref_lru_cache")  # the ndarray setter needs it loaded
    _jax.set_typed_int_type(jax_coexistence.Int)
    _jax.set_typed_float_type(jax_coexistence.Float)
    _jax.set_typed_complex_type(jax_coexistence.Complex)
    _jax.set_typed_ndarray_type(jax_coexistence.Ndarray)
    sys.meta_path.insert(0, jax_coexistence.Finder())


# ---- devices, buffers, executables ---------------------------------------------------------

lock = RLock()
"""Held while a module is built (one MLIR context serves the process) and a client is made."""

COPY_NOW = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
ALIAS = _jax.HostBufferSemantics.ZERO_COPY
RuntimeFailure: type[Exception] = (
    xla_client.XlaRuntimeError if hasattr(xla_client, "XlaRuntimeError") else (_jax.JaxRuntimeError)
)
_SKIP_CHECKS = (True,) if "_skip_checks" in (_jax.array_result_handler.__doc__ or "") else ()
_put = _jax.batched_device_put


@cache
def _let_go() -> None:
    """Let what the runtime holds be collected with Python's garbage.

    It keeps a numpy array that it has read until it is asked next, for its threads may not touch
    Python's objects: the last one that was given to it would stay for ever.
    """
    gc.callbacks.append(_collected)


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:  # the young are collected often
        _jax.collect_garbage()


def make_cpu_client(num_devices: int, **world: Any):
    """Return a new CPU client with `num_devices` virtual devices; `world` are the arguments by
    which it takes part in several (`distributed_client`, `node_id`, `num_nodes`, `collectives`)."""
    guard_jax()
    _let_go()
    return xla_client.make_cpu_client(num_devices=num_devices, **world)


_plugin_clients: dict[Plugin, Any] = {}


def make_plugin_client(plugin: Plugin, distributed_client: Any = None, **world: Any):
    """Return the client of a platform whose library a plugin brings, once.

    `world` are options by which it takes part in several (`node_id`, `num_nodes`,
    `visible_devices`).  Raises RuntimeFailure where the library finds no device, or can not be
    loaded.
    """
    if plugin not in _plugin_clients:
        _plugin_clients[plugin] = _plugin_client(plugin, distributed_client, world)
    return _plugin_clients[plugin]


def _plugin_client(plugin: Plugin, distributed_client: Any, world: dict[str, Any]):
    guard_jax()
    _let_go()
    name = plugin.platform
    if not xla_client.pjrt_plugin_loaded(name):
        _library(plugin)
    options: dict[str, Any] = {}
    if name in GPUS:
        options = {**xla_client.generate_pjrt_gpu_plugin_options(), "platform_name": name}
    return xla_client.make_c_api_client(name, options | world, distributed_client)


@cache
def _library(plugin: Plugin) -> Any:
    """Load the library of a platform, and return its interface of C."""
    name = plugin.platform
    if name == "cuda":
        _preload(companions())
    if xla_client.pjrt_plugin_loaded(name):  # by jax, for instance, which keeps the interface
        raise RuntimeFailure(f"another package of this process has loaded the library of {name}")
    api = xla_client.load_pjrt_plugin_dynamically(name, plugin.library)
    xla_client.initialize_pjrt_plugin(name)
    if plugin.extension is not None:
        _register_extension(plugin.extension, name, api)
    return api


# ---- devices that are not here ---------------------------------------------------------------


def devices_of_topology(plugin: Plugin, name: str, options: dict[str, Any]) -> tuple:
    """Return devices for which the library of a platform compiles, and of which none need be here.

    `name` and `options` say which, in the words of the library.  Raises RuntimeFailure for what it
    does not know.
    """
    guard_jax()
    if plugin.platform == "tpu":
        # else it asks the cloud for minutes which TPU this machine has
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    made = xla_client.make_c_api_device_topology(_library(plugin), name, **options)
    return tuple(made._make_compile_only_devices())


def compile_for(devices, code: bytes, options):
    """Compile StableHLO bytecode for devices of a topology, and return what the compiler made: an
    executable that can be looked at, and not called."""
    if b"hybrid_" in code:
        prepare_hybrids()
    module = mlir().ir.Module.parse(code, new_context())
    return devices[0].client.compile(module, device_list(devices), options)


def cost_of_compiled(client: Any, executable) -> dict[str, float]:
    """Return what a compiled program costs: by its runtime, or by that of `client` if that has no
    estimate."""
    try:
        return executable.cost_analysis()
    except RuntimeFailure:
        (module,) = executable.hlo_modules()
        return _jax.hlo_module_cost_analysis(client, module)


# ---- several processes -----------------------------------------------------------------------

_NEVER = 24 * 3600
"""Seconds of silence after which jaxlib ends a process: who is silent is found out elsewhere."""


def distributed_service(address: str, processes: int, patience: int):
    """Return the service by which the runtimes of several processes find each other.

    It listens at `address` until its `shutdown()`.  That process is aborted whose service ends
    before itself, so it lives in a process of its own.  Raises RuntimeFailure if it can not listen.
    """
    return _jax.get_distributed_runtime_service(
        address,
        processes,
        heartbeat_timeout=_NEVER,
        cluster_register_timeout=patience,
        shutdown_timeout=5,
        recoverable=True,
    )


def distributed_client(address: str, index: int, patience: int):
    """Return this process's connection to such a service, connected.

    The process is aborted if nobody listens at the address: look before.
    """
    made = _jax.get_distributed_runtime_client(
        address,
        index,
        init_timeout=patience,
        heartbeat_timeout=_NEVER,
        shutdown_timeout=5,
        shutdown_on_destruction=False,
        use_compression=True,
    )
    made.connect()
    return made


def gloo(client: Any, hostname: str):
    """Return the collectives between CPUs of several processes, by TCP; `hostname` is the address
    of this machine that the others know."""
    return _jax.make_gloo_tcp_collectives(client, hostname=hostname)


def _preload(libraries: list[str]) -> None:
    """Load libraries, so that who looks for them by name finds them; those that can not be loaded
    need one that comes later, or are not needed."""
    left = libraries
    while left:
        missing = [path for path in left if not _loaded(path)]
        if len(missing) == len(left):
            return
        left = missing


def _loaded(path: str) -> bool:
    """Whether a library can be loaded."""
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True


def _register_extension(extension: str, platform: str, api: Any) -> None:
    """Register the foreign functions of a platform (its linear algebra), which lie in modules of C
    in the package `extension`."""
    name = GPUS[platform]
    of, *modules = extension_modules(extension, platform)
    register = xla_client.register_custom_call_handler, xla_client.register_custom_type_handler
    register[0](name, partial(of.register_custom_call_target, api))
    register[1](name, partial(of.register_custom_type, api))
    for kind, identity in of.ffi_types().items():
        xla_client.register_custom_type(kind, identity, platform=name)
    handlers = of.ffi_handlers()
    _hybrids.extend(m for m in modules if hasattr(m, "initialize"))
    for table in (handlers, *(m.registrations() for m in modules)):
        for target, fn in table.items():
            xla_client.register_custom_call_target(target, fn, platform=name, api_version=1)


def device_list(devices):
    """Return jaxlib's object for a sequence of devices, whose order counts."""
    return _jax.DeviceList(tuple(devices))


def layout(devices, tiling: str):
    """Return jaxlib's object for how an array lies on a device list.

    `tiling` is text as HloSharding prints it, such as "{replicated}" or "{devices=[2,1]<=[2]}".
    """
    return _jax.GSPMDSharding(devices, _hlo.HloSharding.from_string(tiling))


def tiles(sharding) -> tuple | None:
    """Return (how many tiles each axis has, and after these how many copies; the numbers of the
    devices in the order of the tiles); None if every device has the whole array.

    `sharding` is an HloSharding or None.
    """
    if sharding is None or sharding.is_replicated():
        return None
    dims = tuple(sharding.tile_assignment_dimensions())
    return dims, tuple(sharding.tile_assignment_devices())


def parsed_tiling(x) -> Any:
    """Return the HloSharding that a text, an OpSharding or an HloSharding is; None for others.

    Raises what the runtime raises for text that it does not understand.
    """
    if isinstance(x, str):
        return _hlo.HloSharding.from_string(x)
    if isinstance(x, _hlo.OpSharding):
        return _hlo.HloSharding.from_proto(x)
    return x if isinstance(x, _hlo.HloSharding) else None


def hlo_sharding(layout_):
    """Return the HloSharding inside a layout; None for the runtime's own layout of what is on one
    device, as the pieces of an array have it."""
    return getattr(layout_, "_hlo_sharding", None)


def put_pieces(aval, layout_, pieces, devices):
    """Copy one numpy array to each device, and return the buffer that consists of them.

    The numpy arrays may be written to afterwards.
    """
    return _put(aval, layout_, pieces, devices, True, False, COPY_NOW, True)


def share_piece(aval, layout_, pieces, devices):
    """Return a buffer in the memory of numpy arrays (one per device), which it keeps alive.

    It is a copy if that memory is not contiguous, or not aligned as the device wants it.
    """
    return _put(aval, layout_, pieces, devices, True, False, ALIAS, True)


def assembled(aval, layout_, pieces):
    """Return the buffer that consists of buffers on one device each, without copying them."""
    return _jax.ArrayImpl(aval, layout_, pieces, True, True)


def result_handler(aval, layout_):
    """Return the handler that makes buffers of what an executable returns.

    Buffers get the type `aval`, which jaxlib does not check.
    """
    return _jax.array_result_handler(aval, layout_, True, *_SKIP_CHECKS)


def copy_to(buf, devices, layout_):
    """Copy a buffer to other devices, not by way of the host, and return the copy."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buf], [devices], [layout_], [_jax.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


_EXACT = {"xla_allow_excess_precision": False}


def compile_options(device_ids, partitioned: bool, overrides=(), chosen=(), without: str = ""):
    """Return the options for compiling one program.

    Args:
      device_ids: numbers of the devices that run it.
      partitioned: whether the compiler divides it over these devices (by Shardy).
      overrides: pairs of a name and a value of XLA's own flags.
      chosen: of each argument whether the compiler may divide it as it likes; none if empty.
      without: names of passes to leave out, by commas.
    """
    options = xla_client.CompileOptions()
    # Else what is float16 or bfloat16 stays, unrounded, in the float32 that it is computed in.
    options.env_option_overrides = list((_EXACT | dict(overrides)).items())
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = len(device_ids)
    if partitioned:
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        build.allow_spmd_sharding_propagation_to_output = [True]
        if chosen:
            build.allow_spmd_sharding_propagation_to_parameters = list(chosen)
    if without and hasattr(build.debug_options, "xla_disable_hlo_passes"):
        kept = build.debug_options.xla_disable_hlo_passes
        build.debug_options.xla_disable_hlo_passes = ",".join(filter(None, (kept, without)))
    ids = np.array([list(device_ids)], np.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    return options


def load(client, code: bytes, devices, options, callbacks=()):
    """Compile StableHLO bytecode for a device list, and return the loaded executable.

    `callbacks` are Python functions that the program calls.  Raises what the compiler raises
    (`RuntimeFailure`).
    """
    if b"lapack_" in code:
        register_lapack()
    if b"hybrid_" in code:
        prepare_hybrids()
    if not callbacks:
        return client.compile_and_load(code, devices, options)
    module = mlir().ir.Module.parse(code, new_context())  # callbacks go with parsed modules only
    return client.compile_and_load(module, devices, options, host_callbacks=list(callbacks))


_FAST = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
_lacking: set[str] = set()
"""Flags of these that this release does not have: newer ones have no second kind of emitters."""


def fast_flags(platform: str, has_one_zero: bool = False) -> dict[str, Any]:
    """Return flags with which the compiler takes little time: a dictionary of values by name.

    With numbers that have one zero the other emitters would make a nan, which has the bits of a
    negative zero, of what is negative and rounded to zero.
    """
    of_cpu = "xla_cpu_"
    there = {k: v for k, v in _FAST.items() if k not in _lacking}
    if has_one_zero:
        there.pop("xla_cpu_use_fusion_emitters", None)
    return {k: v for k, v in there.items() if platform == "cpu" or not k.startswith(of_cpu)}


def lacks_fast_flag(error: Exception, given: dict[str, Any]) -> bool:
    """Return whether a compilation with these `fast_flags` failed because this release of jaxlib
    has not one of them, which they are without from then on.

    Several threads may find that out at once: each has been given it, and tries again.
    """
    said = str(error)
    lacking = [name for name in given if "No such compile option" in said and f"'{name}'" in said]
    _lacking.update(lacking)
    return bool(lacking)


def load_again(client, data: bytes, code: bytes, devices, options):
    """Return the loaded executable whose `serialize` gave these bytes, for a device list.

    `code` is what it was compiled of.  Raises what the runtime raises (`RuntimeFailure`).
    """
    if b"lapack_" in code:
        register_lapack()
    return client.deserialize_executable(data, devices, options)


def options_bytes(options) -> bytes:
    """Return compile options as bytes, with the flags of the process as the compiler reads them."""
    return options.SerializeAsString()


def processor(devices) -> int:
    """Return a number that tells apart the kinds of machines that these devices belong to."""
    return _jax.get_topology_for_devices(list(devices)).fingerprint()


@cache
def register_lapack() -> None:
    """Register LAPACK's functions with the CPU runtime, once, by the names `lapack_..._ffi`.

    It is scipy's, which jaxlib depends on; to load it takes 0.4 s, hence the first program that
    calls it does.
    """
    from jaxlib.cpu import _lapack

    _lapack.initialize()
    divisible = getattr(xla_client, "register_custom_call_as_batch_partitionable", None)
    for name, target in _lapack.registrations().items():
        if name.endswith("_ffi"):
            xla_client.register_custom_call_target(name, target, platform="cpu", api_version=1)
            if divisible is not None:
                divisible(name)


_hybrids: list[Any] = []
"""Modules whose functions compute on the host for a GPU."""


@cache
def prepare_hybrids() -> None:
    """Let what computes on the host for a GPU find LAPACK, once; see `register_lapack`."""
    for module in _hybrids:
        module.initialize()


def register_target(name: str, fn, platform: str, api_version: int) -> None:
    """Register a foreign function, given as a capsule, with the runtime of a platform ("cpu",
    "cuda", "rocm"); `api_version` says how the runtime calls it."""
    xla_client.register_custom_call_target(
        name, fn, platform=GPUS.get(platform, platform), api_version=api_version
    )


def capsule(symbol):
    """Return a Python capsule of the address of a `ctypes` function."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    return make(ctypes.cast(symbol, ctypes.c_void_p), None, None)


def headers() -> str:
    """Return the path of the folder with XLA's C++ headers for foreign functions."""
    return os.path.join(os.path.dirname(_jax.__file__), "include")


@cache
def register_inspector(name: str, answer: Callable[[bytes, Any], str]) -> None:
    """Register what the compiler asks when it divides a program that calls `name`, once.

    `answer(config, sharding)` is given the text of the call and the HloSharding of its only
    operand, and returns the text of a module that is put there instead.
    """

    def divide(shapes, shardings, result, result_sharding, config):
        module = mlir().ir.Module.parse(answer(config, shardings[0]), new_context())
        code = io.BytesIO()
        module.operation.write_bytecode(code)
        return code.getvalue(), shardings, result_sharding

    def first(shapes, shardings, result, config):
        return shardings[0]

    def same(sharding, shape, config):
        return sharding

    _jax.register_custom_call_partitioner(name, same, divide, first, True)


def executable_of(run: Any) -> Any:
    """Return the executable whose bound method `run` is; None if `run` is something else."""
    itself = getattr(run, "__self__", None)
    return itself if isinstance(itself, _jax.LoadedExecutable) else None


def output_shardings(executable) -> list:
    """Return the HloShardings that the compiler chose for the results, in order; an empty list if
    it divided nothing."""
    return [_hlo.HloSharding.from_proto(p) for p in executable.get_output_shardings() or []]


def parameter_shardings(executable) -> list:
    """Return the HloShardings of the arguments, in order, as `output_shardings` does."""
    return [_hlo.HloSharding.from_proto(p) for p in executable.get_parameter_shardings() or []]


_BETWEEN_DEVICES = (b"all-", b"reduce-scatter", b"collective-", b"send", b"recv")
"""How the names of operations begin for which devices meet."""


def meets(executable) -> bool:
    """Return whether devices may wait for one another within a run: an operation says so, or a name
    that looks like one."""
    code = [m.as_serialized_hlo_module_proto() for m in executable.hlo_modules()]
    return any(name in c for c in code for name in _BETWEEN_DEVICES)


def dlpack_capsule(buf, **kw):
    """Return a DLPack capsule that shares the buffer's memory; `kw` are jaxlib's options."""
    return _jax.buffer_to_dlpack_managed_tensor(buf, **kw)


def dlpack_import(x: Any, device: Any):
    """Return a buffer on an accelerator in the memory of `x`, which speaks the DLPack protocol and
    lies on that device; what computes it is waited for on the device."""
    stream = device.get_stream_for_external_ready_events()
    return _jax.dlpack_managed_tensor_to_buffer(x.__dlpack__(stream=stream), device, stream)


# ---- calls with numpy arrays ---------------------------------------------------------------


class _Built:
    """A node that jaxlib puts together from buffers of results, by calling `build`."""

    def __init__(self, build, n: int):
        self.build, self.n = build, n


class _Hosted(NamedTuple):
    """All that jaxlib needs to know of an executable to run it without calling Python."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: list
    out_shardings: list
    out_avals: list
    out_committed: list
    kept_var_bitvec: list
    in_device_local_layouts: list
    const_args: list


@cache
def _hosting() -> tuple:
    """Return (registry, cache) of all functions that `hosted` makes, and give the switches values.

    jaxlib asks for three switches, which it has no values for until somebody gives them: whether
    compilation is off, whether 64-bit values are kept, what to call afterwards.  Whoever imports
    jax gives them other values, and from then on `versions` does without such calls.
    """
    of = _jax.config.Config
    _jax.jax_jit.set_disable_jit_state(of("plait_disable_jit", False))
    _jax.jax_jit.set_enable_x64_state(of("plait_enable_x64", True))
    _jax.jax_jit.set_post_hook_state(of("plait_post_hook", None))
    registry = new_registry()
    registry.register_node(_Built, lambda b: ([0] * b.n, b.build), operator.call)
    return registry, _jax.PjitFunctionCache(4096)


def hosted(miss: Callable[..., tuple[Any, Any, bool]]) -> Callable[..., Any]:
    """Return a function of buffers and numpy arrays whose known calls jaxlib runs by itself.

    For unknown ones it calls `miss(*operands) -> (results, entry, False)`, where the entry is made
    by `hosted_entry`, or is None if jaxlib must ask again next time.

    The runtime reads the memory of aligned numpy arrays in place, and may read that of others
    after the call has returned: callers give it copies of what its owner may write to.
    """
    registry, kept = _hosting()
    return _jax.pjit("f", miss, miss, [], [], object(), registry, _no_such_argument, kept)


def hosted_entry(
    executable: Any, layout_: Any, n: int, keys: list[Any], build: Callable[[list[Any]], Any]
) -> Any:
    """Return what tells jaxlib how to run an executable with `n` operands; `build` makes the
    results, given their buffers."""
    registry, _ = _hosting()
    m = len(keys)
    return _Hosted(
        executable,
        registry.flatten(_Built(build, m))[1],
        [layout_] * n,
        [layout_] * m,
        [k.aval.physical for k in keys],
        [True] * m,
        [True] * n,
        [None] * n,
        [],
    )


def _no_such_argument(*args):
    raise TypeError("an argument is neither a buffer nor a numpy array")


# ---- StableHLO -----------------------------------------------------------------------------


@cache
def mlir() -> SimpleNamespace:
    """Return jaxlib's MLIR bindings: a namespace of the modules `ir`, `extension`, and dialects.

    They are imported when first asked for, at the first compilation, since that takes 20 ms.  Of
    dialects of which operations are made by name, their extension modules are enough: a Python
    class for each operation takes 5 ms a dialect.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _chlo as chlo
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext as extension
    from jaxlib.mlir._mlir_libs import _sdy as sdy
    from jaxlib.mlir._mlir_libs import _stablehlo as stablehlo
    from jaxlib.mlir.dialects import func

    return SimpleNamespace(
        ir=ir, extension=extension, chlo=chlo, func=func, sdy=sdy, stablehlo=stablehlo
    )


def new_context():
    """Return a new MLIR context with the dialects that we write: for one thread at a time."""
    m = mlir()
    context = m.ir.Context()
    context.enable_multithreading(False)
    registry = m.ir.DialectRegistry()
    m.extension.register_dialects(registry)
    context.append_dialect_registry(registry)
    for dialect in (m.chlo, m.stablehlo, m.sdy):
        dialect.register_dialect(context)
    for name in ("func", "sdy"):  # Operation.create does not load dialects by itself
        context.get_dialect_descriptor(name)
    return context


def location_cache(is_ours, context):
    """Return a cache that turns tokens of `take_traceback` into MLIR locations.

    Frames for whose file `is_ours(name)` is true are left out.
    """
    return mlir().extension.TracebackToLocationCache(
        code_to_filename=lambda code: None if is_ours(code.co_filename) else code.co_filename,
        frame_limit=8,
        context=context,
    )


def refine_shapes(code: bytes) -> bytes:
    """Infer all shapes of a module from the static ones of `main`; return its bytecode."""
    return _jax.mlir.refine_polymorphic_shapes(
        mlir_module=code,
        enable_shape_assertions=True,
        validate_static_shapes=True,
        enable_shardy=True,
    )


def portable_artifact(module, version: str, divided: bool = False) -> bytes:
    """Serialise a module for readers of a version of StableHLO ("1.9.3"); return the bytes.

    Shardy's operations stay what they are in one that is `divided`, and become calls that the
    compiler alone understands in another.  The module is left as it is.
    """
    return _jax.mlir.serialize_portable_artifact(module, version, divided)


def load_portable_artifact(artifact: bytes, context):
    """Read a portable artifact in an MLIR context, and return its module."""
    return mlir().stablehlo.deserialize_portable_artifact(context, artifact)


def stablehlo_version(requirement: str = "WEEK_12") -> str:
    """Return the newest version of StableHLO that readers of some age understand.

    `requirement` names the age: "WEEK_4", "WEEK_12", or "NONE" for the version of today.
    """
    from jaxlib.mlir._mlir_libs import _stablehlo

    which = getattr(_stablehlo.StablehloCompatibilityRequirement, requirement)
    return _stablehlo.get_version_from_compatibility_requirement(which)


def hlo_text(executable) -> str:
    """Return the optimised HLO of a loaded executable, as text."""
    return "\n".join(m.to_string() for m in executable.hlo_modules())


def hlo_of(code: bytes) -> str:
    """Return the HLO of a StableHLO module (bytecode), before anything is optimised, as text."""
    return computation_of(code).as_hlo_text()


def computation_of(code: bytes) -> Any:
    """Return a StableHLO module (bytecode) as a computation of XLA's, before anything is
    optimised."""
    return _jax.mlir.mlir_module_to_xla_computation(code, use_tuple_args=False, return_tuple=False)


def cost_of(client: Any, code: bytes) -> dict[str, float]:
    """Return what a StableHLO module costs, by the runtime's estimate before anything is
    optimised."""
    return _jax.hlo_module_cost_analysis(client, computation_of(code).get_hlo_module())
