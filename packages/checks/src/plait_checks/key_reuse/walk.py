"""The check that no random key is used twice, in Programs and when they run.

Every element of an array of keys has a name.  A walk over a program moves names as the program
moves keys: it applies the same operations to the names.  A rule handles each of the few operations
that make or spend keys.  A key at a computed index may be any of the keys, and is the same key for
the same index.  An operation without a rule gives its results new names, so that no error is a
false alarm.  Loops are walked twice, since a second turn reuses the keys of the first.

The setting `debug_key_reuse` turns the check on.  A program is walked once when it is compiled, and
errors name the lines where it was traced.  Each time it runs on keys, these are recorded as spent,
by the identity of their memory.

Invariant: names are only compared.  A walk changes only its own ledger; the global ledger of spent
keys changes only when the program has run.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.errors import KeyReuseError, PlaitError
from plait.ext.errors import here, user_line
from plait.ext.ir import Eqn, Program, Var, freeze_params
from plait.ext.rules import AnyElement, Structural, reuse_rules
from plait.ext.trace import GROUND, Value, as_list, use
from plait.ext.types import INTEGER, OPAQUE, Aval
from plait.ext.values import Array, Literal, from_numpy, is_seeded, wrap

from .names import Known, Names, Same, crowded, few, fresh, mark, meant, picked, unknown

__all__ = ["Walk", "begun"]

_spent: dict[int, Any] = {}
"""Name -> where the key was spent, by programs that have run."""
_repeats: set[int] = set()
"""Names of keys spent by operations that may be repeated."""
_named: dict[int, tuple[Any, np.ndarray]] = {}
"""id of a buffer -> (weak reference to it, names of its elements)."""


# ---- walking -------------------------------------------------------------------------------


class Walk:
    """One pass over a program.

    Attributes:
      spent: name -> where this pass has spent it.
      at: where all equations happen; None: at the line that each one records.
      env: the known values of the variables of the program that is being walked.
      inner: in a call, its line, and the keys that had been spent before.
      repeats: keys spent by operations that may be repeated.
      again: of these, the keys that the current operation has not spent yet.
      numbers: an operation and its operands -> the known value of its result.
    """

    def __init__(self, spent: dict[int, Any] | None = None, at: Any = None):
        self.spent: dict[int, Any] = {} if spent is None else spent
        self.at = at
        self.env: dict[Any, Any] = {}
        self.inner: tuple[Any, set[int]] | None = None
        self.again: set[int] = set()
        self.repeats: set[int] = set()
        self.numbers: dict[Any, Any] = {}

    def spend(self, names: Names, where: object) -> None:
        """Mark these keys as spent; raise KeyReuseError if one of them already was."""
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

    def repeatable(self, e: Eqn, xs: Sequence[Any]) -> list[Any]:
        """Do as `inside` for an operation that may be repeated: a repetition spends no new keys."""
        held, before = self.again, set(self.spent)
        self.again = self.repeats | _repeats
        outs = self.inside(e, xs)
        self.again = held
        self.repeats |= self.spent.keys() - before
        return outs

    def call(self, p: Program, args: Sequence[Any], where: object) -> list[Any]:
        """Walk over a program that is called here, but may have been traced elsewhere."""
        held, before = self.inner, set(self.spent)
        self.inner = held or (where, before)
        outs = self.program(p, args)
        self.inner = held
        for n in self.spent.keys() - before:
            self.spent[n] = where
        return outs

    def is_spent(self, name: int) -> Any:
        """Return where a key was spent; None if it was not."""
        found = (self.spent.get(n) or _spent.get(n) for n in meant(int(name)))
        return next(filter(None, found), None)

    def program(self, p: Program, args: Sequence[Any]) -> list[Any]:
        """Return the known values of a program's outputs."""
        args = [self._fitting(v.aval, x) for v, x in zip(p.inputs, args, strict=True)]
        env: dict[Any, Any] = dict(zip(p.inputs, args))
        for v, x in p.consts:
            env[v] = fresh(x.aval.shape) if is_seeded(x) else names_of(x)
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

    def _fitting(self, aval: Aval, o: object) -> Any:
        """Return `o`, or new names for keys and a new number for integers that have none."""
        if aval.category == OPAQUE:
            return o if o.__class__ is Names else fresh(aval.shape)
        return unknown() if o is None and aval.category <= INTEGER else o

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return `make()` the first time, and the same value after that."""
        if key not in self.numbers:
            self.numbers[key] = make()
        return self.numbers[key]

    def equation(self, e: Eqn, xs: list[Any]) -> list[Any]:
        """Return the known values of an equation's results."""
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

    def numbered(self, e: Eqn, xs: Sequence[Any], make: Callable[[], Any]) -> Any:
        """Return `make()`, and the same value again for the same operation on equal operands."""
        marks = tuple(map(mark, xs))
        if None in marks:
            return make()
        try:
            return self.once((e.prim, freeze_params(e.params), marks), make)
        except TypeError:  # parameters that cannot be hashed
            return make()

    def moved(self, e: Eqn, xs: Sequence[Any]) -> list[Any]:
        """Apply the operation to names and known values."""
        if any(x is None or x.__class__ is Same for x in xs):
            return [None] * len(e.outputs)
        try:
            with use(GROUND):
                got = e.prim.bind(*[from_numpy(np.asarray(x[0])) for x in xs], **e.params)
        except PlaitError:  # symbolic sizes
            return [None] * len(e.outputs)
        made = [np.asarray(y) for y in as_list(got)]
        keys = [o.aval.category == OPAQUE for o in e.outputs]
        return [Names(_real(y)) if k else Known(y) for y, k in zip(made, keys)]

    def at_places(self, e: Eqn, xs: Sequence[Any], sources: Callable) -> list[Any]:
        """Do as `moved`; at unknown indices, each key is one of `sources(place)`."""
        got = self.moved(e, xs)
        if got[0] is None and xs[0].__class__ is Names:
            shape = e.outputs[0].aval.shape
            got = [self.numbered(e, xs, lambda: picked(shape, sources))]
        elif got[0] is None and e.outputs[0].aval.category <= INTEGER:
            got = [self.numbered(e, xs, unknown)]
        return got

    def inside(self, e: Eqn, xs: Sequence[Any]) -> list[Any]:
        """Walk over an operation that runs each of its programs once, by its slots."""
        w = e.prim.higher.slots(e.params)
        slots: list[Any] = [None] * w.count
        for s, x in zip(w.operands, xs, strict=True):
            slots[s] = x
        for program, ins, outs in w.bodies:
            given, borrowed = [], []
            for s, a in zip(ins, program.in_avals, strict=True):
                x: Any = slots[s]
                if s in w.mapped and x.__class__ is not Names:
                    x = None  # the known value holds all rows, not one
                if x.__class__ is Names and x.at.shape != a.shape:
                    borrowed.append((x, fresh(a.shape)))
                    x = borrowed[-1][1]
                given.append(x)
            for s, o in zip(outs, self.program(program, given), strict=True):
                slots[s] = None if s in w.mapped else o
            for whole, piece in borrowed:  # if a piece or a row is spent, the whole is
                where = next(filter(None, map(self.is_spent, piece.at.flat)), None)
                if where is not None:
                    self.spend(whole, where)
        shapes = [o.aval.shape for o in e.outputs]
        return [
            x if x.__class__ is not Names or x.at.shape == shape else None
            for x, shape in zip([slots[s] for s in w.outputs], shapes)
        ]


def _real(names: np.ndarray) -> np.ndarray:
    """Return names, with new ones where no name was moved to."""
    if (names > 0).all():
        return names
    return np.where(names > 0, names, fresh(names.shape).at)


def _known(x: Value) -> Any:
    """Return the known value of a literal; None for other constants."""
    if x.__class__ is Literal and x.aval.category <= INTEGER and few(x.aval):
        return Known(x.numpy())
    return None


def names_of(x: Array) -> Any:
    """Return the known value of an array: the names of its keys, or of key words with names."""
    if x.aval.category == OPAQUE:
        return _of_buffer(x.buffer(), x.aval.shape)
    if few(x.aval):
        return _labelled(x.buffer(), x.aval) or Known(x.numpy())
    return _labelled(x.buffer(), x.aval)


def _labelled(buf: object, aval: Aval) -> Names | None:
    held = _named.get(id(buf))
    if held is None or held[0]() is not buf or held[1].ndim >= aval.ndim:
        return None
    return Names(held[1])


def _of_buffer(buf: object, shape: Sequence[Any]) -> Names:
    """Return the names of the keys in a buffer, giving new ones if they have none."""
    held = _named.get(id(buf))
    if held is not None and held[0]() is buf and held[1].shape == tuple(shape):
        return Names(held[1])
    names = fresh(shape)
    _name(buf, names)
    return names


def _name(buf: object, names: Names) -> None:
    n = id(buf)
    ref = weakref.ref(buf, lambda r: _named.pop(n, None) if _is(n, r) else None)
    _named[n] = ref, names.at


def _is(n: int, ref: object) -> bool:
    return n in _named and _named[n][0] is ref


def _again(before: object, where: object) -> KeyReuseError:
    first, second = user_line(before), user_line(where)
    return KeyReuseError(
        f"a random key is used twice: at {first}, and again at {second}",
        where=where,
        fix="make two of it: a, b = plait.random.split(key); or, to use it again on purpose, "
        "plait.random.clone(key)",
    )


# ---- runs ----------------------------------------------------------------------------------


def begun(program: Program, bufs: list[Any] | None) -> Callable[[list[Any]], None]:
    """Walk over a program that runs on these buffers, or is compiled if there are none.

    Returns a function of the buffers of its results, to be called when the program has run: only
    then are its keys spent.  Raises KeyReuseError if it spends a key again.
    """
    if bufs is None:
        Walk().program(program, [_unseen(a) for a in program.in_avals])
        return lambda made: None
    walk, args = Walk(at=here()), [_seen(b, v.aval) for b, v in zip(bufs, program.inputs)]
    outs = walk.program(program, args)
    for b, v in zip(bufs, program.inputs):  # words that the program uses as keys
        if walk.env.get(v).__class__ is Names:
            _name(b, walk.env[v])

    def ended(made: list[Any]) -> None:
        _spent.update(walk.spent)
        _repeats.update(walk.repeats)
        for b, o in zip(made, outs, strict=True):
            if o.__class__ is Names:
                _name(b, o)

    return ended


def _unseen(aval: Aval) -> Any:
    return fresh(aval.shape) if aval.category == OPAQUE else None


def _seen(buf: object, aval: Aval) -> Any:
    if aval.category == OPAQUE:
        return _of_buffer(buf, aval.shape)
    if few(aval) and aval.dtype.kind in "iub":
        return _labelled(buf, aval) or Known(wrap(buf, aval).numpy())
    return _labelled(buf, aval)
