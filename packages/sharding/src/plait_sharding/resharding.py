"""Moving an array from one sharding to another.

Between the same devices a program moves it, compiled from the constraint.  Between others, each
device is sent the parts of its piece by the devices that hold them.

Invariant: an array in pieces is never assembled on the host.  Between specs of one mesh, it is not
assembled on a device that will have a piece of it either.  The result has its own memory.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from plait import events, jit, lax
from plait.ext.devices import (
    Placed,
    assemble,
    boxes,
    expect_here,
    first,
    layout_of,
    local,
    move,
    platform,
)
from plait.ext.rules import eager_rules
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Array, solid, wrap

from .mesh import Names
from .named_shardings import NamedSharding
from .placement import Sharding, SingleDeviceSharding, constraint, release, transfer
from .tilings import in_tiles

__all__ = ["stations"]

Box = tuple[slice, ...]


@eager_rules.rule(transfer)
def _(args: tuple[Value, ...], params: dict[str, Any]) -> Array:
    return constraint.bind(*args, sharding=params["sharding"])


@eager_rules.rule(constraint)
def _(args: tuple[Value, ...], params: dict[str, Any]) -> Array | None:
    """Move an array between devices; return None if the compiler must make a program for it."""
    x, sharding = solid(args[0]), params["sharding"]
    have = x.key.placement
    if have == sharding:
        return x
    expect_here(sharding.place)
    sharding.check(x.aval)
    if sharding.closed() != sharding:
        return constraint.bind(x, sharding=sharding.closed())
    if _alike(have, sharding):
        return wrap(x.buffer(), Placed(x.aval, sharding))
    key = Placed(x.aval, sharding)
    here = (first(),) if have is None else have.place.devices
    there = sharding.place.devices
    if not (set(here) | set(there) <= set(local())):
        return _over_processes(x, key, here == there)
    if len(here) == 1 == len(there) and here == there:
        return wrap(x.buffer(), key)
    if have is not None and len(here) > 1 and set(here) == set(there) and x.aval.size:
        return _among_the_same(x, have, key)
    events.happened("transfer", key)
    if len(here) == 1 and (platform() == "cpu" or len(there) == 1) or not x.aval.size:
        # The host can read the source without a copy, or there is one target.
        return wrap(move(x.buffer(), key), key)
    if len(here) == len(there) and _boxes(x.key) == _boxes(key):
        return wrap(move(x.buffer(), key), key)
    return _piece_by_piece(x, key)


def _alike(a: object, b: object) -> bool:
    """Return whether two shardings differ in the types of mesh axes only."""
    if not (isinstance(a, NamedSharding) and isinstance(b, NamedSharding)):
        return False
    return a.spec.trimmed == b.spec.trimmed and a.mesh.untyped == b.mesh.untyped


@eager_rules.rule(release)
def _(args: tuple[Value, ...], params: dict[str, Any]) -> Array:
    x = solid(args[0])
    have: Any = x.key.placement
    if getattr(have, "explicit", None) is None:
        return x
    return wrap(x.buffer(), Placed(x.aval, have.untyped()))


def _over_processes(x: Array, key: Placed, among_the_same: bool) -> Array | None:
    """Move `x` between or within processes.

    Return None, for a program, if its devices stay the same.  Otherwise each process moves its own
    data, which must cover all that its devices will hold.
    """
    if among_the_same:
        return None
    events.happened("transfer", key)
    return wrap(move(x.buffer(), key), key)


def _among_the_same(x: Array, have: Sharding, key: Placed) -> Array | None:
    """Return `x` with another division over its devices, or with the devices in another order."""
    sharding: Any = key.placement
    there = sharding.place.devices
    if have.place.devices != there:
        pieces = dict(zip(have.place.devices, x.buffer()._arrays, strict=True))
        turned = Placed(x.aval, in_tiles(have, x.aval.ndim, there))
        x = wrap(assemble([pieces[d] for d in there], turned), turned)  # it shares the memory
    if _boxes(x.key) == _boxes(key):
        events.happened("transfer", key)
        return wrap(move(x.buffer(), key), key)
    way = stations(have, sharding, x.aval)
    if way:
        return _program((*way, sharding))(x)
    return None if x.key.placement is have else constraint.bind(x, sharding=sharding)


def stations(have: Sharding, want: Sharding, aval: Aval) -> list[NamedSharding]:
    """Return the intermediate shardings of an array between two specs of one mesh.

    By itself, the compiler replicates an array on every device if the two divisions have nothing in
    common.  So first every axis of the array is divided further, which moves nothing.  Then the
    pieces change places, between divisions over the same mesh axes.  Then they are joined over the
    mesh axes that no longer divide.
    """
    if not (isinstance(have, NamedSharding) and isinstance(want, NamedSharding)):
        return []
    if have.mesh.untyped != want.mesh.untyped:
        return []
    old, new = have.spec.trimmed.full(aval.ndim), want.spec.trimmed.full(aval.ndim)
    finer = _further(old, new, have.spec.names)
    turned = _further(new, old, want.spec.names)
    way = [s for s in map(have.with_spec, (finer, turned)) if s not in (have, want)]
    return list(dict.fromkeys(way)) if all(s.divides(aval) for s in way) else []


def _further(parts: Any, others: Any, used: Names) -> list[Names]:
    """Return each entry extended by the names of the other spec's entry that are not used yet."""
    return [
        (*(p or ()), *[n for n in q or () if n not in used])
        for p, q in zip(parts, others, strict=True)
    ]


@lru_cache(maxsize=1024)
def _program(way: tuple[Sharding, ...]) -> Callable[[Array], Array]:
    """Return a compiled function that constrains an array to these shardings in turn."""

    def reshard(x: Value) -> Any:
        for sharding in way:
            x = constraint.bind(x, sharding=sharding)
        return x

    return jit(reshard)


def _boxes(key: Aval | Placed) -> list[Box]:
    return boxes(layout_of(key), key.aval.shape)


def _piece_by_piece(x: Array, key: Placed) -> Array:
    """Return `x` on other devices, after sending each the parts of its piece."""
    holders: dict[Any, tuple[Box, list[tuple[int, Any]]]] = {}
    devices = (first(),) if x.key.placement is None else x.key.placement.place.devices
    pieces = x.buffer()._arrays if len(devices) > 1 else [x.buffer()]
    for device, box, piece in zip(devices, _boxes(x.key), pieces, strict=True):
        holders.setdefault(_ends(box), (box, []))[1].append((device, piece))
    place: Any = key.placement
    cuts: dict[Any, Array] = {}
    made = []
    for turn, (device, box) in enumerate(zip(place.place.devices, _boxes(key), strict=True)):
        where = SingleDeviceSharding(device)
        parts = {}
        for source, copies in holders.values():
            common = _common(source, box)
            if common is None:
                continue
            owner, piece = _nearest(copies, device, turn)
            name = owner, _ends(common)
            if name not in cuts:
                cuts[name] = _cut(x, owner, piece, source, common)
            aval = cuts[name].aval
            there = Placed(aval, where)
            parts[_ends(common)] = wrap(move(cuts[name].buffer(), there), there)
        made.append(_joined(parts, 0).buffer())
    return wrap(assemble(made, key), key)


def _ends(box: Box) -> tuple[tuple[int, int], ...]:
    return tuple([(s.start, s.stop) for s in box])


def _common(a: Box, b: Box) -> Box | None:
    """Return the intersection of two boxes; None if it is empty."""
    ends = [(max(s.start, t.start), min(s.stop, t.stop)) for s, t in zip(a, b, strict=True)]
    return None if any(i >= j for i, j in ends) else tuple([slice(i, j) for i, j in ends])


def _nearest(copies: Sequence[tuple[int, Any]], device: int, turn: int) -> tuple[int, Any]:
    """Return the copy on the device itself, else the copies in rotation."""
    own = [c for c in copies if c[0] == device]
    return own[0] if own else copies[turn % len(copies)]


def _cut(x: Array, owner: int, piece: object, source: Box, common: Box) -> Any:
    """Return a part of a device's piece, as an array on that device."""
    aval = x.aval.with_shape([s.stop - s.start for s in source])
    whole = wrap(piece, Placed(aval, SingleDeviceSharding(owner)))
    if common == source:
        return whole
    ends = list(zip(common, source, strict=True))
    return lax.slice(
        whole, [c.start - s.start for c, s in ends], [c.stop - s.start for c, s in ends]
    )


def _joined(parts: dict[tuple, Array], axis: int) -> Any:
    """Return the parts of one box, on one device, joined along this axis and those after it.

    `parts` is keyed by their ends; they are all combinations of some divisions of each axis.
    """
    if len(parts) == 1:
        return next(iter(parts.values()))
    rows = [_joined(row, axis + 1) for row in _rows(parts, axis)]
    return rows[0] if len(rows) == 1 else lax.concatenate(rows, axis)


def _rows(parts: dict[tuple, Array], axis: int) -> Iterator[dict[tuple, Array]]:
    """Yield the parts grouped by their position along an axis, in order."""
    for begin in sorted({ends[axis] for ends in parts}):
        yield {ends: part for ends, part in parts.items() if ends[axis] == begin}
