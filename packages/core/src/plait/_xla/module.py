"""Whole modules: a program as `main`, with the operands that it takes besides its own.

Invariant: a module holds code and no data: constants are operands of `main`, so equal code has
equal bytes whatever it closes over; and it holds source locations only if asked, so the same
function defined on another line is the same code.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._base import jaxlib_api
from .._core.axis_names import unbound
from .._core.ir import Program
from .._core.staging import collector_paused
from .._types.avals import BOOL, Aval
from .._types.dims import Dim, measure_dims
from . import mlir
from .inspection import Question, settle
from .lower import I32, Emitter, Unit
from .mlir import type_of
from .physical import laid_out, physical_key


class Module:
    """A lowered program: `code` (bytecode), `constants` that `main` takes first, `callbacks`,
    the `places` where it must run, of each result the placement, if it was told, and which
    arguments of `main` are `chosen`, placed by the compiler (none of them if it is empty), the
    `questions` that it answers when it compiles, and whether it `has_one_zero`: numbers whose
    type has no negative zero."""

    __slots__ = (
        "code", "constants", "callbacks", "places", "results", "chosen", "questions",
        "has_one_zero",
    )  # fmt: skip

    def __init__(
        self,
        code: bytes,
        unit: Unit,
        results: list,
        keys: Sequence[Any] = (),
        questions: Sequence[Question] = (),
    ):
        self.code, self.callbacks, self.places = code, unit.callbacks, unit.places
        self.questions, self.has_one_zero = questions, mlir.has_one_zero(unit.module)
        self.constants = [x for x in unit.constants.values() if not unit.embeds(x)]
        self.results = results
        chosen = tuple([is_left(unit, k) for k in (*(x.key for x in self.constants), *keys)])
        self.chosen = chosen if any(chosen) else ()

    @property
    def place(self) -> Any:
        """Where it must run; None: on the default device."""
        return self.places[0] if self.places else None


def module_of(
    p: Program,
    donated: Sequence[int] = (),
    keys: Sequence[Any] = (),
    platforms: tuple[str, ...] = ("cpu",),
    locations: bool = False,
    embed: bool | Callable = False,
    instead: Callable | None = None,
    named: Callable | None = None,
    tier: str = "full",
) -> Module:
    """The module whose `main` is `p`, on operands with these dispatch keys.

    `donated` are numbers of inputs whose memory results may take; `embed` writes constant arrays
    into the module, which then stands alone, or, if it is a function, those of which it is true;
    `instead(equation, platforms)` may give a function of values to be lowered rather than an
    equation; `named(equation)` may give a program of that equation alone and its text, which then
    is a function that carries it (`OPERATION`).  `tier` is that in which it will be compiled.
    """
    for name in p.axes:
        raise unbound(name)
    p, keys = laid_out(p), [physical_key(k) for k in keys]
    with jaxlib_api.lock, collector_paused():
        unit = Unit(platforms, locations, embed, instead, named, tier)
        keys = keys or list(p.in_avals)
        for k in (*keys, *(x.key for x in unit.needs(p).values())):
            if k.placement is not None:
                unit.run_at(k.placement.place)
        results = _main(unit, p, donated, keys)
        questions = settle(unit)
        return Module(mlir.bytecode(unit.module), unit, results, keys, questions)


SMALL = 1 << 14
"""The most bytes of an array of the default place of which each device gets a copy."""


def is_chosen(key: Any) -> bool:
    """Whether it is the compiler that says where an argument with this dispatch key lies."""
    return getattr(key.placement, "is_chosen", False)


def is_left(unit: Unit, key: Any) -> bool:
    """Whether it is left to the compiler how an argument of a module is divided: it was asked for,
    or the argument is in the default place, and a copy for each device would be large."""
    if key.placement is not None:
        return is_chosen(key)
    if not unit.places or unit.embed or len(unit.place.devices) == 1:
        return False
    laid = key.aval.physical
    return laid.size.__class__ is int and laid.size * laid.dtype.itemsize > SMALL


def _main(unit: Unit, p: Program, donated: Sequence[int], keys: Sequence[Any]) -> list:
    """Writes `main`; the placements of its results, None where nobody told one."""
    unit.constants = unit.needs(p)
    held = unit.constants
    passed = {k: x for k, x in held.items() if not unit.embeds(x)}
    ins = [type_of(x.aval) for x in passed.values()] + [type_of(a) for a in p.in_avals]
    outs = [type_of(a) for a in p.out_avals]
    b, f = mlir.function(unit.module, "main", ins, outs, public=True)
    args = list(b.arguments)
    unknown = mlir.bindings().unknown
    e = Emitter(unit, mlir.insertion_point(b), {}, {}, {}, {}, unknown)
    e.consts = dict(zip(passed, args))
    e.consts |= {k: e.constant(x.numpy(), x.aval) for k, x in held.items() if k not in passed}
    args = args[len(passed) :]
    e.dims = measured(e, p.in_avals, args)
    results = e.program(p, args)
    e.create("func.return", [], results, None, None, 0, unknown, e.ip)
    attributes = [_argument(unit, x.key, False) for x in passed.values()]
    attributes += [_argument(unit, k, i in donated) for i, k in enumerate(keys)]
    told = [unit.placements.get(r) for r in results] if unit.placements else [None] * len(results)
    mlir.annotate(
        f,
        attributes,
        [{} if t is None else t.attributes(unit, a.ndim) for t, a in zip(told, p.out_avals)],
    )
    if unit.places:
        for o in unit.acting:
            unit.place.once(unit, o)
    return told


def measured(e: Emitter, avals: Sequence[Aval], args: Sequence[Any]) -> dict[str, Any]:
    """Each symbolic size of these types, found from the sizes of axes of values: read off the
    first that is it and nothing else, or computed from several."""
    found: dict[Dim, tuple[Any, int]] = {}
    for x, a in zip(args, avals, strict=True):
        for i, d in enumerate(a.shape):
            if d.__class__ is Dim:
                found.setdefault(d, (x, i))

    def read(d: Dim) -> Any:
        x, i = found[d]
        return e.op("stablehlo.get_dimension_size", [x], I32, dimension=mlir.i64(i))

    asked = sorted({n for d in found for n in d.variables})
    alone = {str(d): d for d in found}
    if all(n in alone for n in asked):
        return {n: read(alone[n]) for n in asked}
    roots: dict[str, Dim] = {}
    how = measure_dims(list(found), roots)
    used = {n for d in (*how.values(), *roots.values()) if isinstance(d, Dim) for n in d.variables}
    e.dims = {f"s{k}": read(d) for k, d in enumerate(found) if f"s{k}" in used}
    for name, square in roots.items():
        e.dims[name] = _square_root(e, e.size(square))
    return {n: e.size(d) for n, d in how.items()}


def _square_root(e: Emitter, n: Any) -> Any:
    """The greatest size of which the square is no more than a size, bit by bit: in operations on
    integers, of which compilers compute the value when they put in sizes."""
    root = e.constant(0, I32)
    for bit in reversed(range(16)):
        wider = e.op("stablehlo.add", [root, e.constant(1 << bit, I32)], I32)
        times = e.op("stablehlo.divide", [n, wider], I32)  # its square may be no i32
        fits = e.compare(wider, times, "LE", Aval((), BOOL))
        root = e.op("stablehlo.select", [fits, wider, root], I32)
    return root


def _argument(unit: Unit, key: Any, donated: bool) -> dict:
    """What an argument of `main` carries; only now is it known where the module runs."""
    placement = key.placement
    if placement is None and unit.places and not is_left(unit, key):
        placement = unit.place.everywhere()
    attributes = {"jax.buffer_donor": mlir.boolean(True)} if donated else {}
    if placement is not None:
        attributes.update(placement.attributes(unit, key.aval.ndim))
    return attributes
