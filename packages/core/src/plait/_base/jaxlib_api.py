"""The only interface to jaxlib.

All calls of jaxlib are made here, and the differences between its releases are handled here.
Functions are thin; buffers (`ArrayImpl`) that they return never leave `plait._core.array.Array`.

Invariant: no other module imports jaxlib.  Of its process-wide switches this module sets the one
that enables tracebacks, and those that `hosted` names, which jax sets anew when it is imported. So
`jax` may live in the same process.
"""

import ctypes
import gc
import importlib.util
import io
import operator
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

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

if TYPE_CHECKING:  # jaxlib's MLIR is imported at the first compilation
    from typing import TypeAlias

    from jaxlib.mlir import ir as _ir
    from jaxlib.mlir.ir import Block as IrBlock
    from jaxlib.mlir.ir import Module as IrModule
    from jaxlib.mlir.ir import Operation as IrOperation
    from jaxlib.mlir.ir import Type as IrType

    IrValue: TypeAlias = _ir.Value[Any]
else:
    IrBlock = IrModule = IrOperation = IrType = IrValue = object

JAXLIB_VERSION = _jaxlib_version.__version__
JAXLIB_FOLDER = os.path.dirname(os.path.abspath(_jaxlib_version.__file__))

# ---- source locations ----------------------------------------------------------------------

if hasattr(_jax, "set_tracebacks_enabled"):
    _jax.set_tracebacks_enabled(True)
else:
    _jax.Traceback.enabled = True

take_traceback = _jax.Traceback.get_traceback
"""Return an opaque token for the current Python stack; takes 0.3 us."""

# ---- trees ---------------------------------------------------------------------------------

pytree = _jax.pytree


def new_registry():
    """Return a new pytree registry; Plait registers nothing in the registries of other
    libraries."""
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

    jaxlib freezes two tables from Python types to handlers at the first conversion of a host value.
    They contain jax's typed scalars only if jax was imported first.  Placeholders are registered
    now, and become bases of jax's classes when it defines them, so the tables find them by the MRO.
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
    """Have the runtime release numpy arrays in full garbage collections of Python.

    The runtime keeps an array that it has read until its next call, since its threads may not touch
    Python's objects.  The last array would otherwise stay for ever.
    """
    gc.callbacks.append(_collected)


def _collected(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:  # younger ones are too frequent
        _jax.collect_garbage()


def make_cpu_client(num_devices: int, **world: Any):
    """Return a new CPU client with `num_devices` virtual devices.

    `world` are its options as one of several processes (`distributed_client`, `node_id`,
    `num_nodes`, `collectives`).
    """
    guard_jax()
    _let_go()
    with _threads(num_devices):
        return xla_client.make_cpu_client(num_devices=num_devices, **world)


@cache
def processors() -> int:
    """Return the number of processors that this process may use; the runtime counts once, too."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _threads(num_devices: int) -> Iterator[None]:
    """Give the pool of a new CPU client a thread that is left if each device's kernel waits.

    The runtime takes the number of threads from a variable of the process.
    """
    name = "PJRT_NPROC"
    if num_devices < 2 or not HAS_KERNELS_THAT_WAIT or name in os.environ:
        yield
        return
    os.environ[name] = str(max(num_devices + 1, processors()))
    try:
        yield
    finally:
        del os.environ[name]


_plugin_clients: dict[Plugin, Any] = {}


def make_plugin_client(plugin: Plugin, distributed_client: Any = None, **world: object):
    """Return the client of a platform, from the library of its plugin; one client per plugin.

    `world` are its options as one of several processes (`node_id`, `num_nodes`, `visible_devices`).
    Raises RuntimeFailure if the library finds no device, or cannot be loaded.
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
    """Load the library of a platform, and return its C interface."""
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
    """Return devices that the library of a platform compiles for; none of them need be here.

    `name` and `options` are the library's own description of them.  Raises RuntimeFailure if the
    library does not have such devices.
    """
    guard_jax()
    if plugin.platform == "tpu":
        # Otherwise the library queries the cloud metadata for minutes to find this machine's TPU.
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    made = xla_client.make_c_api_device_topology(_library(plugin), name, **options)
    return tuple(made._make_compile_only_devices())


def compile_for(devices, code: bytes, options):
    """Compile StableHLO bytecode for devices of a topology.

    Return an executable that can be inspected, but not called.
    """
    if b"hybrid_" in code:
        prepare_hybrids()
    module = mlir().ir.Module.parse(code, new_context())
    return devices[0].client.compile(module, device_list(devices), options)


def cost_of_compiled(client: object, executable) -> dict[str, float]:
    """Return the estimated costs of a compiled program, by its runtime, or by that of `client` if
    its own has no estimate."""
    try:
        return executable.cost_analysis()
    except RuntimeFailure:
        (module,) = executable.hlo_modules()
        return _jax.hlo_module_cost_analysis(client, module)


# ---- several processes -----------------------------------------------------------------------

_NEVER = 24 * 3600
"""Seconds of silence after which jaxlib ends a process; Plait detects silent processes itself."""


def distributed_service(address: str, processes: int, patience: int):
    """Return the service by which the runtimes of several processes find each other.

    It listens at `address` until its `shutdown()`.  A process whose service ends first is aborted,
    so the service runs in a process of its own.  Raises RuntimeFailure if it cannot listen.
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

    The process is aborted if no service listens at the address, so check that first.
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


def gloo(client: object, hostname: str):
    """Return the collectives between CPUs of several processes, by TCP; `hostname` is the address
    at which the others reach this machine."""
    return _jax.make_gloo_tcp_collectives(client, hostname=hostname)


def _preload(libraries: list[str]) -> None:
    """Load libraries, so that looking them up by name succeeds.

    Libraries that cannot be loaded are tried again after the others, which they may need; those
    that fail again are not needed.
    """
    left = libraries
    while left:
        missing = [path for path in left if not _loaded(path)]
        if len(missing) == len(left):
            return
        left = missing


def _loaded(path: str) -> bool:
    """Load a library; return whether that succeeded."""
    try:
        ctypes.CDLL(path)
    except OSError:
        return False
    return True


def _register_extension(extension: str, platform: str, api: Any) -> None:
    """Register the foreign functions of a platform (its linear algebra) from the C modules in the
    package `extension`."""
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


def device_list(devices: tuple[Any, ...]):
    """Return jaxlib's object for a sequence of devices, whose order counts."""
    return _jax.DeviceList(tuple(devices))


def layout(devices: object, tiling: str):
    """Return jaxlib's object for the layout of an array on a device list.

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
    """Return the HloSharding for a text, an OpSharding or an HloSharding; None for anything else.

    Raises the runtime's own error for text that it cannot parse.
    """
    if isinstance(x, str):
        return _hlo.HloSharding.from_string(x)
    if isinstance(x, _hlo.OpSharding):
        return _hlo.HloSharding.from_proto(x)
    return x if isinstance(x, _hlo.HloSharding) else None


def hlo_sharding(layout_: object):
    """Return the HloSharding inside a layout; None for the runtime's own layout of an array on one
    device, such as a piece."""
    return getattr(layout_, "_hlo_sharding", None)


def put_pieces(
    aval: object, layout_: object, pieces: Sequence[np.generic | np.ndarray], devices: list[Any]
):
    """Copy one numpy array to each device, and return the buffer that consists of them.

    The numpy arrays may be written to afterwards.
    """
    return _put(aval, layout_, pieces, devices, True, False, COPY_NOW, True)


def share_piece(aval: object, layout_: object, pieces: list[np.ndarray], devices: list[Any]):
    """Return a buffer in the memory of numpy arrays (one per device), which it keeps alive.

    It is a copy if that memory is not contiguous, or not aligned for the device.
    """
    return _put(aval, layout_, pieces, devices, True, False, ALIAS, True)


Buffer: Any = _jax.ArrayImpl
"""The class of buffers."""


def assembled(aval: object, layout_: object, pieces: list[Any]):
    """Return the buffer that consists of buffers on one device each, without copying them."""
    return _jax.ArrayImpl(aval, layout_, pieces, True, True)


def result_handler(aval: object, layout_: object):
    """Return the handler that makes buffers of an executable's results.

    Buffers get the type `aval`, which jaxlib does not check.
    """
    return _jax.array_result_handler(aval, layout_, True, *_SKIP_CHECKS)


def copy_to(buf: object, devices: object, layout_: object):
    """Copy a buffer to other devices directly, not through the host, and return the copy."""
    return _jax.batched_copy_array_to_devices_with_sharding(
        [buf], [devices], [layout_], [_jax.ArrayCopySemantics.ALWAYS_COPY]
    )[0]


_EXACT = {"xla_allow_excess_precision": False}


def compile_options(
    device_ids: list[int],
    partitioned: bool,
    overrides: Sequence[tuple[Any, ...]] = (),
    chosen: tuple[bool, ...] = (),
    without: str = "",
):
    """Return the options for compiling one program.

    Args:
      device_ids: numbers of the devices that run it.
        partitioned: True if the compiler (its Shardy pass) divides the program over these devices.
        overrides: pairs of a name and a value of XLA's own flags, or of its efforts and levels.
        chosen: for each argument, True if the compiler may choose its division; empty for none.
        without: names of passes to leave out, separated by commas.
    """
    options = xla_client.CompileOptions()
    # Otherwise values of float16 and bfloat16 are not rounded, and stay in the float32 that they
    # are computed in.
    build, flags = options.executable_build_options, _EXACT | dict(overrides)
    for name in EFFORTS.keys() & flags.keys():
        kind = type(getattr(build, name))  # an enumeration in some releases
        setattr(build, name, kind(EFFORTS[name](flags.pop(name))))
    options.env_option_overrides = list(flags.items())
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


_EFFORTS = {"exec_time_optimization_effort": float, "memory_fitting_effort": float,
            "memory_fitting_level": int, "optimization_level": int}  # fmt: skip
EFFORTS = {k: v for k, v in _EFFORTS.items() if hasattr(_jax.ExecutableBuildOptions, k)}
"""Compiler options that are not flags but fields of the build options, and their types; those that
this release has."""


_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
SHARED_PRODUCTS = {_LIBRARY: ""}
"""Flags of the CPU compiler under which all processors share products and convolutions."""
HAS_PRODUCTS_OF_ONE_THREAD = (
    JAXLIB_VERSION.startswith("0.10.") and _LIBRARY not in os.environ.get("XLA_FLAGS", "")
)  # fmt: skip
"""True if the compiler computes them on one thread without these flags."""


HAS_NEW_VIEWS = not JAXLIB_VERSION.startswith("0.11.")
"""True if a buffer makes a view of its elements at each request.  Releases 0.11 keep the first one
for good, and then no program can take the memory."""

HAS_KERNELS_THAT_WAIT = JAXLIB_VERSION.startswith("0.10.")
"""True if kernels of LAPACK can wait for each other forever (`kernel_order`)."""


_HEAP = "xla_multiheap_size_constraint_per_heap"


def blocks_of_memory(size: int) -> dict[str, int]:
    """Return the flags under which a program takes its memory in blocks of at most `size` bytes.

    They are empty if the variable XLA_FLAGS says how it does.
    """
    return {} if _HEAP in os.environ.get("XLA_FLAGS", "") else {_HEAP: size}


LAPACK = "lapack_"
"""The beginning of the names of LAPACK's kernels."""


def calls_lapack(code: bytes) -> bool:
    """Return whether a module, as bytes, names kernels of LAPACK."""
    return LAPACK.encode() in code


def load(client, code: bytes, devices, options, callbacks: Sequence[Callable[..., Any]] = ()):
    """Compile StableHLO bytecode for a device list, and return the loaded executable.

    `callbacks` are Python functions that the program calls.  Raises the compiler's own error
    (`RuntimeFailure`).
    """
    if calls_lapack(code):
        register_lapack()
    if b"hybrid_" in code:
        prepare_hybrids()
    if not callbacks:
        return client.compile_and_load(code, devices, options)
    module = mlir().ir.Module.parse(code, new_context())  # callbacks go with parsed modules only
    return client.compile_and_load(module, devices, options, host_callbacks=list(callbacks))


_FAST = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
_lacking: set[str] = set()
"""The flags of _FAST that this release lacks: newer ones have no second kind of emitters."""


def fast_flags(platform: str, has_one_zero: bool = False) -> dict[str, Any]:
    """Return {name: value} of compiler flags for short compile times.

    For dtypes with a single zero the other emitters are wrong.  They turn a negative number that is
    rounded to zero into nan, which has the bits of a negative zero.
    """
    of_cpu = "xla_cpu_"
    there = {k: v for k, v in _FAST.items() if k not in _lacking}
    if has_one_zero:
        there.pop("xla_cpu_use_fusion_emitters", None)
    return {k: v for k, v in there.items() if platform == "cpu" or not k.startswith(of_cpu)}


def lacks_fast_flag(error: Exception, given: dict[str, Any]) -> bool:
    """Return whether a compilation with these `fast_flags` failed because this release of jaxlib
    lacks one of them; later `fast_flags` leave it out.

    Several threads may find that out at the same time: each was given the flag, and tries again.
    """
    said = str(error)
    lacking = [name for name in given if "No such compile option" in said and f"'{name}'" in said]
    _lacking.update(lacking)
    return bool(lacking)


def load_again(
    client,
    data: bytes,
    code: bytes,
    devices: object,
    options: object,
    callbacks: Sequence[Callable[..., Any]] = (),
):
    """Return the loaded executable whose `serialize` gave these bytes, for a device list.

    `code` is the StableHLO that it was compiled from, and `callbacks` are the Python functions that
    it calls.  Raises the runtime's own error (`RuntimeFailure`).
    """
    if calls_lapack(code):
        register_lapack()
    return client.deserialize_executable(data, devices, options, host_callbacks=list(callbacks))


def options_bytes(options) -> bytes:
    """Return compile options as bytes, including the compiler flags of the process."""
    return options.SerializeAsString()


def processor(devices: tuple[Any, ...]) -> object:
    """Return what identifies the kind of machine that these devices belong to."""
    if devices[0].platform != "cpu":  # plugins do not describe their devices by a number
        kinds = [(d.device_kind, getattr(d, "compute_capability", "")) for d in devices]
        return tuple(kinds)
    return _jax.get_topology_for_devices(list(devices)).fingerprint()


@cache
def register_lapack() -> None:
    """Register LAPACK's functions with the CPU runtime, once, by the names `lapack_..._ffi`.

    The library is scipy's, which jaxlib depends on.  Loading it takes 0.4 s, so the first program
    that needs it does so.
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
    """Let functions that compute on the host for a GPU find LAPACK, once; see `register_lapack`."""
    for module in _hybrids:
        module.initialize()


def register_target(name: str, fn, platform: str, api_version: int) -> None:
    """Register a foreign function, given as a capsule, with the runtime of a platform ("cpu",
    "cuda", "rocm"); `api_version` is the version of its calling convention."""
    xla_client.register_custom_call_target(
        name, fn, platform=GPUS.get(platform, platform), api_version=api_version
    )


def capsule(symbol):
    """Return a Python capsule that holds the address of a `ctypes` function."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    return make(ctypes.cast(symbol, ctypes.c_void_p), None, None)


def headers() -> str:
    """Return the path of the folder with XLA's C++ headers for foreign functions."""
    return os.path.join(os.path.dirname(_jax.__file__), "include")


@cache
def register_inspector(name: str, answer: Callable[[bytes, Any], str]) -> None:
    """Register a callback for dividing programs that call the custom call `name`, once.

    The compiler calls `answer(config, sharding)` with the text of the call and the HloSharding of
    its only operand.  It returns the text of a module that replaces the call.
    """

    def divide(shapes: object, shardings, result: object, result_sharding, config):
        module = mlir().ir.Module.parse(answer(config, shardings[0]), new_context())
        code = io.BytesIO()
        module.operation.write_bytecode(code)
        return code.getvalue(), shardings, result_sharding

    def first(shapes: object, shardings, result: object, config: object):
        return shardings[0]

    def same(sharding, shape: object, config: object):
        return sharding

    _jax.register_custom_call_partitioner(name, same, divide, first, True)


def executable_of(run: Callable[..., Any]) -> Any:
    """Return the executable whose bound method `run` is; None if `run` is something else."""
    itself = getattr(run, "__self__", None)
    return itself if isinstance(itself, _jax.LoadedExecutable) else None


def output_shardings(executable) -> list:
    """Return the HloShardings that the compiler chose for the results, in order; an empty list if
    it divided nothing."""
    return [_hlo.HloSharding.from_proto(p) for p in executable.get_output_shardings() or []]


def parameter_shardings(executable) -> list:
    """Return the HloShardings of the arguments, in order; an empty list if none was chosen."""
    return [_hlo.HloSharding.from_proto(p) for p in executable.get_parameter_shardings() or []]


_BETWEEN_DEVICES = (b"all-", b"reduce-scatter", b"collective-", b"send", b"recv")
"""Prefixes of the names of operations that make devices wait for each other."""


def meets(executable) -> bool:
    """Return whether devices may wait for one another during a run.

    It searches the executable's code for names of such operations, so other names that contain one
    count too.
    """
    code = [m.as_serialized_hlo_module_proto() for m in executable.hlo_modules()]
    return any(name in c for c in code for name in _BETWEEN_DEVICES)


def dlpack_capsule(buf: object, **kw: object):
    """Return a DLPack capsule that shares the buffer's memory; `kw` are jaxlib's options."""
    return _jax.buffer_to_dlpack_managed_tensor(buf, **kw)


def dlpack_import(x: Any, device: Any):
    """Return a buffer in the memory of `x`, which supports the DLPack protocol and lies on this
    accelerator; the device itself waits for pending computations of `x`."""
    stream = device.get_stream_for_external_ready_events()
    return _jax.dlpack_managed_tensor_to_buffer(x.__dlpack__(stream=stream), device, stream)


# ---- calls with numpy arrays ---------------------------------------------------------------


class _Built:
    """A node that jaxlib puts together from buffers of results, by calling `build`."""

    def __init__(self, build: Callable[..., Any], n: int):
        self.build, self.n = build, n


class _Hosted(NamedTuple):
    """Everything jaxlib needs to run an executable without calling Python."""

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
    """Return (registry, cache) of all functions that `hosted` makes, and set jaxlib's switches.

    jaxlib reads three switches that have no values by default: whether compilation is off, whether
    64-bit values are kept, and a function to call afterwards.  Importing jax sets them to other
    values, and from then on `versions` makes no such calls.
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

    For unknown calls it runs `miss(*operands) -> (results, entry, False)`.  The entry is made by
    `hosted_entry`, or is None if jaxlib must run `miss` again next time.

    The runtime reads the memory of aligned numpy arrays in place, and may read that of others after
    the call has returned.  So callers pass copies of arrays that their owner may write to.
    """
    registry, kept = _hosting()
    return _jax.pjit("f", miss, miss, [], [], object(), registry, _no_such_argument, kept)


def hosted_entry(
    executable: object,
    layout_: object,
    kept: list[bool],
    keys: list[Any],
    build: Callable[[list[Any]], Any] | None,
) -> Any:
    """Return the entry from which jaxlib runs an executable; `kept` says of each operand whether
    the executable takes it, and `build` makes the results from their buffers.  Without `build` the
    call returns the buffer of its only result, whose `aval` is that of its key."""
    registry, _ = _hosting()
    n, m = sum(kept), len(keys)
    return _Hosted(
        executable,
        registry.flatten(0 if build is None else _Built(build, m))[1],
        [layout_] * n,
        [layout_] * m,
        [k.aval.physical for k in keys],
        [True] * m,
        kept,
        [None] * n,
        [],
    )


def _no_such_argument(*args: object):
    raise TypeError("an argument is neither a buffer nor a numpy array")


# ---- StableHLO -----------------------------------------------------------------------------


@cache
def mlir() -> SimpleNamespace:
    """Return jaxlib's MLIR bindings: a namespace of the modules `ir`, `extension`, and dialects.

    They are imported at the first compilation, since that takes 20 ms.  Some dialects are
    represented by their extension modules only, since their operations are made by name: a Python
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
    """Return a new MLIR context with the dialects that Plait writes; one thread at a time may use
    it."""
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


def location_cache(is_ours: Callable[..., Any], context: object):
    """Return a cache that turns tokens of `take_traceback` into MLIR locations.

    Frames are left out if `is_ours(name)` is true for their file.
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


def portable_artifact(module: object, version: str, divided: bool = False) -> bytes:
    """Serialise a module for readers of a version of StableHLO ("1.9.3"); return the bytes.

    Shardy's operations are kept if the module is `divided`; otherwise they become calls that only
    the compiler understands.  The module itself is not changed.
    """
    return _jax.mlir.serialize_portable_artifact(module, version, divided)


def load_portable_artifact(artifact: bytes, context: object):
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
    """Return the HLO of a StableHLO module (bytecode), before optimisation, as text."""
    return computation_of(code).as_hlo_text()


def computation_of(code: bytes) -> Any:
    """Return a StableHLO module (bytecode) as an XLA computation, before optimisation."""
    return _jax.mlir.mlir_module_to_xla_computation(code, use_tuple_args=False, return_tuple=False)


def cost_of(client: object, code: bytes) -> dict[str, float]:
    """Return the runtime's estimate of a StableHLO module's costs, before optimisation."""
    return _jax.hlo_module_cost_analysis(client, computation_of(code).get_hlo_module())


# ---- profiling -------------------------------------------------------------------------------


def profiler_session(python: bool, options: Any = None) -> Any:
    """Start a session of the runtime's profiler; `python`: whether it records calls of Python."""
    _profiler = importlib.import_module("jaxlib._profiler")
    if options is None:
        options = _profiler.ProfileOptions()
        options.python_tracer_level = int(python)
    return _profiler.ProfilerSession(options)


def profiler_class(name: str) -> Any:
    """Return one of the runtime's classes of profiles; None if it has no such class."""
    _profiler = importlib.import_module("jaxlib._profiler")
    _profile_data = importlib.import_module("jaxlib._profile_data")
    return getattr(_profiler, name, None) or getattr(_profile_data, name, None)


def profiler_server(port: int) -> Any:
    """Return a server from which other programs record profiles of this process."""
    _profiler = importlib.import_module("jaxlib._profiler")
    return _profiler.start_server(port)


def profiler_mark(name: str, **data: object) -> Any:
    """Return a context whose time a profile shows under a name."""
    _profiler = importlib.import_module("jaxlib._profiler")
    return _profiler.TraceMe(name, **data)


def profile_data(recorded: bytes) -> Any:
    """Return what a session recorded, as planes of lines of events."""
    _profile_data = importlib.import_module("jaxlib._profile_data")
    return _profile_data.ProfileData.from_serialized_xspace(recorded)


def live_hlo(client: Any) -> list[str]:
    """Return the optimised HLO of the client's executables, as texts."""
    return [hlo_text(executable) for executable in client.live_executables()]
