"""Derivatives of shard_map, and of moving arrays between devices.

In a typed shard_map, types give the axes along which values vary, and reverse mode sums cotangents
by them.  In an untyped one, an operand that is not divided over a mesh axis is copied along it; the
transpose of the copy is a sum.  A result that is not divided is the mean of its equal copies.
With that, the transpose of psum is psum.

Invariant: only the tables of plait_autodiff load this.  Residuals stay on their device: each is one
piece per device, along a new leading axis that is divided over the mesh.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plait.ext.devices import first, same_devices
from plait.ext.ir import Program, Var, derived, evaluate
from plait.ext.ops.elementwise import mul
from plait.ext.ops.shape import reshape
from plait.ext.trace import Value, staged
from plait.ext.types import Aval
from plait.ext.values import Array, Literal
from plait_autodiff.ext import (
    JVP,
    Halves,
    Kept,
    Linear,
    backward,
    choose,
    divide,
    economise,
    is_linear,
    jvp_rules,
    merge,
    part,
    recompute_rules,
    split_program,
    split_rules,
    sum_over_devices,
    transpose_rules,
)

from .inspection import inspect_p
from .manual import divided, shard_map_p
from .mesh import AbstractMesh, Mesh
from .placement import SingleDeviceSharding, constraint, release, transfer

if TYPE_CHECKING:
    from .placement import Sharding

# ---- division ------------------------------------------------------------------------------


class Division(NamedTuple):
    """The two programs of a divided shard_map.

    at: for each residual, the known operand that it equals, or None if it is passed in pieces.
    pieces: the specs of the residuals in pieces.
    """

    known: Program
    unknown: Program
    at: list[int | None]
    pieces: list[tuple[Any, ...]]


@split_rules.rule(shard_map_p)
def _(split, args: list[Value], params: dict[str, Any]):
    ins, outs = params["in_specs"], params["out_specs"]
    unknown = divide(split, args)
    h = split_program(params["program"], unknown)
    own = varies_over(params)
    key = "shard_map", h.residuals, own, params["typed"]
    d = derived(h.known, key, lambda: _divided(h, own, params["typed"]), [h.unknown])
    known, known_specs = part(args, unknown, False), part(ins, unknown, False)
    pieces = d.pieces
    made = part(outs, h.out_unknown, False)
    now = {**params, "program": d.known, "in_specs": tuple(known_specs)}
    now["out_specs"] = (*made, *pieces)
    acts = d.known.outputs or d.known.effects
    got = shard_map_p.bind(*known, **now) if acts else []
    passed = iter(zip(got[len(made) :], pieces))
    residuals = [next(passed) if i is None else (known[i], known_specs[i]) for i in d.at]
    operands = [*(x for x, _ in residuals), *part(args, unknown)]
    specs = (*(s for _, s in residuals), *part(ins, unknown))
    later = {**params, "program": d.unknown, "in_specs": specs}
    later["out_specs"] = tuple(part(outs, h.out_unknown))
    rest = split.stage.apply(shard_map_p, operands, later) if d.unknown.outputs else []
    return merge(h.out_unknown, rest, got[: len(made)])


def piece_specs(avals: Sequence[Aval], axes: tuple[str, ...], typed: bool) -> list[tuple[Any, ...]]:
    """Return the specs of values that stay on their device, along a new leading axis.

    In a typed shard_map a value that does not vary along an axis is stored once along it.
    """
    lead = [tuple([n for n in axes if n in a.vma]) if typed else axes for a in avals]
    return [(names, *[()] * a.ndim) for names, a in zip(lead, avals)]


def varies_over(params: dict[str, Any]) -> tuple[str, ...]:
    """Return the axes along which any inner value may differ between devices.

    Along an axis that divides no operand and that the program does not name, all devices compute
    the same; values passed between two shard_maps are stored once along it.
    """
    used = {n for spec in params["in_specs"] for names in spec for n in names}
    return tuple([n for n in params["axes"] if n in used or n in params["program"].axes])


def _divided(h: Halves, own: tuple[str, ...], typed: bool) -> Division:
    """Return the halves; residuals other than operands get a leading axis of size 1."""
    n = len(h.known.outputs) - h.residuals
    place = {v: i for i, v in enumerate(h.known.inputs)}
    at = [place.get(a) if a.__class__ is Var else None for a in h.known.outputs[n:]]
    first = choose(h.known, (*(True,) * n, *(i is None for i in at)))

    def known(*xs: Value) -> list:
        outs = evaluate(first, xs)
        return [*outs[:n], *(reshape(r, (1, *r.aval.shape)) for r in outs[n:])]

    def unknown(*xs: Value) -> list:
        own = [reshape(x, x.aval.shape[1:]) if i is None else x for x, i in zip(xs, at)]
        return evaluate(h.unknown, [*own, *xs[len(at) :]])

    residuals = h.unknown.in_avals[: h.residuals]
    types = [a.with_shape((1, *a.shape)) if i is None else a for a, i in zip(residuals, at)]
    types += h.unknown.in_avals[h.residuals :]
    return Division(
        staged(known, h.known.in_avals, h.known.name),
        staged(unknown, types, h.unknown.name),
        at,
        piece_specs([a for a, i in zip(residuals, at) if i is None], own, typed),
    )


# ---- recomputation ---------------------------------------------------------------------------


@recompute_rules.rule(shard_map_p)
def _(twice, prim, args, params):
    k = economise(params["program"], twice.policy)
    first, again = derived(k.first, "shard_map again", lambda: _in_pieces(k), [k.again])
    n, types = len(k.redone), k.again.in_avals[: k.kept]
    pieces = piece_specs(types, varies_over(params), params["typed"])
    now = {**params, "program": first, "out_specs": (*params["out_specs"], *pieces)}
    outs = twice.parent.apply(prim, args, now)
    if any(k.redone):
        later = {**params, "program": again, "in_specs": (*pieces, *params["in_specs"])}
        later["out_specs"] = tuple(part(params["out_specs"], k.redone))
        operands = [*outs[n:], *map(twice.twin, args)]
        twice.pair(part(outs[:n], k.redone), twice.stage.apply(prim, operands, later))
    return outs[:n]


def _in_pieces(k: Kept) -> tuple[Program, Program]:
    """Return both programs, in which kept values have a leading axis of size 1."""
    n, m = len(k.redone), k.kept

    def first(*xs: Value) -> list:
        outs = evaluate(k.first, xs)
        return [*outs[:n], *(reshape(v, (1, *v.aval.shape)) for v in outs[n:])]

    def again(*xs: Value) -> list:
        own = [reshape(x, x.aval.shape[1:]) for x in xs[:m]]
        return evaluate(k.again, [*own, *xs[m:]])

    types = [a.with_shape((1, *a.shape)) for a in k.again.in_avals[:m]]
    types += k.again.in_avals[m:]
    return (
        staged(first, k.first.in_avals, k.first.name),
        staged(again, types, k.again.name),
    )


# ---- transposition -------------------------------------------------------------------------


@transpose_rules.rule(shard_map_p)
def _(
    cts: list[Value],
    *args: Value | Linear,
    program: Program,
    mesh: Mesh,
    axes: tuple[str, ...],
    typed: bool,
    in_specs: tuple[tuple[Any, ...], ...],
    out_specs: tuple[tuple[Any, ...], ...],
):
    linear, given = tuple(map(is_linear, args)), tuple([c is not None for c in cts])
    ins, outs = tuple(part(in_specs, linear)), tuple(part(out_specs, given))
    types = tuple(part(program.out_avals, given))
    if typed:  # types show where to sum over devices, so no sums are added here
        sums: tuple = ((),) * len(ins)
        varying = [tuple([n for n in axes if n in a.vma]) for a in types]
        # Equal pieces that form one result get a cotangent each.  A result that is not divided
        # has one cotangent, whose own cotangent is the sum over all devices.
        alike = [a.with_vma(a.vma.difference(axes)) for a in types]
        types = tuple([divided(a, spec) for a, spec in zip(alike, outs, strict=True)])
    else:  # Along other axes, copies of cotangents are equal, since those of values are.
        own = varies_over({"program": program, "in_specs": (*in_specs, *outs), "axes": axes})
        sums, varying = tuple([_undivided(mesh, own, s) for s in ins]), [own] * len(outs)
    shares = tuple([_undivided(mesh, v, s) for v, s in zip(varying, outs, strict=True)])
    copies = Copies(mesh, sums, shares)
    key = "transpose shard_map", copies, linear, given, types
    make = lambda: _reversed(program, copies, linear, given, types)  # noqa: E731
    q, present = derived(program, key, make)
    if not q.outputs:
        return [None] * len(args)
    got = shard_map_p.bind(
        *part(args, linear, False),
        *part(cts, given),
        program=q,
        mesh=mesh,
        axes=axes,
        typed=typed,
        in_specs=(*part(in_specs, linear, False), *outs),
        out_specs=tuple(part(ins, present)),
    )
    found, there = iter(got), iter(present)
    return [(next(found) if next(there) else None) if flag else None for flag in linear]


def _undivided(mesh: Mesh | AbstractMesh, axes: tuple[str, ...], spec: tuple) -> tuple[str, ...]:
    """Return those of these axes that a spec does not divide over."""
    over = {n for names in spec for n in names}
    return tuple([n for n in axes if n not in over and mesh.shape[n] > 1])


class Copies(NamedTuple):
    """The axes along which cotangents are summed, and those along which results are shared.

    sums: for each linear operand, the axes to sum its cotangent over.
    shares: for each result with a cotangent, the axes along which it has copies.  The result is the
      mean of its copies.
    """

    mesh: Mesh | AbstractMesh
    sums: tuple[tuple[str, ...], ...]
    shares: tuple[tuple[str, ...], ...]

    def share(self, ct: Value, i: int) -> Any:
        """Return one copy's share of the cotangent of the mean of the copies."""
        n = self.mesh.product(self.shares[i])
        return ct if n == 1 else mul.bind(ct, Literal(1 / n, ct.aval))

    def total(self, ct: Value, i: int) -> Any:
        """Return the sum of the cotangents of copies."""
        return sum_over_devices(ct, self.sums[i])


def _reversed(
    program: Program, copies: Copies, linear: tuple, given: tuple, cotangents: tuple[Aval, ...]
) -> tuple[Program, tuple[bool, ...]]:
    """Return the transposed program, and which linear operands have a cotangent.

    The program maps (known pieces, pieces of given cotangents) to pieces of cotangents.
    """
    present: tuple[bool, ...] = ()
    k = linear.count(False)

    def body(*xs: Value) -> list:
        nonlocal present
        known = iter(xs[:k])
        args = [
            Linear(v.aval) if flag else next(known)
            for v, flag in zip(program.inputs, linear, strict=True)
        ]
        shares = iter([copies.share(c, i) for i, c in enumerate(xs[k:])])
        cts = backward(program, args, [next(shares) if g else None for g in given])
        mine = part(cts, linear)
        present = tuple([c is not None for c in mine])
        return [copies.total(c, i) for i, c in enumerate(mine) if c is not None]

    avals = [*part(program.in_avals, linear, False), *cotangents]
    return staged(body, avals, program.name + "_t", prune=True), present


@jvp_rules.rule(inspect_p)
def _(xs, ts: object, *, callback):
    return inspect_p.bind(*xs, callback=callback), []


@jvp_rules.rule(constraint)
def _(xs, ts, *, sharding: "Sharding"):
    (x,), (t,) = xs, ts
    y, have = constraint.bind(x, sharding=sharding), _origin(x, sharding)
    if have is None or same_devices(have.place, sharding.place):
        return y, constraint.bind(t, sharding=sharding)
    return y, transfer.bind(t, sharding=sharding, source=have)


def _origin(x: Any, sharding: "Sharding") -> "Sharding | None":
    """Return where an array is, also one that is differentiated, before it moves to `sharding`.

    None for a traced value, whose program runs in one place; and where a mesh divides an array
    without a chosen place, whose gradient stays divided.
    """
    while isinstance(getattr(x, "by", None), JVP):
        x = x.parts[0]
    if x.__class__ is not Array:
        return None
    moves = isinstance(sharding, SingleDeviceSharding)
    return x.key.placement or (SingleDeviceSharding(first()) if moves else None)


@transpose_rules.rule(constraint)
def _(ct: Value, x: object, *, sharding: "Sharding"):
    return (constraint.bind(ct, sharding=sharding),)


@transpose_rules.rule(transfer)
def _(ct: Value, x: object, *, sharding: "Sharding", source: "Sharding"):
    return (transfer.bind(ct, sharding=source, source=sharding),)


@transpose_rules.rule(release)
def _(ct: Value, x: object):
    return (ct,)
