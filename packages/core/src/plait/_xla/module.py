"""Whole modules: a program as `main`, with its extra operands (constants).

Invariant: a module holds code and no data.  Constants are operands of `main`, so equal code has
equal bytes, whatever arrays it closes over.  A module holds source locations only on request, so
the same function defined on another line is the same code.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._base import jaxlib_api, lazy
from .._base.config import config
from .._base.errors import UndecidedDim
from .._core.axis_names import unbound
from .._core.check import check
from .._core.ir import Program
from .._core.staging import collector_paused
from .._types.avals import BOOL, Aval, Placed
from .._types.dims import Dim, Scope, measure_dims
from . import mlir
from .inspection import Question, settle
from .lower import I32, Emitter, Unit
from .mlir import type_of
from .physical import laid_out, physical_key

BLOCK = (1 << 25) - (1 << 16)
"""Bytes that the GNU C library keeps when they are freed, with its own numbers beside them."""
MOST = 1 << 31
"""The most bytes of all values of a module that takes its memory in such blocks."""


class Module:
    """A lowered program.

    Attributes:
      code: the bytecode.
      constants: arrays that `main` takes first.
      callbacks: Python functions that it calls, of users and of numpy (`python_calls`).
      places: the places where it must run.
      results: the placement of each result, None where the program does not set it.
      chosen: for each argument of `main`, whether the compiler places it; empty if it places none.
      questions: the placement queries that are answered when it is compiled.
      has_one_zero: whether it has numbers of a type without a negative zero.
      shares_products: whether all processors should share its products (`product_threads`).
      splits_memory: whether its memory comes in several blocks (`is_split`).
      name, equations: the name of the program, and the number of its equations.
    """

    __slots__ = (
        "code", "constants", "callbacks", "places", "results", "chosen", "questions",
        "has_one_zero", "shares_products", "splits_memory", "name", "equations",
    )  # fmt: skip
    code: bytes
    constants: list[Any]
    callbacks: list[Callable[..., Any]]
    places: list[Any]
    results: list[Any]
    chosen: tuple[bool, ...] | tuple[()]
    questions: Sequence[Question]
    has_one_zero: bool
    shares_products: bool
    splits_memory: bool
    name: str
    equations: int

    def __init__(
        self,
        code: bytes,
        unit: Unit,
        results: list[Any],
        keys: Sequence[Any] = (),
        questions: Sequence[Question] = (),
    ):
        self.code, self.callbacks, self.places = code, unit.callbacks, unit.places
        self.questions, self.has_one_zero = questions, mlir.has_one_zero(unit.module)
        self.shares_products = unit.gain > 0
        self.constants = [x for x in unit.constants.values() if not unit.embeds(x)]
        given = [k.aval for k in (*(x.key for x in self.constants), *keys)]
        self.splits_memory = unit.formed and is_split(given, unit.results)
        self.results = results
        chosen = tuple([is_left(unit, k) for k in (*(x.key for x in self.constants), *keys)])
        self.chosen = chosen if any(chosen) else ()
        self.name, self.equations = "a program", 0

    @property
    def calls_users(self) -> bool:
        """True if it calls Python functions of users."""
        calls = self.callbacks
        return bool(calls) and lazy.later("_xla.python_calls").are_users(calls)

    @property
    def place(self) -> Any:
        """The place where it must run; None is the default device."""
        return self.places[0] if self.places else None


def is_split(given: Sequence[Aval], made: Mapping[Aval, int]) -> bool:
    """Return whether the memory of a module on CPUs is taken in blocks of at most `BLOCK` bytes.

    The compiler plans one block for all values of a module.  The C library returns blocks beyond 32
    MB to the system after each call, and gets them back page by page.  Smaller ones it keeps.

    Most values of a module are never in memory, so some modules are split needlessly.  Large
    modules are not split (`MOST`), because the library keeps two to three times their memory.  No
    array may be larger than a block, because the compiler would print a warning.

    Args:
      given: the types of arguments and constants.
      made: the types of all that is computed, and how many values have each.
    """
    total = 0
    for aval in given:
        if _bytes(aval) > BLOCK:
            return False
    for aval, times in made.items():
        size = _bytes(aval)
        if size > BLOCK:
            return False
        total += size * times
    return BLOCK < total <= MOST


def _bytes(aval: Aval) -> int:
    """Return an upper bound of the memory of an array; more than `BLOCK` if it is unknown."""
    size = aval.physical.size
    if size.__class__ is not int:
        return BLOCK + 1
    return size * max(4, aval.physical.dtype.itemsize)  # numbers of 16 bits may become wider


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
    """Return the module whose `main` is `p`, on operands with these dispatch keys.

    Args:
      p: the program.
      donated: the numbers of inputs whose memory results may take.
      keys: the dispatch keys.
      platforms: the platforms that it is lowered for.
      locations: whether the module holds source locations.
      embed: whether to write constant arrays into the module, so that it stands alone; or a
        function of an array that decides this.
      instead, named: as of `Unit`.
      tier: the tier that it will be compiled in.
    """
    for name in p.axes:
        raise unbound(name)
    if config.checks:
        check(p)
    p, keys = laid_out(p), [physical_key(k) for k in keys]
    with jaxlib_api.lock, collector_paused():
        unit = Unit(platforms, locations, embed, instead, named, tier)
        keys = keys or list(p.in_avals)
        for k in (*keys, *(x.key for x in unit.needs(p).values())):
            if k.placement is not None:
                unit.run_at(k.placement.place)
        results = _main(unit, p, donated, keys)
        # A rule wrote operations for one device before a value of several was met.  The places are
        # known now, so the module is written once more with them.
        if unit.supposed_alone and unit.places and len(unit.place.devices) > 1:
            places = unit.places
            unit = Unit(platforms, locations, embed, instead, named, tier)
            unit.places += places
            results = _main(unit, p, donated, keys)
        questions = settle(unit)
        if locations:
            mlir.name_module(unit.module, p.name)
        made = Module(mlir.bytecode(unit.module), unit, results, keys, questions)
        made.name, made.equations = p.name, len(p.eqns)
        return made


SMALL = 1 << 14
"""The most bytes of an array in the default place that is copied to each device."""


def is_chosen(key: Aval | Placed) -> bool:
    """Return whether the compiler chooses the placement of an argument with this dispatch key."""
    return getattr(key.placement, "is_chosen", False)


def is_left(unit: Unit, key: Aval | Placed) -> bool:
    """Return whether the compiler decides how an argument of a module is divided.

    It does so on request, and for arguments in the default place that are too large to copy to each
    device.
    """
    if key.placement is not None:
        return is_chosen(key)
    if not unit.places or unit.embed or len(unit.place.devices) == 1:
        return False
    laid = key.aval.physical
    return laid.size.__class__ is int and laid.size * laid.dtype.itemsize > SMALL


def _main(unit: Unit, p: Program, donated: Sequence[int], keys: Sequence[Any]) -> list:
    """Write `main`; return the placements of its results, None where the program sets none."""
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
    # Only now: a rule inside of the program may have been the first to name the devices.
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
    """Return each symbolic size of these types, found from the sizes of axes of values.

    A size is read off the first axis that equals it, or computed from several axes.  Raises
    UndecidedDim for sizes that arguments do not determine.
    """
    # The keys are texts: two names may be equal by a constraint, and each is looked up.
    found: dict[str, tuple[Dim, Any, int]] = {}
    for x, a in zip(args, avals, strict=True):
        for i, d in enumerate(a.shape):
            if d.__class__ is Dim:
                found.setdefault(str(d), (d, x, i))

    def read(text: str) -> Any:
        _, x, i = found[text]
        return e.op("stablehlo.get_dimension_size", [x], I32, dimension=mlir.i64(i))

    dims = [d for d, _, _ in found.values()]
    constrained = dims[0].scope.names if dims else frozenset()
    asked = sorted({n for d in dims for n in d.variables})
    if all(n in found for n in constrained.union(asked)):
        return {n: read(n) for n in asked}
    roots: dict[str, Dim] = {}
    how = measure_dims(dims, roots)
    _expect_measured(dims[0].scope, how)
    used = {n for d in (*how.values(), *roots.values()) if isinstance(d, Dim) for n in d.variables}
    e.dims = {f"s{k}": read(text) for k, text in enumerate(found) if f"s{k}" in used}
    for name, square in roots.items():
        e.dims[name] = _square_root(e, e.size(square))
    return {n: e.size(d) for n, d in how.items()}


def _expect_measured(scope: Scope, how: Mapping[str, Any]) -> None:
    """Raise UndecidedDim for a constraint on a size that arguments do not determine.

    No call could check it, although shapes may have been decided by it.
    """
    for fact in scope.facts:
        unknown = sorted(fact.names - how.keys())
        if unknown:
            raise UndecidedDim(
                f"the constraint {fact.constraint} is about {unknown[0]}, which the sizes of "
                "arguments do not determine: it could not be checked",
                fix=f"leave the constraint out, or give an argument with an axis of size "
                f"{unknown[0]}, as an array of shape (0, {unknown[0]})",
            )


def _square_root(e: Emitter, n: Any) -> Any:
    """Return the integer square root of a size, bit by bit.

    Only integer operations are used: compilers fold them to a constant once sizes are known.
    """
    root = e.constant(0, I32)
    for bit in reversed(range(16)):
        wider = e.op("stablehlo.add", [root, e.constant(1 << bit, I32)], I32)
        times = e.op("stablehlo.divide", [n, wider], I32)  # `wider` squared could overflow i32
        fits = e.compare(wider, times, "LE", Aval((), BOOL))
        root = e.op("stablehlo.select", [fits, wider, root], I32)
    return root


def _argument(unit: Unit, key: Aval | Placed, donated: bool) -> dict:
    """Return the attributes of an argument of `main`.  Called once the devices are known."""
    placement = key.placement
    if placement is None and unit.places and not is_left(unit, key):
        placement = unit.place.everywhere()
    attributes = {"jax.buffer_donor": mlir.boolean(True)} if donated else {}
    if placement is not None:
        attributes.update(placement.attributes(unit, key.aval.ndim))
    return attributes
