"""Exchange of values between processes: gather, broadcast, compare, synchronise.

It is `plait.experimental.multihost_utils`.  All functions are called by every process.

Invariant: arrays arrive bit for bit; a process that does not come is an error in the others, which
names it.
"""

import hashlib
import json
import time
from typing import Any
from urllib.parse import quote

import numpy as np

import plait
from plait.errors import PlaitError
from plait.ext.devices import devices
from plait.ext.errors import ArgumentError, border
from plait.ext.processes import RuntimeFailure
from plait.ext.tree import flatten, map_tree, spread
from plait.ext.values import Array
from plait.tree_util import keystr, tree_flatten_with_path
from plait.typing import ArrayLike

from ..assembly import make_array_from_process_local_data
from ..mesh import Mesh, PartitionSpec
from ..named_shardings import NamedSharding
from .failures import DistributedError
from .membership import is_initialized
from .world import World, current_world

__all__ = [
    "assert_equal", "broadcast_one_to_all", "key_value_delete", "key_value_get",
    "global_array_to_host_local_array", "host_local_array_to_global_array", "process_allgather",
    "key_value_set", "sync_global_devices", "wait_at_barrier",
]  # fmt: skip

_SHORTEST, _LONGEST = 0.005, 0.1
"""Seconds between two looks for a value that another process stores."""


def _mesh() -> Mesh:
    """Return a mesh of the first device of every process, for one value per process."""
    first: dict[int, Any] = {}
    for d in devices():
        first.setdefault(d.process_index, d)
    return Mesh([first[i] for i in sorted(first)], ("process",))


def _replicated(x: Any) -> Any:
    """Return `x` with all of it on every device that has a part."""
    where = x.sharding
    if not isinstance(where, NamedSharding):
        raise ArgumentError(
            f"an array that lies as {where!r} cannot be gathered",
            fix="give one that lies as a NamedSharding says",
        )
    whole = NamedSharding(where.mesh, PartitionSpec())
    return plait.jit(_same, out_shardings=whole)(x)


def _same(x: ArrayLike) -> Any:
    return x


def _elsewhere(x: ArrayLike) -> bool:
    return isinstance(x, Array) and not x.is_fully_addressable


def _host(x: ArrayLike) -> np.ndarray:
    return x.numpy() if isinstance(x, Array) else np.asarray(plait.numpy.asarray(x))


@border
def process_allgather(in_tree: object, tiled: bool = False) -> Any:
    """Return the values of all processes, as numpy arrays in each of them.

    Args:
      in_tree: a tree of arrays.  An array that is spread over several processes is returned whole,
        and needs `tiled`.  Of others, each process gives its own, with the same shape and dtype.
      tiled: if true, these are joined along their first axis; if false, stacked along a new one.

    Returns:
      The tree, with an array of shape (processes, *shape), or (processes * n, *rest), for each.

    Raises ProgramsDiffer if shapes differ between processes; ArgumentError for a spread array
    without `tiled`.

    >>> import plait
    >>> from plait.experimental import multihost_utils
    >>> multihost_utils.process_allgather({"loss": 0.5})["loss"].tolist()
    [0.5]
    """
    return map_tree(lambda x: _gathered(x, tiled), in_tree)


def _gathered(x: ArrayLike, tiled: bool) -> np.ndarray:
    if _elsewhere(x):
        if not tiled:
            raise ArgumentError(
                f"process_allgather of {x!r}, which is spread over several processes, would stack "
                "an array that is one",
                fix="write process_allgather(x, tiled=True) for the whole array",
            )
        return np.asarray(_replicated(x))
    host = _host(x)
    if tiled and host.ndim:
        parts = host
    else:
        parts = host[None]
    if not is_initialized():
        return parts
    spread_ = make_array_from_process_local_data(
        NamedSharding(_mesh(), PartitionSpec("process")), parts
    )
    return np.asarray(_replicated(spread_))


@border
def broadcast_one_to_all(in_tree: object, is_source: bool | None = None) -> Any:
    """Return the values of one process, as numpy arrays in each of them.

    Args:
      in_tree: a tree of arrays, of the same shapes and dtypes everywhere.
      is_source: whether this process is the source of the values; by default process 0 is.

    Raises DistributedError unless exactly one process is the source; ProgramsDiffer if shapes
    differ.

    >>> from plait.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all(3.0).tolist()
    3.0
    """
    if not is_initialized():
        return map_tree(_host, in_tree)
    here = current_world()
    mine = here.index == 0 if is_source is None else bool(is_source)
    each = here.meet("values", "broadcast_one_to_all", mine, range(here.count))
    sources = [i for i, (_, _, is_it) in each.items() if is_it]
    if len(sources) != 1:
        raise DistributedError(
            f"broadcast_one_to_all needs one source, and the processes {sources} say that they "
            "are it",
            fix="give is_source=True in one process, and False in the others",
        )
    return map_tree(lambda x: _gathered(_host(x), False)[sources[0]], in_tree)


@border
def sync_global_devices(name: str) -> None:
    """Wait until every process has come to the point of this name.

    Raises ProgramsDiffer if one comes to another point; PeerLost if one has ended; and
    DistributedError, with the last place of each, if one does not come within
    `initialize(meeting_timeout_seconds=)`.

    >>> from plait.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("checkpoint written")
    """
    if is_initialized():
        here = current_world()
        here.meet("sync", str(name), None, range(here.count))


@border
def assert_equal(in_tree: object, fail_message: str = "") -> None:
    """Raise DistributedError unless a tree has the same values in every process.

    The error names the leaves that differ, and the processes in which they do.

    NaNs of the same bits are equal.

    >>> from plait.experimental import multihost_utils
    >>> multihost_utils.assert_equal({"step": 3})
    """
    if not is_initialized():
        return
    here = current_world()
    leaves = {keystr(path): _digest(x) for path, x in tree_flatten_with_path(in_tree)[0]}
    each = here.meet("values", "assert_equal", leaves, range(here.count))
    first = each[0][2]
    wrong: dict[str, list[int]] = {}
    for i, (_, _, theirs) in each.items():
        for name in {**first, **theirs}:
            if theirs.get(name) != first.get(name):
                wrong.setdefault(name, []).append(i)
    if wrong:
        said = "; ".join(
            f"{name or 'the value'} of process {' and '.join(map(str, who))} differs from that of "
            "process 0"
            for name, who in sorted(wrong.items())
        )
        raise DistributedError(
            f"{fail_message}: {said}" if fail_message else said,
            fix="make them of the same seed, or take those of one: "
            "multihost_utils.broadcast_one_to_all",
        )


def _digest(x: Any) -> str:
    """Return a text that differs for different values, dtypes or shapes."""
    if _elsewhere(x):
        return f"spread {x.aval!r} {x.sharding!r}"
    host = np.ascontiguousarray(_host(x))
    return f"{host.dtype}{host.shape} {hashlib.sha256(host.tobytes()).hexdigest()}"


# ---- parts of one array ------------------------------------------------------------------------


def _specs(pspecs: Any, x: Any) -> list[Any]:
    return spread(
        pspecs, x, "pspecs", lambda s: s is None or isinstance(s, PartitionSpec), "a PartitionSpec"
    )


@border
def host_local_array_to_global_array(
    local_inputs: object, global_mesh: Mesh, pspecs: object
) -> Any:
    """Return arrays over a mesh of all processes, from each process's part of the mesh.

    Args:
      local_inputs: a tree of arrays: the part of this process, as it would be divided over
        `global_mesh.local_mesh`.
      global_mesh: the mesh of all processes.
      pspecs: a PartitionSpec, or a tree prefix of them; None divides nothing.

    Raises AxisError if a part cannot be divided so.
    """
    leaves, tree = flatten(local_inputs)
    out = []
    for x, spec in zip(leaves, _specs(pspecs, local_inputs), strict=True):
        sharding = NamedSharding(global_mesh, PartitionSpec() if spec is None else spec)
        out.append(make_array_from_process_local_data(sharding, x if _elsewhere(x) else _host(x)))
    return tree.unflatten(out)


@border
def global_array_to_host_local_array(
    global_inputs: object, global_mesh: Mesh, pspecs: object
) -> Any:
    """Return this process's part of arrays over a mesh of all, as arrays over its part of the mesh.

    It is the inverse of `host_local_array_to_global_array`.  In one process it returns the arrays
    themselves, if they are divided so.
    """
    leaves, tree = flatten(global_inputs)
    local = global_mesh.local_mesh
    out = []
    for x, spec in zip(leaves, _specs(pspecs, global_inputs), strict=True):
        spec = PartitionSpec() if spec is None else spec
        there = NamedSharding(global_mesh, spec)
        x = plait.device_put(x, there, may_alias=True)
        if x.is_fully_addressable:
            out.append(x)
            continue
        shards = x.addressable_shards
        low = [min(s.index[k].indices(n)[0] for s in shards) for k, n in enumerate(x.shape)]
        high = [max(s.index[k].indices(n)[1] for s in shards) for k, n in enumerate(x.shape)]
        part = np.empty([h - b for b, h in zip(low, high)], x.dtype)
        for s in shards:
            at = [slice(*i.indices(n)) for i, n in zip(s.index, x.shape)]
            part[tuple([slice(i.start - b, i.stop - b) for i, b in zip(at, low)])] = s.data
        out.append(plait.device_put(part, NamedSharding(local, spec)))
    return tree.unflatten(out)


# ---- a store of small values -------------------------------------------------------------------


def _client() -> tuple[World, Any]:
    """Return the world, and the client of the runtime's service, unless processes are lost."""
    here = current_world()
    found = here.loss((), 0.0)
    if found is not None:
        raise found
    return here, here.client


def _entry(key: str) -> str:
    """Return the name in the service's store: it treats a slash as that of a folder."""
    return "plait/" + quote(str(key), safe="")


def _stored(client: Any, entry: str) -> bytes | None:
    """Return the value of an entry; None without one."""
    try:
        return client.key_value_try_get_bytes(entry)
    except RuntimeFailure as e:
        if "NOT_FOUND" in str(e):
            return None
        raise _unreachable(e) from None


def _unreachable(e: Exception) -> DistributedError:
    return DistributedError(
        f"the store of the runtime's service failed: {str(e).splitlines()[0]}",
        fix="see whether the coordinator runs, and can be reached from here",
    )


@border
def key_value_set(key: str, value: object, *, again: bool = False) -> None:
    """Store a value under a name for all processes.

    It consists of numbers, strings, lists, dictionaries.  Raises DistributedError if the name has a
    value already, unless `again`; ArgumentError for other values.
    """
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"the value of {key!r} is {value!r}, which cannot be sent",
            fix="give numbers, strings, lists or dictionaries of them; process_allgather sends "
            "arrays",
        ) from None
    _, client = _client()
    try:
        client.key_value_set_bytes(_entry(key), text.encode(), allow_overwrite=again)
    except RuntimeFailure as e:
        if "ALREADY_EXISTS" not in str(e):
            raise _unreachable(e) from None
        raise DistributedError(
            f"{key!r} has a value already", fix="take another name, or give again=True"
        ) from None


@border
def key_value_get(key: str, timeout: float | None = None) -> Any:
    """Wait for the value that a process stores under a name, and return it.

    Args:
      key: the name.
      timeout: seconds; by default those of `initialize(meeting_timeout_seconds=)`.

    Raises DistributedError if there is none in time.
    """
    here, client = _client()
    seconds = here.patience if timeout is None else timeout
    end, pause, entry = time.monotonic() + seconds, _SHORTEST, _entry(key)
    while True:  # a wait inside the service would not end when a process is lost
        text = _stored(client, entry)
        if text is not None:
            return json.loads(text)
        left = end - time.monotonic()
        if left <= 0 or here.line.wait(lambda: here.line.lost, min(pause, left)):
            break
        pause = min(2 * pause, _LONGEST)
    found: PlaitError | None = here.loss(range(here.count), 0.0)
    raise found or DistributedError(
        f"no process gave a value for {key!r} in {seconds:.0f} s",
        fix="let one call key_value_set(key, value), or ask for the name that it gives",
    )


@border
def key_value_delete(key: str) -> bool:
    """Delete the value of a name; return whether there was one."""
    _, client = _client()
    there = _stored(client, _entry(key)) is not None
    if there:
        client.key_value_delete(_entry(key))
    return there


@border
def wait_at_barrier(name: str, timeout: float | None = None, processes: Any = None) -> None:
    """Wait until these processes, by default all, are at the barrier of this name.

    Raises the errors of `sync_global_devices`; `timeout` is in seconds.
    """
    here = current_world()
    group = range(here.count) if processes is None else sorted({int(i) for i in processes})
    if here.index not in group or not all(0 <= i < here.count for i in group):
        raise ArgumentError(
            f"process {here.index} is at the barrier {name!r} of the processes {list(group)}",
            fix="call it in the processes that it is of",
        )
    here.meet("barrier", str(name), None, group, timeout)
