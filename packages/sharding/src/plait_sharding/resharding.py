"""Bringing an array from where it lies to where it shall lie.

Between the same devices a program does it, which the compiler makes of the constraint; between
others each device is sent the parts of its piece by those who have them.

Invariant: an array in pieces is never put together on the host, nor, between specs of one mesh, on
a device that shall have a piece of it; the result has memory of its own.
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
from plait.ext.types import Aval
from plait.ext.values import Array, solid, wrap

from .mesh import Names
from .named_shardings import NamedSharding
from .placement import Sharding, SingleDeviceSharding, constraint, release
from .tilings import in_tiles

__all__ = ["stations"]

Box = tuple[slice, ...]


@eager_rules.rule(constraint)
def _(args: Any, params: dict[str, Any]) -> Array | None:
    """From device to device; None where the compiler makes a program of it."""
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
        return wrap(move(x.buffer(), key), key)  # whose memory the host can read where it is
    if len(here) == len(there) and _boxes(x.key) == _boxes(key):
        return wrap(move(x.buffer(), key), key)
    return _piece_by_piece(x, key)


def _alike(a: Any, b: Any) -> bool:
    """Whether two shardings differ in the types of the axes of their meshes alone."""
    if not (isinstance(a, NamedSharding) and isinstance(b, NamedSharding) and a.spec == b.spec):
        return False
    return a.mesh.untyped == b.mesh.untyped


@eager_rules.rule(release)
def _(args: Any, params: dict[str, Any]) -> Array:
    x = solid(args[0])
    have: Any = x.key.placement
    if getattr(have, "explicit", None) is None:
        return x
    return wrap(x.buffer(), Placed(x.aval, have.untyped()))


def _over_processes(x: Array, key: Placed, among_the_same: bool) -> Array | None:
    """`x`, of several processes or for them: by a program, if its devices stay; else each process
    brings what it has, which must be all that it shall have."""
    if among_the_same:
        return None
    events.happened("transfer", key)
    return wrap(move(x.buffer(), key), key)


def _among_the_same(x: Array, have: Sharding, key: Placed) -> Array | None:
    """`x`, divided in another way over its devices, or counted in another order."""
    sharding: Any = key.placement
    there = sharding.place.devices
    if have.place.devices != there:
        pieces = dict(zip(have.place.devices, x.buffer()._arrays, strict=True))
        turned = Placed(x.aval, in_tiles(have, x.aval.ndim, there))
        x = wrap(assemble([pieces[d] for d in there], turned), turned)  # the same memory
    if _boxes(x.key) == _boxes(key):
        events.happened("transfer", key)
        return wrap(move(x.buffer(), key), key)
    way = stations(have, sharding, x.aval)
    if way:
        return _program((*way, sharding))(x)
    return None if x.key.placement is have else constraint.bind(x, sharding=sharding)


def stations(have: Sharding, want: Sharding, aval: Aval) -> list[NamedSharding]:
    """Where an array lies on the way between two specs of one mesh.

    Left alone, the compiler replicates an array on every device where two divisions have nothing
    in common.  So first every axis of the array is divided further, which moves nothing; then the
    pieces change places, among divisions over the same axes of the mesh; and then they are put
    together over the axes that are no longer divided over.
    """
    if not (isinstance(have, NamedSharding) and isinstance(want, NamedSharding)):
        return []
    if have.mesh.untyped != want.mesh.untyped:
        return []
    old, new = have.spec.full(aval.ndim), want.spec.full(aval.ndim)
    finer = _further(old, new, have.spec.names)
    turned = _further(new, old, want.spec.names)
    way = [s for s in map(have.with_spec, (finer, turned)) if s not in (have, want)]
    return list(dict.fromkeys(way)) if all(s.divides(aval) for s in way) else []


def _further(parts: Any, others: Any, used: Names) -> list[Names]:
    """Each axis divided as it is, and over those names of the others that are not used yet."""
    return [
        (*(p or ()), *[n for n in q or () if n not in used])
        for p, q in zip(parts, others, strict=True)
    ]


@lru_cache(maxsize=1024)
def _program(way: tuple[Sharding, ...]) -> Callable[[Array], Array]:
    """Brings an array to the last of some shardings, by way of the others."""

    def reshard(x: Any) -> Any:
        for sharding in way:
            x = constraint.bind(x, sharding=sharding)
        return x

    return jit(reshard)


def _boxes(key: Any) -> list[Box]:
    return boxes(layout_of(key), key.aval.shape)


def _piece_by_piece(x: Array, key: Placed) -> Array:
    """`x` on other devices, each of which is sent what it shall have."""
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
    """What two boxes have in common."""
    ends = [(max(s.start, t.start), min(s.stop, t.stop)) for s, t in zip(a, b, strict=True)]
    return None if any(i >= j for i, j in ends) else tuple([slice(i, j) for i, j in ends])


def _nearest(copies: Sequence[tuple[int, Any]], device: int, turn: int) -> tuple[int, Any]:
    """The copy on the device itself; else one of them, each in its turn."""
    own = [c for c in copies if c[0] == device]
    return own[0] if own else copies[turn % len(copies)]


def _cut(x: Array, owner: int, piece: Any, source: Box, common: Box) -> Array:
    """A part of the piece of a device, there."""
    aval = x.aval.with_shape([s.stop - s.start for s in source])
    whole = wrap(piece, Placed(aval, SingleDeviceSharding(owner)))
    if common == source:
        return whole
    ends = list(zip(common, source, strict=True))
    return lax.slice(
        whole, [c.start - s.start for c, s in ends], [c.stop - s.start for c, s in ends]
    )


def _joined(parts: dict[tuple, Array], axis: int) -> Array:
    """Parts of one box on one device, by where they begin and end, put together along this axis
    and those after it: they are all combinations of some divisions of each axis."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    rows = [_joined(row, axis + 1) for row in _rows(parts, axis)]
    return rows[0] if len(rows) == 1 else lax.concatenate(rows, axis)


def _rows(parts: dict[tuple, Array], axis: int) -> Iterator[dict[tuple, Array]]:
    """The parts by where they are along an axis, in order."""
    for begin in sorted({ends[axis] for ends in parts}):
        yield {ends: part for ends, part in parts.items() if ends[axis] == begin}
