"""The check that no random key is used twice, of Programs and of what runs.

Every element of an array of keys has a name.  Walking over a program, names are moved as the keys
would be: by the very operations, applied to the names.  A rule says of the few operations that
make or spend keys what they do; a key at a place that is computed may be any, and is the same one
wherever the place is the same.  What an operation does to keys is not known of (a stranger's) gives
keys new names, so that no error is false because of it.  Loops are walked twice: a second turn uses
again what the first one left.

The setting `debug_key_reuse` turns it on.  A program that is compiled is walked once, with lines
from where it was traced; and whenever it runs on keys, these are spent for good, by the identity
of their memory.

Invariant: names are only compared.  A walk changes nothing but the ledger, and the ledger of what
is spent only when the program has run.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.config import config
from .._base.errors import KeyReuseError, PlaitError
from .._base.freezing import freeze_params
from .._base.source import here, user_line
from .._core.array import Array, Literal, from_numpy
from .._core.buffers import get
from .._core.interpreter import GROUND, as_list, current, use
from .._core.ir import Program, Var
from .._plugins.rules import RuleTable
from .._plugins.traits import AnyElement, Structural
from .._types.avals import INTEGER, OPAQUE, Aval
from .key_names import Known, Names, Same, crowded, few, fresh, mark, meant, picked, unknown
from .physical import speaks

__all__ = ["Walk", "guarded", "reuse_rules", "seeded"]

reuse_rules = RuleTable(
    "reuse",
    owns=("core",),
    signature="(walk, e, xs)",
    programs="(walk, e, xs)",
    doc="for each result its Names, or None: what an operation does to keys; "
    "`e` is the equation, `xs` are Names, Known values, Same ones or None.",
)

_spent: dict[int, Any] = {}
"""Name -> where it was spent, of what has run."""
_repeats: set[int] = set()
"""What was spent by operations that may be done again."""
_named: dict[int, tuple[Any, np.ndarray]] = {}
"""id of a buffer -> (weak reference to it, names of its elements)."""


# ---- walking -------------------------------------------------------------------------------


class Walk:
    """One pass over a program.

    Attributes:
      spent: name -> where, of what this pass has spent.
      at: where everything happens; None: where each equation says.
      env: what is known of the variables of the program that is walked now.
      inner: in a call, where it is, and what had been spent before.
      repeats: what was spent by operations that may be done again; `again`: of these, what is not
        yet spent in the one that is done now.
      numbers: what is computed, and of what -> what is known of the result.
    """

    def __init__(self, spent: dict[int, Any] | None = None, at: Any = None):
        self.spent: dict[int, Any] = {} if spent is None else spent
        self.at = at
        self.env: dict[Any, Any] = {}
        self.inner: tuple[Any, set[int]] | None = None
        self.again: set[int] = set()
        self.repeats: set[int] = set()
        self.numbers: dict[Any, Any] = {}

    def spend(self, names: Names, where: Any) -> None:
        """These keys are used up; raises KeyReuseError if one of them was already."""
        where = where if self.at is None else self.at
        for name in names.at.flat:
            for n in meant(int(name)):
                before = self.spent.get(n) or _spent.get(n) or crowded(n, self.is_spent)
                if before is not None and n in self.again:
                    self.again.discard(n)
                elif before is not None:
                    if self.inner is not None and (n in self.inner[1] or n not in self.spent):
                        where = self.inner[0]
                    raise _again(before, where)
                self.spent[n] = where

    def repeatable(self, e: Any, xs: Sequence[Any]) -> list[Any]:
        """As `inside`, of an operation that may be done once more: that spends nothing new."""
        held, before = self.again, set(self.spent)
        self.again = self.repeats | _repeats
        outs = self.inside(e, xs)
        self.again = held
        self.repeats |= self.spent.keys() - before
        return outs

    def call(self, p: Program, args: Sequence[Any], where: Any) -> list[Any]:
        """A program called here: traced elsewhere, maybe, and long ago."""
        held, before = self.inner, set(self.spent)
        self.inner = held or (where, before)
        outs = self.program(p, args)
        self.inner = held
        for n in self.spent.keys() - before:
            self.spent[n] = where
        return outs

    def is_spent(self, name: Any) -> Any:
        """Where a key was spent; None if it was not."""
        found = (self.spent.get(n) or _spent.get(n) for n in meant(int(name)))
        return next(filter(None, found), None)

    def program(self, p: Program, args: Sequence[Any]) -> list[Any]:
        """What is known of the outputs."""
        args = [self._fitting(v.aval, x) for v, x in zip(p.inputs, args, strict=True)]
        env: dict[Any, Any] = dict(zip(p.inputs, args))
        for v, x in p.consts:
            env[v] = fresh(x.aval.shape) if _is_seeded(x) else names_of(x)
            if env[v] is None:
                env[v] = self.once(id(x), unknown)
        self.env = env
        read = lambda a: env.get(a) if a.__class__ is Var else _known(a)  # noqa: E731
        for e in p.eqns:
            outs = self.equation(e, [read(a) for a in e.inputs])
            self.env = env
            for v, o in zip(e.outputs, outs, strict=True):
                env[v] = self._fitting(v.aval, o)
        return [read(a) for a in p.outputs]

    def _fitting(self, aval: Aval, o: Any) -> Any:
        """Every key has a name, and every integer a number."""
        if aval.category == OPAQUE:
            return o if o.__class__ is Names else fresh(aval.shape)
        return unknown() if o is None and aval.category <= INTEGER else o

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """`make()`, the first time; then the same."""
        if key not in self.numbers:
            self.numbers[key] = make()
        return self.numbers[key]

    def equation(self, e: Any, xs: list[Any]) -> list[Any]:
        """What is known of the results of an equation."""
        prim, outs = e.prim, [o.aval for o in e.outputs]
        rule = reuse_rules.find(prim)
        if rule is not None:
            return rule(self, e, xs)
        if prim.higher is not None:
            return self.inside(e, xs)
        if any(a.category == OPAQUE for a in outs):
            moves = Structural in prim.traits or AnyElement in prim.traits
            return self.moved(e, xs) if moves and prim.ambient is None else [None] * len(outs)
        if prim.effect is not None or prim.ambient is not None or prim.many:
            return [None] * len(outs)
        if all(x.__class__ is Known for x in xs) and few(outs[0]):
            return self.moved(e, xs)
        return [self.numbered(e, xs, unknown)] if outs[0].category <= INTEGER else [None]

    def numbered(self, e: Any, xs: Sequence[Any], make: Callable[[], Any]) -> Any:
        """`make()`, and the same again for the same operation of equal operands."""
        marks = tuple(map(mark, xs))
        if None in marks:
            return make()
        try:
            return self.once((e.prim, freeze_params(e.params), marks), make)
        except TypeError:  # parameters that can not be hashed
            return make()

    def moved(self, e: Any, xs: Sequence[Any]) -> list[Any]:
        """The operation applied to names and to what is known."""
        if any(x is None or x.__class__ is Same for x in xs):
            return [None] * len(e.outputs)
        try:
            with use(GROUND):
                got = e.prim.bind(*[from_numpy(np.asarray(x[0])) for x in xs], **e.params)
        except PlaitError:  # sizes that are symbols
            return [None] * len(e.outputs)
        made = [np.asarray(y) for y in as_list(got)]
        keys = [o.aval.category == OPAQUE for o in e.outputs]
        return [Names(_real(y)) if k else Known(y) for y, k in zip(made, keys)]

    def at_places(self, e: Any, xs: Sequence[Any], sources: Callable) -> list[Any]:
        """As `moved`; of places that are not known, each key is one of `sources(place)`."""
        got = self.moved(e, xs)
        if got[0] is None and xs[0].__class__ is Names:
            shape = e.outputs[0].aval.shape
            got = [self.numbered(e, xs, lambda: picked(shape, sources))]
        elif got[0] is None and e.outputs[0].aval.category <= INTEGER:
            got = [self.numbered(e, xs, unknown)]
        return got

    def inside(self, e: Any, xs: Sequence[Any]) -> list[Any]:
        """An operation that runs each of its programs once, by its slots."""
        w = e.prim.higher.slots(e.params)
        slots: list[Any] = [None] * w.count
        for s, x in zip(w.operands, xs, strict=True):
            slots[s] = x
        for program, ins, outs in w.bodies:
            given, borrowed = [], []
            for s, a in zip(ins, program.in_avals, strict=True):
                x: Any = slots[s]
                if s in w.mapped and x.__class__ is not Names:
                    x = None  # known of all rows at once
                if x.__class__ is Names and x.at.shape != a.shape:
                    borrowed.append((x, fresh(a.shape)))
                    x = borrowed[-1][1]
                given.append(x)
            for s, o in zip(outs, self.program(program, given), strict=True):
                slots[s] = None if s in w.mapped else o
            for whole, piece in borrowed:  # a piece or a row: what is done to it is done to all
                where = next(filter(None, map(self.is_spent, piece.at.flat)), None)
                if where is not None:
                    self.spend(whole, where)
        shapes = [o.aval.shape for o in e.outputs]
        return [
            x if x.__class__ is not Names or x.at.shape == shape else None
            for x, shape in zip([slots[s] for s in w.outputs], shapes)
        ]


def _real(names: np.ndarray) -> np.ndarray:
    """Names, where nothing was moved to: new ones."""
    if (names > 0).all():
        return names
    return np.where(names > 0, names, fresh(names.shape).at)


def _known(x: Any) -> Any:
    """What is known of a literal or a constant."""
    if x.__class__ is Literal and x.aval.category <= INTEGER and few(x.aval):
        return Known(x.numpy())
    return None


def names_of(x: Array) -> Any:
    """What is known of an array: the names of keys, or of words of keys that have been named."""
    if x.aval.category == OPAQUE:
        return _of_buffer(x.buffer(), x.aval.shape)
    if few(x.aval):
        return _labelled(x.buffer(), x.aval) or Known(x.numpy())
    return _labelled(x.buffer(), x.aval)


_seeds: dict[int, Any] = {}
"""id of a buffer -> weak reference to it, of keys made of numbers while something was traced."""


def seeded(x: Array) -> None:
    """A key was made of a number while a function was traced: the program makes it each time."""
    if config.debug_key_reuse and current() is not GROUND:
        buf, n = x.buffer(), id(x.buffer())
        _seeds[n] = weakref.ref(buf, lambda r: _seeds.pop(n, None) if _seeds.get(n) is r else None)


def _is_seeded(x: Array) -> bool:
    held = _seeds.get(id(x.buffer())) if x.aval.category == OPAQUE and _seeds else None
    return held is not None and held() is x.buffer()


def _labelled(buf: Any, aval: Aval) -> Names | None:
    held = _named.get(id(buf))
    if held is None or held[0]() is not buf or held[1].ndim >= aval.ndim:
        return None
    return Names(held[1])


def _of_buffer(buf: Any, shape: Sequence[Any]) -> Names:
    """The names of the keys in a buffer, given now if they have none."""
    held = _named.get(id(buf))
    if held is not None and held[0]() is buf and held[1].shape == tuple(shape):
        return Names(held[1])
    names = fresh(shape)
    _name(buf, names)
    return names


def _name(buf: Any, names: Names) -> None:
    n = id(buf)
    ref = weakref.ref(buf, lambda r: _named.pop(n, None) if _is(n, r) else None)
    _named[n] = ref, names.at


def _is(n: int, ref: Any) -> bool:
    return n in _named and _named[n][0] is ref


def _again(before: Any, where: Any) -> KeyReuseError:
    first, second = user_line(before), user_line(where)
    return KeyReuseError(
        f"a random key is used twice: at {first}, and again at {second}",
        where=where,
        fix="make two of it: a, b = plait.random.split(key); or, to use it again on purpose, "
        "plait.random.clone(key)",
    )


# ---- what runs -----------------------------------------------------------------------------


def guarded(run: Any, program: Program) -> Any:
    """`run` for a program of keys, which spends those it is given while the setting is on."""
    if not speaks(program):
        return run
    if config.debug_key_reuse:
        Walk().program(program, [_unseen(a) for a in program.in_avals])

    def spending(bufs: list) -> Any:
        if not config.debug_key_reuse:
            return run(bufs)
        walk, args = Walk(at=here()), [_seen(b, v.aval) for b, v in zip(bufs, program.inputs)]
        outs = walk.program(program, args)
        for b, v in zip(bufs, program.inputs):  # words that turned out to be keys
            if walk.env.get(v).__class__ is Names:
                _name(b, walk.env[v])
        results = run(bufs)
        _spent.update(walk.spent)
        _repeats.update(walk.repeats)
        return _Results(results, outs)

    return spending


def _unseen(aval: Aval) -> Any:
    return fresh(aval.shape) if aval.category == OPAQUE else None


def _seen(buf: Any, aval: Aval) -> Any:
    if aval.category == OPAQUE:
        return _of_buffer(buf, aval.shape)
    if few(aval) and aval.dtype.kind in "iub":
        return _labelled(buf, aval) or Known(get(buf))
    return _labelled(buf, aval)


class _Results:
    """The results of a run, whose keys get their names."""

    __slots__ = ("results", "outs")

    def __init__(self, results: Any, outs: list[Any]):
        self.results, self.outs = results, outs

    def consume_with_handlers(self, handlers: Any) -> list:
        """As of the runtime."""
        bufs = self.results.consume_with_handlers(handlers)
        for b, o in zip(bufs, self.outs, strict=True):
            if o.__class__ is Names:
                _name(b, o)
        return bufs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.results, name)
