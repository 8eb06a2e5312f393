"""Derivatives of shard_map, and of bringing arrays to devices.

An operand that is not divided over an axis of the mesh is copied along it, and the transpose of
copying is a sum; a result that is not divided is the mean of its equal copies.  With that, the
transpose of psum is psum, and no types of replication are needed.

Invariant: only the tables of plait_autodiff load this.  Residuals pass from device to the same
device: each is one piece per device, along a new leading axis that is divided over the mesh.
"""

from typing import Any, NamedTuple

from plait.ext.ir import (
    Program,
    Var,
    derived,
    evaluate,
)
from plait.ext.ops.collective import (
    psum_,
)
from plait.ext.ops.elementwise import (
    mul,
)
from plait.ext.ops.shape import (
    reshape,
)
from plait.ext.trace import (
    staged,
)
from plait.ext.values import (
    Literal,
)
from plait_autodiff.ext import (
    Halves,
    Kept,
    Linear,
    backward,
    choose,
    divide,
    economise,
    is_linear,
    merge,
    part,
    recompute_rules,
    split_program,
    split_rules,
    transpose_rules,
)

from .manual import shard_map_p
from .mesh import Mesh
from .placement import constraint

# ---- division ------------------------------------------------------------------------------


class Division(NamedTuple):
    """The two programs of a divided shard_map.

    at: for each residual, the known operand that it is, or None if it passes in pieces.
    """

    known: Program
    unknown: Program
    at: list[int | None]


@split_rules.rule(shard_map_p)
def _(split, args, params):
    ins, outs = params["in_specs"], params["out_specs"]
    unknown = divide(split, args)
    h = split_program(params["program"], unknown)
    d = derived(h.known, ("shard_map", h.residuals), lambda: _divided(h), [h.unknown])
    known, known_specs = part(args, unknown, False), part(ins, unknown, False)
    types = h.unknown.in_avals[: h.residuals]
    own = varies_over(params)
    pieces = [(own, *[()] * t.ndim) for t, i in zip(types, d.at) if i is None]
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


def varies_over(params: dict[str, Any]) -> tuple[str, ...]:
    """The axes along which anything inside may differ from device to device.

    Along an axis that no operand is divided over, and of which the program does not speak, all
    devices compute the same: what passes from one shard_map to another is there only once.
    """
    used = {n for spec in params["in_specs"] for names in spec for n in names}
    return tuple([n for n in params["axes"] if n in used or n in params["program"].axes])


def _divided(h: Halves) -> Division:
    """The halves, residuals that are no operands with a leading axis of size 1."""
    n = len(h.known.outputs) - h.residuals
    place = {v: i for i, v in enumerate(h.known.inputs)}
    at = [place.get(a) if a.__class__ is Var else None for a in h.known.outputs[n:]]
    first = choose(h.known, (*(True,) * n, *(i is None for i in at)))

    def known(*xs: Any) -> list:
        outs = evaluate(first, xs)
        return [*outs[:n], *(reshape(r, (1, *r.aval.shape)) for r in outs[n:])]

    def unknown(*xs: Any) -> list:
        own = [reshape(x, x.aval.shape[1:]) if i is None else x for x, i in zip(xs, at)]
        return evaluate(h.unknown, [*own, *xs[len(at) :]])

    types = [
        a.with_shape((1, *a.shape)) if i is None else a for a, i in zip(h.unknown.in_avals, at)
    ]
    types += h.unknown.in_avals[h.residuals :]
    return Division(
        staged(known, h.known.in_avals, h.known.name),
        staged(unknown, types, h.unknown.name),
        at,
    )


# ---- doing again -----------------------------------------------------------------------------


@recompute_rules.rule(shard_map_p)
def _(twice, prim, args, params):
    k = economise(params["program"], twice.policy)
    first, again = derived(k.first, "shard_map again", lambda: _in_pieces(k), [k.again])
    n, types = len(k.redone), k.again.in_avals[: k.kept]
    pieces = [(varies_over(params), *[()] * t.ndim) for t in types]
    now = {**params, "program": first, "out_specs": (*params["out_specs"], *pieces)}
    outs = twice.parent.apply(prim, args, now)
    if any(k.redone):
        later = {**params, "program": again, "in_specs": (*pieces, *params["in_specs"])}
        later["out_specs"] = tuple(part(params["out_specs"], k.redone))
        operands = [*outs[n:], *map(twice.twin, args)]
        twice.pair(part(outs[:n], k.redone), twice.stage.apply(prim, operands, later))
    return outs[:n]


def _in_pieces(k: Kept) -> tuple[Program, Program]:
    """Both programs, what is kept with a leading axis of size 1."""
    n, m = len(k.redone), k.kept

    def first(*xs: Any) -> list:
        outs = evaluate(k.first, xs)
        return [*outs[:n], *(reshape(v, (1, *v.aval.shape)) for v in outs[n:])]

    def again(*xs: Any) -> list:
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
def _(cts, *args, program, mesh, axes, in_specs, out_specs):
    linear, given = tuple(map(is_linear, args)), tuple([c is not None for c in cts])
    params = {"program": program, "in_specs": (*in_specs, *part(out_specs, given)), "axes": axes}
    own = varies_over(params)  # along others, copies of cotangents are as equal as those of values
    copies = Copies(mesh, own, tuple(part(in_specs, linear)), tuple(part(out_specs, given)))
    key = ("transpose shard_map", copies, linear, given)
    q, present = derived(program, key, lambda: _reversed(program, copies, linear, given))
    if not q.outputs:
        return [None] * len(args)
    got = shard_map_p.bind(
        *part(args, linear, False),
        *part(cts, given),
        program=q,
        mesh=mesh,
        axes=axes,
        in_specs=(*part(in_specs, linear, False), *copies.outs),
        out_specs=tuple(part(copies.ins, present)),
    )
    found, there = iter(got), iter(present)
    return [(next(found) if next(there) else None) if flag else None for flag in linear]


class Copies(NamedTuple):
    """Along which axes there are copies of linear operands and of results with a cotangent."""

    mesh: Mesh
    axes: tuple[str, ...]
    ins: tuple
    outs: tuple

    def along(self, spec: tuple) -> tuple[str, ...]:
        """The axes that a spec does not divide over."""
        divided = {n for names in spec for n in names}
        return tuple([n for n in self.axes if n not in divided and self.mesh.shape[n] > 1])

    def share(self, ct: Any, spec: tuple) -> Any:
        """One copy's share of the cotangent of their mean."""
        n = self.mesh.product(self.along(spec))
        return ct if n == 1 else mul.bind(ct, Literal(1 / n, ct.aval))

    def total(self, ct: Any, spec: tuple) -> Any:
        """The sum of the cotangents of copies."""
        names = self.along(spec)
        return psum_.bind(ct, axes=names) if names else ct


def _reversed(
    program: Program, copies: Copies, linear: tuple, given: tuple
) -> tuple[Program, tuple[bool, ...]]:
    """(known pieces, pieces of given cotangents) -> pieces of cotangents of linear operands; and
    which of these there are."""
    present: tuple[bool, ...] = ()
    k = linear.count(False)

    def body(*xs: Any) -> list:
        nonlocal present
        known = iter(xs[:k])
        args = [
            Linear(v.aval) if flag else next(known)
            for v, flag in zip(program.inputs, linear, strict=True)
        ]
        shares = iter([copies.share(c, s) for c, s in zip(xs[k:], copies.outs, strict=True)])
        cts = backward(program, args, [next(shares) if g else None for g in given])
        mine = part(cts, linear)
        present = tuple([c is not None for c in mine])
        return [copies.total(c, s) for c, s in zip(mine, copies.ins) if c is not None]

    avals = [v.aval for v, flag in zip(program.inputs, linear) if not flag]
    avals += [o.aval for o, g in zip(program.outputs, given) if g]
    return staged(body, avals, program.name + "_t", prune=True), present


@transpose_rules.rule(constraint)
def _(ct, x, *, sharding):
    return (constraint.bind(ct, sharding=sharding),)
