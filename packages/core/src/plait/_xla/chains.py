"""Long chains of sums, which the CPU compiler would compute again in each loop that reads them.

The compiler computes an operation of elements again in each loop that reads it, unless it is
expensive.  In a deep network each layer adds to one array, and its derivative to another.  The
loops of a layer would then read what all other layers have added.

So a sum is written to memory if it is a link of a long chain: values of one form, each a part of
the next, each with a loop that reads it and not the next.  All values of that form are, so that
equal layers stay equal: the compiler takes its time for each loop that differs.

Invariant: a value that is written is the result of arithmetic on floats.
"""

import functools
import operator
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .._base.jaxlib_api import IrOperation, IrValue
from . import fusion, mlir
from .value_numbers import Forms

_STEPS = 2
"""The operations in a row that make the form of a value."""

_BITS = 1 << 10
"""The bits of the integer that stands for a set; in large modules, several members share one."""

_MOVED = {
    "stablehlo." + n
    for n in (
        *("transpose", "slice", "reverse", "pad", "concatenate", "dynamic_slice"),
        *("real", "imag", "complex"),
    )
}
_AGAIN = fusion.CHEAP | fusion.FILLED | _MOVED
"""Operations that the compiler computes again in each loop that reads them."""


class _Step(NamedTuple):
    """An operation.  Values are known by their numbers."""

    op: IrOperation
    name: str
    callee: str
    """The function that it calls, or nothing."""
    operands: Sequence[int]
    results: Sequence[int]
    blocks: Sequence[Any]
    is_part: bool
    """True if the operation may be a part of a loop."""


class _Block(NamedTuple):
    arguments: Sequence[int]
    steps: Sequence[_Step]
    returned: Sequence[int]


class _Link(NamedTuple):
    """The last link of a chain."""

    number: int
    loops: int
    """The set of the loops that read it, and compute it again."""


class _Part(NamedTuple):
    """The part of a loop that computes one of the values that the loop reads."""

    arrays: int
    """The set of the arrays that it reads from memory."""
    chains: Mapping[Any, _Link]
    """The chains in it, by their forms."""


_NOTHING = _Part(0, {})


class Chains:
    """The chains of a module, found function by function.

    Args:
      functions: those of the module, by name.
      expensive: the names of operations that are not computed again if several read them.
      sums: the names of operations that may be links.
      floats: the types of the elements that they may have.
      entered: the names of operations whose regions are searched.
      fewest: the fewest links of a long chain.
    """

    def __init__(
        self,
        functions: Mapping[str, IrOperation],
        expensive: Container[str],
        sums: Container[str],
        floats: Container[str],
        entered: Container[str],
        fewest: int,
    ) -> None:
        self.expensive, self.sums, self.floats = expensive, sums, floats
        self.entered, self.fewest = entered, fewest
        self.values: list[IrValue] = []
        self.numbers: dict[IrValue, int] = {}
        self.blocks = {n: self.code(f.regions[0].blocks[0]) for n, f in functions.items()}
        self.loops = [0] * len(self.values)
        """The set of the loops that read each value."""
        self.ends: dict[str, list[int]] = {}
        """The loops that end at the results of each function."""
        self.count = 0
        """The loops that were found."""
        self.forms = Forms(_STEPS)
        self.long: set[Any] = set()
        """The forms of long chains."""
        self.links: dict[IrValue, None] = {}
        self.parts = [_NOTHING] * len(self.values)
        self.done: set[str] = set()
        """The functions whose parts are known."""

    def code(self, b: Any) -> _Block:
        """Number the values of a block, and return its operations."""
        arguments = self.numbered(b.arguments)
        steps = []
        *others, last = [o.operation for o in b.operations]
        for op in others:
            name = op.name
            blocks = (
                [self.code(x) for r in op.regions for x in r.blocks] if name in self.entered else ()
            )
            callee = mlir.word(op, "callee") if name == "func.call" else ""
            operands = [self.numbers[x] for x in op.operands]
            is_part = name in _AGAIN or name in self.expensive
            steps.append(
                _Step(op, name, callee, operands, self.numbered(op.results), blocks, is_part)
            )
        return _Block(arguments, steps, [self.numbers[x] for x in last.operands])

    def numbered(self, values: Iterable[IrValue]) -> Sequence[int]:
        """Number new values."""
        start = len(self.values)
        self.values += values
        found = range(start, len(self.values))
        self.numbers.update(zip(self.values[start:], found))
        return found

    def find(self) -> Iterable[IrValue]:
        """Return the sums that make the links of all long chains.

        Others may be no longer, or may become visible, once those of one form are in memory.
        """
        for name in self.blocks:
            self.read(name)
        known = -1
        while self.count >= self.fewest and len(self.long) > known:
            known = len(self.long)
            self.links = {}
            self.done.clear()
            for name in self.blocks:
                self.function(name)
        return self.links

    # -- loops ---------------------------------------------------------------------------------

    def loop(self) -> int:
        """Return the set of one loop more."""
        self.count += 1
        return _set_of(self.count)

    def read(self, name: str) -> None:
        """Find the loops that read the values of a function."""
        if name not in self.ends:
            block = self.blocks[name]
            self.ends[name] = [self.loop() for _ in block.returned]
            self.read_in(block, self.ends[name])

    def read_in(self, block: _Block, ends: Iterable[int]) -> None:
        """Find the loops that read the values of a block, whose results are read by others.

        A loop ends where its result is read by an operation outside of loops.
        """
        loops = self.loops
        for x, end in zip(block.returned, ends):
            loops[x] |= end
        for step in reversed(block.steps):
            for inner in step.blocks:
                self.read_in(inner, [self.loop() for _ in inner.returned])
            if step.is_part:
                found = loops[step.results[0]]
                for x in step.operands:
                    loops[x] |= found
            elif step.callee in self.blocks:
                self.read_by_call(step)
            else:
                end = self.loop()
                for x in step.operands:
                    loops[x] |= end

    def read_by_call(self, step: _Step) -> None:
        """Find the loops that read the operands of a call: one for all in the function, and those
        that read its results if an operand is computed again in them."""
        self.read(step.callee)
        here, ends = self.loop(), _union(self.ends[step.callee])
        outer = _union(self.loops[y] for y in step.results)
        for x, a in zip(step.operands, self.blocks[step.callee].arguments):
            found = self.loops[a]
            self.loops[x] |= (outer if found & ends else 0) | (here if found & ~ends else 0)

    # -- chains --------------------------------------------------------------------------------

    def function(self, name: str) -> None:
        """Find the parts of the values of a function."""
        if name not in self.done:
            self.done.add(name)
            self.block(self.blocks[name])

    def block(self, block: _Block) -> None:
        """Find the parts of the values of a block; arguments are arrays.

        So are results of expensive operations, for values that several loops read.
        """
        parts = self.parts
        for x in block.arguments:
            parts[x] = _array(x)
        for step in block.steps:
            for inner in step.blocks:
                self.block(inner)
            if step.callee in self.blocks:
                self.function(step.callee)
                for i, x in enumerate(step.results):
                    parts[x] = self.linked(x, self.called(step, i), (step.callee, i))
            elif step.name in _AGAIN:
                (x,) = step.results
                part = _joined([parts[y] for y in step.operands])
                if step.name in self.sums and _are_several(part.arrays):
                    part = self.linked(x, part)
                parts[x] = part
            else:
                for x in step.results:
                    parts[x] = _array(x)

    def called(self, step: _Step, i: int) -> _Part:
        """Return the part of a result of a call, from those of the operands and in the function."""
        block = self.blocks[step.callee]
        arrays = self.parts[block.returned[i]].arrays
        found = []
        for a, x in zip(block.arguments, step.operands):
            if arrays & _set_of(a):
                arrays &= ~_set_of(a)
                found.append(self.parts[x])
        return _joined([_array(step.results[i]), *found] if arrays else found)

    def linked(self, x: int, part: _Part, form: Any = None) -> _Part:
        """Return the part of a value that its readers compute again; calls have forms."""
        loops = self.loops[x]
        written = self.sum_of(self.values[x]) if _are_several(loops) else None
        if written is None:
            return part
        form = form or self.forms.of(self.values[x])
        before = part.chains.get(form)
        number = before.number if before else 1
        if before and before.loops & ~loops:
            number += 1
            if number >= self.fewest:
                self.long.add(form)
        if form in self.long:
            self.links[written] = None
            return _array(x)
        return _Part(part.arrays, {**part.chains, form: _Link(number, loops)})

    def sum_of(self, x: IrValue) -> IrValue | None:
        """Return the sum or product of floats that a value is, in a function or rectified, too."""
        while (op := mlir.maker(x)) is not None:
            t: Any = x.type
            arrays = [y for y in op.operands if not fusion.is_filled(y)]
            if op.name in self.sums:
                return x if t.has_static_shape and str(t.element_type) in self.floats else None
            if op.name == "func.call" and mlir.word(op, "callee") in self.blocks:
                returned = self.blocks[mlir.word(op, "callee")].returned
                x = self.values[returned[list(op.results).index(x)]]
            elif op.name in fusion.CHEAP and len(arrays) == 1:
                (x,) = arrays
            else:
                break
        return None


def _set_of(number: int) -> int:
    return 1 << number % _BITS


def _union(sets: Iterable[int]) -> int:
    return functools.reduce(operator.or_, sets, 0)


def _are_several(members: int) -> bool:
    """Return whether a set has several members."""
    return members & (members - 1) != 0


def _array(x: int) -> _Part:
    """Return the part of a value in memory."""
    return _Part(_set_of(x), {})


def _joined(parts: list[_Part]) -> _Part:
    """Return the part of a value that is computed from several."""
    if len(parts) < 2:
        return parts[0] if parts else _NOTHING
    arrays, chains = parts[0]
    for p in parts[1:]:
        arrays |= p.arrays
        if p.chains and p.chains is not chains:
            found = dict(chains)
            for form, link in p.chains.items():
                found[form] = max(link, found.get(form, link))
            chains = found
    return _Part(arrays, chains)
