"""Device memory: the client, its devices, and transfers of arrays to and from them.

All processes that compute together number the devices alike.  A process holds the pieces of an
array that lie on its own devices.

Invariant: a process has one client, made with its first array, since two clients would refuse each
other's buffers.  Only `plait._core.array.Array` holds the buffers that this module returns.
"""

from collections.abc import Callable
from functools import cache, lru_cache, wraps
from typing import Any

import numpy as np

from .._base import jaxlib_api
from .._base.config import config
from .._base.errors import DeletedArrayError, MissingPlatform, PlacementError, PlaitError
from .._base.lazy import later
from .._base.pjrt_plugins import GPUS, WHEELS, Plugin, plugins
from .._base.source import warn
from .._types.avals import Aval, Placed
from . import forks
from .processes import await_ready, member, member_here
from .topologies import Topology, expect_here, topology_of


def once(f: Callable[..., Any]):
    """Decorate `f` like `functools.cache`, but never run it in two threads at the same time.

    `functools.cache` takes no lock: two threads that start together would make two clients, which
    refuse each other's buffers.
    """
    memo = cache(f)

    @wraps(f)
    def get():
        with jaxlib_api.lock:
            return memo()

    return cache(get)


def client():
    """Return the client of this process; RuntimeFailure in a child of a process that had one."""
    forks.expect_runtime()
    return _started()[0]


@once
def _started() -> tuple[Any, str]:
    """Make the client, and freeze the settings that chose it; return (client, platform)."""
    if config.keep_memory:  # before the client's threads have memory of their own
        later("_base.allocator").keep_freed_memory()
    forks.expect_runtime()
    made, name = _made()
    forks.watch()
    same = (None, name, "gpu") if name in GPUS else (None, name)
    config.freeze("platform", "the devices exist already", same)
    config.freeze("cpu_devices", "the devices exist already")
    config.freeze("keep_memory", "memory has been taken already")
    return made, name


def _made() -> tuple[Any, str]:
    """Return (a new client, the name of its platform).

    The platform is the one that is set, or else the first one with devices.  The name is returned
    since clients of all GPUs call themselves "gpu".
    """
    world = member()
    options = (lambda name: {}) if world is None else world.client_options
    for plugin in _plugins_for(config.platform) if config.platform != "cpu" else ():
        try:
            name = plugin.platform
            return jaxlib_api.make_plugin_client(plugin, **options(name)), name
        except (jaxlib_api.RuntimeFailure, ImportError, OSError) as e:
            _without(plugin, e)
    return jaxlib_api.make_cpu_client(config.cpu_devices, **options("cpu")), "cpu"


def _plugins_for(name: str | None) -> list[Plugin]:
    """Return the plugins of a platform, or of all for None; MissingPlatform if it has none."""
    found = plugins(asked=name is not None)
    of = [p for p in found if name in (None, p.platform, "gpu" if p.platform in GPUS else None)]
    if name is not None and not of:
        wheel = WHEELS.get("cuda" if name == "gpu" else name)
        raise MissingPlatform(
            f"the platform {name!r} is set, and no plugin for it is installed",
            fix=f'install "{wheel}"' if wheel else "set plait.config.platform = None",
        )
    return of


def _without(plugin: Plugin, failure: Exception) -> None:
    """Raise MissingPlatform for a platform that cannot be used if the user set it; else warn."""
    what = f"the plugin for {plugin.platform!r} cannot be used: {failure}"
    if config.platform is not None:
        fix = "set plait.config.platform = None to compute on the CPU"
        raise MissingPlatform(what, fix=fix) from None
    warn(f"{what}; the CPU is used", RuntimeWarning)


@once
def devices() -> tuple:
    """Return the devices of all processes, those of the first process first."""
    if member() is None:
        return tuple(client().local_devices())
    return tuple(sorted(client().devices(), key=lambda d: (d.process_index, d.id)))


@once
def local() -> tuple[int, ...]:
    """Return the numbers of the devices that this process drives."""
    mine = client().process_index()
    return tuple([i for i, d in enumerate(devices()) if d.process_index == mine])


@once
def first() -> int:
    """Return the number of the default device: the first that this process drives."""
    return local()[0]


def started() -> bool:
    """Return whether the devices exist, after which this process cannot join others any more."""
    return config.is_frozen("platform")


@cache
def owners(ids: tuple[int, ...]) -> frozenset[int]:
    """Return the numbers of the processes that drive these devices."""
    every = devices()
    return frozenset([every[i].process_index for i in ids])


def platform() -> str:
    """Return the platform that programs are lowered for: `cpu`, `cuda`, `rocm`, `tpu`, or a
    plugin's."""
    return _started()[1]


def expect_platform(backend: str | None) -> None:
    """Raise MissingPlatform unless it is None or the platform of this process."""
    have = platform()
    known = (have, "gpu") if have in GPUS else (have,)
    if backend is not None and backend not in known:
        raise MissingPlatform(
            f"there is no platform {backend!r} in this process, which runs on {have!r}",
            fix=f"leave it out, or write {have!r}",
        )


@cache
def device_list(ids: tuple[int, ...] | None = None, topology: Topology | None = None):
    """Return some devices by number, of a topology if one is given; by default the first device of
    this process."""
    forks.expect_runtime()
    all_ = devices() if topology is None else topology.devices
    if ids is None:
        return jaxlib_api.device_list((all_[first()],))
    if any(not 0 <= i < len(all_) for i in ids):
        raise PlaitError(
            f"there is no device number {max(ids)}: there are {len(all_)}",
            fix=f"set plait.config.cpu_devices = {max(ids) + 1} before the first array is made",
        )
    return jaxlib_api.device_list(tuple(all_[i] for i in ids))


@cache
def _layout(ids: tuple[int, ...] | None, tiling: str, topology: Topology | None = None):
    return jaxlib_api.layout(device_list(ids, topology), tiling)


@forks.empty_in_child
def _forget_layouts() -> None:
    """Drop what lets arrays be put on devices."""
    for made in (device_list, _layout, default_place, _pieces_here):
        made.cache_clear()


def layout_of(key: Aval | Placed):
    """Return the runtime's layout of arrays with this dispatch key."""
    p = key.placement
    if p is None:
        return _layout(None, "{replicated}")
    tiling = p.tiling(key.aval.physical.ndim)
    return _layout(p.place.devices, tiling, topology_of(p.place))


def boxes(layout, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Return the slices of an array of `shape` that the devices have, in the devices' order."""
    sharding = jaxlib_api.hlo_sharding(layout)
    found = jaxlib_api.tiles(sharding)
    if found is None:
        whole = tuple([slice(0, n) for n in shape])
        return [whole] * len(layout._internal_device_list)
    dims, order = found
    out: list[Any] = [None] * len(order)
    for k, at in zip(order, np.ndindex(*dims), strict=True):
        out[k] = tuple(slice(i * (n // d), (i + 1) * (n // d)) for i, n, d in zip(at, shape, dims))
    return out


@cache
def default_place() -> tuple[Any, list[Any]]:
    """Return (layout, devices) of arrays in the default place."""
    return _layout(None, "{replicated}"), [devices()[first()]]


def put(x: Any, key: Aval | Placed, share: bool = False):
    """Return a device buffer with a copy of `x`, placed according to the dispatch key.

    `x` is a numpy array, of the physical dtype if the type is opaque.  If the key has a placement,
    `x` may be any object with a `shape` whose slices are numpy arrays.  With `share` an array of
    the default place uses the memory of `x` itself, where the runtime can.
    """
    if key.placement is None:
        layout, device = default_place()
        piece = jaxlib_api.share_piece if share else jaxlib_api.put_pieces
        return piece(key.aval.physical, layout, [x], device)
    expect_here(key.placement.place)
    layout, slices, there = _pieces_here(key, tuple(x.shape))
    if member_here:
        _expect_same(x, key, there)
    pieces = [np.array(x[b]) for b in slices]  # the runtime cannot force copies of views
    return jaxlib_api.put_pieces(key.aval.physical, layout, pieces, there)


@lru_cache(maxsize=4096)
def _pieces_here(key: Placed, shape: tuple[int, ...]) -> tuple[Any, list, list]:
    """Return the layout of such an array, the slices that this process has, and their devices."""
    layout = layout_of(key)
    found = here_of(layout, shape)
    return layout, [b for b, _ in found], [d for _, d in found]


def _expect_same(x: Any, key: Any, there: list) -> None:
    """Raise if an array cannot be put here, or has other values in other processes.

    Values are compared for numpy arrays only.  Other objects need to have only the slices of this
    process.
    """
    ids, world = key.placement.place.devices, member()
    if not there:
        raise PlacementError(
            f"{key.aval!r} needs the devices {list(ids)}, and this process drives "
            f"none of them: its own are {list(local())}",
            fix="bring it to plait.local_devices(), or to a sharding with a device of this process",
        )
    if world is not None and len(owners(ids)) > 1 and isinstance(x, np.ndarray):
        what = f"{key.aval!r} as {key.placement!r}"
        world.agree_on_values(x, what, tuple(sorted(owners(ids))))


def here_of(layout, shape: tuple[int, ...]) -> list[tuple[tuple[slice, ...], Any]]:
    """Return (slice of an array of `shape`, device) for each device of this process, in order."""
    every = list(layout._internal_device_list)
    found = list(zip(boxes(layout, shape), every, strict=True))
    if member() is None:
        return found
    mine = client().process_index()
    return [(b, d) for b, d in found if d.process_index == mine]


def assemble(pieces: list[Any], key: Aval | Placed):
    """Return the array that consists of these buffers, one for each device of the placement in
    order.

    Nothing is copied: the array and the buffers share memory.
    """
    for piece in pieces:
        _expect_alive(piece)
    if key.placement is not None:
        expect_here(key.placement.place)
    return jaxlib_api.assembled(key.aval.physical, layout_of(key), pieces)


def get(buf) -> np.ndarray:
    """Return a read-only host view of the array, without a copy where the memory allows.

    `memoryview`, unlike `numpy.asarray`, does not swallow errors of the computation. Raises
    PlacementError if a part of the array lies in other processes only.
    """
    if member_here:
        await_ready(buf)
        if not is_here(buf):
            return _gathered(buf)
    try:
        return np.asarray(memoryview(buf))
    except (BufferError, ValueError, TypeError, NotImplementedError):
        if buf.is_deleted():
            raise
    if len(buf._sharding._internal_device_list) == 1:
        view = np.asarray(buf._single_device_array_to_np_array_did_copy()[0])
        view.flags.writeable = False
        return view
    out = np.empty(buf.aval.shape, buf.aval.dtype)
    read = set()
    for box, piece in zip(boxes(buf._sharding, out.shape), buf._arrays, strict=True):
        # Of copies that the user only said to be equal, the first device's counts.
        key = tuple([(s.start, s.stop) for s in box])
        if key not in read:
            read.add(key)
            out[box] = get(piece)
    out.flags.writeable = False
    return out


def is_here(buf) -> bool:
    """Return whether all pieces of an array are on devices of this process."""
    return buf._sharding._internal_device_list.is_fully_addressable


def _gathered(buf) -> np.ndarray:
    """Return the elements of an array over several processes, if this process has all of them."""
    layout, shape = buf._sharding, tuple(buf.aval.shape)
    out, seen = np.empty(shape, buf.aval.dtype), np.zeros(shape, bool)
    for (box, _), piece in zip(here_of(layout, shape), buf._arrays, strict=True):
        if not seen[box].all():
            out[box], seen[box] = get(piece), True
    if not seen.all():
        every = {d.process_index for d in layout._internal_device_list}
        raise PlacementError(
            f"the array lies on devices of the processes {sorted(every)}, and this one, number "
            f"{client().process_index()}, has {int(seen.sum())} of its {seen.size} elements",
            fix="plait.experimental.multihost_utils.process_allgather(x, tiled=True) brings all of "
            "it to every process; x.addressable_shards are the pieces that are here",
        )
    out.flags.writeable = False
    return out


def begin_get(buf) -> None:
    """Start copying the array to the host, so that a later `get` need not wait."""
    one = len(buf._sharding._internal_device_list) == 1 and is_here(buf)
    for piece in (buf,) if one else buf._arrays:
        piece._copy_single_device_array_to_host_async()


def handler(key: Aval | Placed):
    """Return the runtime's handler of results with this dispatch key, made once per key."""
    if key.handler is None:
        key.handler = jaxlib_api.result_handler(key.aval.physical, layout_of(key))
    return key.handler


def move(buf, key: Aval | Placed):
    """Return a copy of the array of `buf`, placed according to the dispatch key.

    The copy goes from device to device if both placements divide the array alike, else through the
    host.
    """
    _expect_alive(buf)
    placement = key.placement
    if placement is not None:
        expect_here(placement.place)
    where = device_list(None if placement is None else placement.place.devices)
    here, there = buf._sharding, layout_of(key)
    if config.guarded and list(here._internal_device_list) != list(where):
        later("_core.transfers").crossing("device_to_device", key.aval)
    tiles = [jaxlib_api.tiles(jaxlib_api.hlo_sharding(s)) for s in (here, there)]
    alike = len(here._internal_device_list) == len(where) and tiles[0] == tiles[1]
    if is_here(buf) and where.is_fully_addressable:
        if alike:
            return jaxlib_api.copy_to(buf, where, there)
    elif alike and list(here._internal_device_list) == list(where):
        return jaxlib_api.assembled(key.aval.physical, there, [_copied(p) for p in buf._arrays])
    return put(np.asarray(get(buf)), key)


def _copied(piece):
    """Return a copy of an array on one device, on the same device."""
    layout = piece._sharding
    return jaxlib_api.copy_to(piece, layout._internal_device_list, layout)


def _expect_alive(buf) -> None:
    if buf.is_deleted():
        raise DeletedArrayError(
            "an array whose memory was donated or deleted was used",
            fix="use it before, or keep a copy: x.copy()",
        )
