"""Protection of operations from compiler simplifications that change results.

The compiler simplifies a / b / c to a / (b * c), and (x + c) - c to x; it assumes that abs(x) >= 0
holds.  Such a pattern is an operation with an operand that another one made.  Where a module has
one, an operation is inserted that changes no bit and costs nothing in the machine code:

* between floats, `reduce_precision` to more bits than there are, which the compiler keeps; or the
  sum with a number that is -0, where a library of kernels computes rows and knows sums alone;
* beside a divisor that is constant or broadcast, such a sum or a selection: the compiler would
  multiply by its reciprocal, which may be zero or infinite;
* between integers, a clamp to the least and the greatest number.

So a compiled module returns the results of its operations, one after the other.  Inlining
functions, removing loops of one turn and moving elements can create a pattern later.  Hence
arguments of regions count as the result of any operation, and those of functions with several calls
as that of any operand.

Invariant: a module computes the same bits as before, for any compiler that follows the StableHLO
specification; it has the same functions, arguments and results.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from .._base import jaxlib_api
from .._base.jaxlib_api import IrOperation, IrType, IrValue
from .._base.lazy import later
from . import mlir, origins
from .origins import ANYTHING, NOTHING, UNKNOWN, Kind, Mark, any_of, same_scale, value_of

VERSION = 32
"""Part of the cache keys on disk; raise it when this pass changes, or `chains`, `fusion`,
`positions`, `extremes` or `kernel_order`."""


_ENTERED = {
    "stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.manual_computation",
    "sdy.named_computation",
}  # fmt: skip
"""Operations whose regions are walked.  Sorts and reductions are left alone: the compiler
recognises them by the exact text of their regions."""

_MOVING = {
    "stablehlo." + n
    for n in (
        *("broadcast_in_dim", "dynamic_broadcast_in_dim", "reshape", "dynamic_reshape", "pad"),
        *("transpose", "reverse", "slice", "dynamic_slice", "concatenate", "gather"),
        *("dynamic_update_slice", "real", "imag", "complex"),
    )
}
_OPERANDS_MOVED = {"stablehlo.pad": 2, "stablehlo.concatenate": None, "stablehlo.complex": 2,
                   "stablehlo.dynamic_update_slice": 2}  # fmt: skip
"""Count of the operands whose elements are moved, if not only the first; None stands for all."""

_CUTTING = {"stablehlo." + n for n in ("slice", "dynamic_slice", "gather")}
"""Operations that may return elements of one of several joined values."""

_FUNCTIONS = {"stablehlo." + n for n in ("exponential_minus_one", "logistic")}
"""Functions that the compiler computes with the exponential, as it does some of CHLO."""

_OF_EXPONENTIALS = {
    "func.return", *("stablehlo." + n for n in ("divide", "dot_general", "multiply", "reduce"))
}  # fmt: skip
"""Operations that read an exponential and do not add to it."""

_COMPOSED = {"stablehlo." + n for n in ("tan", "log_plus_one")}
"""Operations that the compiler expands to others, as it does all those of CHLO."""

_SPREADING = {"stablehlo.broadcast_in_dim", "stablehlo.reshape"}

_EXPENSIVE = {
    "chlo.erf",
    *(
        "stablehlo." + n
        for n in (
            *("atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log"),
            *("log_plus_one", "logistic", "power", "remainder", "rsqrt", "sine", "sqrt", "tan"),
            "tanh",
        )
    ),
}
"""Operations of elements that the compiler does not compute twice."""

_SUMS = {"stablehlo." + n for n in ("add", "subtract", "multiply")}
"""Operations that may be links of long chains."""

_WIDE = ("f32", "bf16", "f64")
"""Types whose least normal number is less than 2**-60."""

_COUNT_OF_ZEROS = 64
"""The numbers that are -0 in each block."""

_MINUS_ZERO = {"f32": "0x80000000", "f64": "0x8000000000000000"}
"""The bits of -0."""

_ONE = {
    "f16": (16, 0x3C00), "bf16": (16, 0x3F80), "f32": (32, 0x3F800000), "f64": (64, 0x3FF << 52)
}  # fmt: skip
"""The count of bits of floats, and the bits of 1."""

_LINKS = 5
"""The fewest links of a chain of sums that are written to memory."""

_WORDS = (
    *(b"divide", b"multiply", b"add", b"subtract", b"compare", b"exponential", b"logistic"),
    *(b"abs", b"sqrt", b"log", b"power", b"tan", b"clamp", b"chlo", b"reduce"),
)


def kept_apart(code: bytes, cpus: int = 0) -> bytes:
    """Return the code of a module that computes the same, without patterns that the compiler
    simplifies; `cpus` is how many of these it runs on, 0 for devices of other kinds."""
    if not any(word in code for word in _WORDS):
        return code
    with jaxlib_api.lock:
        module = mlir.parse(code)
        walk = _Walk(cpus, [f.operation for f in module.body.operations])
        if walk.shared:
            copy = mlir.parse(code)
            first = _Walk(cpus, [f.operation for f in copy.body.operations])
            walk.returned = first.results()
        walk.module()
        for op in walk.dead:
            op.erase()
        if cpus and walk.expensive:
            later("_xla.fusion").merge(walk.expensive, _EXPENSIVE, walk.narrow)
            if walk.counted:
                walk.changed |= later("_xla.positions").as_floats(walk.counted)
        if cpus and (walk.sums >= _LINKS or walk.shared):
            chains = later("_xla.chains").Chains(
                walk.functions, _EXPENSIVE, sums=_SUMS, floats=_ONE, entered=_ENTERED, fewest=_LINKS
            )
            for x in chains.find():
                walk.in_memory(x)
        return mlir.bytecode(module) if walk.changed else code


class _Walk:
    """One pass over a module, in the order in which its operations run."""

    def __init__(self, cpus: int, functions: Sequence[IrOperation]) -> None:
        self.cpus = cpus
        self.functions = {mlir.word(f, "sym_name"): f for f in functions
                          if f.name == "func.func" and len(f.regions[0].blocks)}  # fmt: skip
        self.has_rows = False
        """True if the library of kernels may compute a part of the module."""
        self.calls: Counter[str] = Counter()
        self.named: set[str] = set()
        """Functions that are not only called where the walk comes by."""
        for f in self.functions.values():
            self._count(f, True)
        self.shared = dict.fromkeys(
            n for n in self.functions if self.calls[n] > 1 and n not in self.named
        )
        """Functions with several calls."""
        self.given: defaultdict[str, list[list[Mark]]] = defaultdict(list)
        """The marks of the operands of each call that was met, by function."""
        self.only_marks = False
        """True if no operation is inserted that would hide what made a value."""
        self.of_arrays: Counter[str] = Counter()
        """Calls of arrays among these, in modules with sums of rows."""
        self.returned: dict[str, list[tuple[Mark, int]]] = {}
        """The marks of the results of shared functions, whatever their arguments are, and their
        states where these are arrays."""
        self.m = mlir.bindings()
        self.marks: dict[Any, Mark] = {}
        self.kinds: dict[Any, Kind] = {}
        self.changed = False
        self.dead: list[Any] = []
        """Operations that others have replaced."""
        self.expensive: list[IrOperation] = []
        """Operations of `_EXPENSIVE`."""
        self.sums = 0
        """The sums and products that the walk has come by."""
        self.counted: list[IrOperation] = []
        """Operations that return positions along an axis."""
        self.spread = False
        """True if the compiler may compute this operation before its operands are broadcast."""
        self.unforeseen: Any = later("_xla.unforeseen").Unforeseen() if self.has_rows else None
        self.numbers: Any = later("_xla.value_numbers").Numbers() if self.has_rows else None
        self.rows: Any = None
        """The block that is walked, if the library of kernels may compute a part of it."""
        self.operations: list[IrOperation] = []
        """The operations of the block that is walked, as they were."""
        self.order: dict[IrOperation, int] = {}
        """The places of these operations, or nothing as long as they are not needed."""
        self.minus_zeros: dict[Any, Any] = {}
        """For each block in which the library may compute: numbers that are -0, as the compiler
        cannot find out; None if none is used."""

    # -- where to look -------------------------------------------------------------------------

    def module(self) -> None:
        """Walk over all functions; the arguments of `main` are arrays and match no pattern.

        The compiler inlines calls.  So a function with one call is walked there.  One with several
        is walked once they all have been, with arguments that may be any of their operands; what
        it returns was found in a copy of the module, for any arguments.
        """
        for name in self.functions:
            if not self.calls[name] and name not in self.named:
                if name == "main" and self.has_rows:
                    self.unforeseen.arrays(self.functions[name].regions[0].blocks[0].arguments)
                self.body(name, repeat(NOTHING if name == "main" else UNKNOWN))
        waiting = [n for n in self.functions if n in self.named or self.calls[n] > 1]
        while waiting:
            ready = [n for n in waiting if len(self.given[n]) == self.calls[n]]
            assert ready  # functions do not call themselves
            for name in ready:
                known = name not in self.named
                if known and self.of_arrays[name] == self.calls[name]:
                    self.unforeseen.arrays(self.functions[name].regions[0].blocks[0].arguments)
                self.body(name, map(any_of, zip(*self.given[name])) if known else repeat(UNKNOWN))
            waiting = [n for n in waiting if n not in ready]

    def results(self) -> dict[str, list[tuple[Mark, int]]]:
        """Return the marks and states of the results of all shared functions, by function.

        They hold whatever is inserted later, for the arguments that there are then.
        """
        self.only_marks = True
        for name in self.shared:
            self.returned_by(name)
        return self.returned

    def returned_by(self, name: str) -> list[tuple[Mark, int]]:
        """Return the marks and states of the results of a shared function.

        The function is walked unless they are known; then the module is of no other use.
        """
        if name not in self.returned:
            outer = self.spread
            (b,) = self.functions[name].regions[0].blocks
            if self.has_rows:
                self.unforeseen.arrays(b.arguments)
            self.body(name, repeat(ANYTHING))
            self.spread = outer
            self.returned[name] = [
                (self.mark(x), self.unforeseen.state(x) if self.has_rows else 0)
                for x in list(b.operations)[-1].operands
            ]
        return self.returned[name]

    def _count(self, op: IrOperation, is_met: bool) -> None:
        """Count the calls inside of an operation; `is_met` is whether the walk comes by them."""
        for region in op.regions:
            for b in region.blocks:
                for inner in b.operations:
                    o = inner.operation
                    if self.cpus and not self.has_rows and o.name == "stablehlo.reduce":
                        self.has_rows = later("_xla.rows").is_left(o)
                    if o.name == "func.call" and is_met:
                        self.calls[mlir.word(o, "callee")] += 1
                    elif o.name == "func.call":
                        self.named.add(mlir.word(o, "callee"))
                    elif o.name in _NAMING:
                        self.named.update(_named_by(o))
                    self._count(o, is_met and o.name in _ENTERED)

    def body(self, name: str, marks: Iterable[Mark]) -> None:
        """Walk over the body of a function whose arguments have these marks."""
        (b,) = self.functions[name].regions[0].blocks
        self.marks.update(zip(b.arguments, marks, strict=False))  # some repeat one without end
        self.block(b, ())

    def call(self, op: IrOperation) -> None:
        """Walk over the function of a call, if there is no other call of it."""
        name = mlir.word(op, "callee")
        marks = [self.mark(x) for x in op.operands]
        if self.calls[name] > 1 or name in self.named or name not in self.functions:
            self.given[name].append(marks)
            self.marks.update(dict.fromkeys(op.results, UNKNOWN))
            if name in self.shared:
                self.shared_call(op, name)
            return
        outer = self.spread
        (b,) = self.functions[name].regions[0].blocks
        self.equate(op.operands, b.arguments)
        self.body(name, marks)
        self.spread = outer
        returned = list(b.operations)[-1].operands
        self.marks.update((y, self.mark(x)) for x, y in zip(returned, op.results, strict=True))
        self.equate(returned, op.results)

    def shared_call(self, op: IrOperation, name: str) -> None:
        """Mark the results of a call of a function that has others."""
        of_arrays = self.has_rows and self.unforeseen.are_arrays(op.operands)
        self.of_arrays[name] += of_arrays
        for x, (mark, state) in zip(op.results, self.returned_by(name), strict=True):
            self.marks[x] = mark
            if of_arrays:
                self.unforeseen.add(x, state)

    def equate(self, values: Iterable[IrValue], others: Iterable[IrValue]) -> None:
        """Note that the others are equal to the values, in modules with sums of rows."""
        if self.has_rows:
            values, others = list(values), list(others)
            self.unforeseen.passed(values, others)
            self.numbers.passed(values, others)

    def block(self, b: Any, unknown: Iterable[Any]) -> None:
        """Walk over a block; mark these arguments of it as unknown."""
        for x in unknown:
            self.marks[x] = UNKNOWN
        operations = [o.operation for o in b.operations]
        outer = self.rows, self.operations, self.order
        along = self.has_rows and any(map(later("_xla.rows").is_along_rows, operations))
        self.rows = b if along else None
        self.operations, self.order = operations, {}
        if self.rows is not None:
            self.minus_zeros[b] = None
        for op in operations:
            name = op.name
            rule = _RULES.get(name)
            if name in _EXPENSIVE:
                self.expensive.append(op)
            self.sums += name in _SUMS
            operands = list(op.operands)
            marks = [self.mark(x) for x in operands]
            self.spread = any(m.spread for m in marks) and all(m.spread or m.written for m in marks)
            if self.has_rows:
                self.unforeseen.note(op, operands, marks)
                self.numbers.note(op, operands)
            if rule is not None:
                rule(self, op)
            elif name.startswith("chlo."):
                alone = len(op.operands) == 1 and len(op.results) == 1
                self.function_of_one(op) if alone else self.composed(op)
            elif name == "func.call":
                self.call(op)
            elif name in _ENTERED or name == "stablehlo.composite":
                if name in _ENTERED:
                    is_loop = self.has_rows and name == "stablehlo.while"
                    for region in op.regions:
                        for inner in region.blocks:
                            if is_loop:  # later turns read memory
                                self.unforeseen.passed(op.operands, inner.arguments)
                            self.block(inner, inner.arguments)
                for x in op.results:
                    self.marks[x] = UNKNOWN
            if self.spread and len(op.results) == 1 and op.result not in self.marks:
                self.marks[op.result] = Mark(frozenset(), None, True)
        self.rows, self.operations, self.order = outer

    def kind(self, value: IrValue) -> Kind:
        """Return the kind of the elements of a value."""
        t = value.type
        found = self.kinds.get(t)
        if found is None:
            found = self.kinds[t] = origins.kind_of(t)
        return found

    def inexact(self, value: IrValue) -> bool:
        """Return whether a value has elements that are rounded."""
        return self.kind(value).category in ("f", "c")

    def mark(self, value: IrValue) -> Mark:
        """Return the origin of a value."""
        return self.marks.get(value, NOTHING)

    # -- inserted operations -------------------------------------------------------------------

    def made(self, at: object, name: str, t: IrType, xs: list[Any], **attributes: object) -> Any:
        """Return the result of a new operation, before the operation `at` or at that point."""
        self.changed = True
        point = self.m.ir.InsertionPoint
        ip = at if isinstance(at, point) else point(at)
        return self.m.create(name, [t], xs, attributes or None, None, 0, self.m.unknown, ip).result

    def rounded(self, op: IrOperation, i: int) -> None:
        """Replace operand `i` of an operation by an equal value that the compiler keeps."""
        if not self.only_marks:
            op.operands[i] = self._opaque(op, op.operands[i])

    def parts(self, op: IrOperation, x: IrValue) -> list[Any]:
        """Return the real and the imaginary part of complex numbers."""
        t = x.type
        part = self.m.ir.RankedTensorType.get(
            t.shape, t.element_type.element_type, t.encoding, self.m.unknown
        )
        made = [self.made(op, f"stablehlo.{n}", part, [x]) for n in ("real", "imag")]
        for p in made:
            self.moved(p.owner.operation)
        return made

    def nans(self, op: IrOperation, x: IrValue) -> Any:
        """Return where numbers are nan; for complex numbers, where both parts are."""
        if self.kind(x).category != "c":
            return self.flags(op, x, x, "NE")
        re, im = (self.flags(op, p, p, "NE") for p in self.parts(op, x))
        return self.made(op, "stablehlo.and", re.type, [re, im])

    def _opaque(self, op: Any, x: IrValue) -> Any:
        t = x.type
        if self.kind(x).category == "c":
            parts = [self._opaque(op, p) for p in self.parts(op, x)]
            return self.made(op, "stablehlo.complex", t, parts)
        known = self.mark(x).kinds & origins.CONSTANT  # the compiler takes 0 + y for y
        plain = str(t.element_type) == "f32" and t.has_static_shape and not known
        if self.rows is not None and plain:
            zero = self.minus_zero(op, self.rows, self.numbers.place(x))
            zero = self.made(op, "stablehlo.broadcast_in_dim", t, [zero],
                             broadcast_dimensions=mlir.attr("array<i64>"))  # fmt: skip
            return self.made(op, "stablehlo.add", t, [x, zero])
        return self.rounded_to_more(op, x)

    def rounded_to_more(self, op: Any, x: IrValue) -> Any:
        """Return a value of more bits than there are, which the compiler keeps, but no library."""
        if self.kind(x).category == "c":
            return self._opaque(op, x)
        return self.made(op, "stablehlo.reduce_precision", x.type, [x], **mlir.more_bits())

    def minus_zero(self, op: object, block: Any, place: int) -> IrValue:
        """Return a scalar that is -0, which the compiler takes for any number.

        Adding it changes no number.  Each place is an element of its own: the compiler writes an
        array of one that the library adds to different values.
        """
        ranked, f32 = self.m.ir.RankedTensorType, self.m.ir.F32Type.get(self.m.context)
        many, one, none = (
            ranked.get(s, f32, None, self.m.unknown) for s in ([_COUNT_OF_ZEROS], [1], [])
        )
        if self.minus_zeros[block] is None:
            at = self.m.ir.InsertionPoint.at_block_begin(block)
            value = mlir.attr(f"dense<-0.0> : {many}")
            zeros = self.made(at, "stablehlo.constant", many, [], value=value)
            self.minus_zeros[block] = self.hidden(at, zeros)
        zeros, i = self.minus_zeros[block], place % _COUNT_OF_ZEROS
        ends = {k: mlir.i64s(n) for k, n in
                (("start_indices", i), ("limit_indices", i + 1), ("strides", 1))}  # fmt: skip
        found = self.made(op, "stablehlo.slice", one, [zeros], **ends)
        return self.made(op, "stablehlo.reshape", none, [found])

    def flags(self, op: object, x: IrValue, y: IrValue, direction: str) -> Any:
        """Return the booleans of a comparison."""
        t = x.type
        bools = self.m.ir.RankedTensorType.get(
            t.shape, self.m.ir.IntegerType.get_signless(1, self.m.context), t.encoding,
            self.m.unknown,
        )  # fmt: skip
        how = mlir.attr(f"#stablehlo<comparison_direction {direction}>")
        return self.made(op, "stablehlo.compare", bools, [x, y], comparison_direction=how)

    def replaced(self, op: IrOperation, make: Callable[[Any], Any]) -> None:
        """Let `make(place after it)` replace the result of an operation for all other readers."""
        if self.only_marks:
            return
        new = make(self.m.ir.InsertionPoint.after(op))
        op.result.replace_all_uses_except(new, new.owner.operation)
        self.equate([op.result], [new])
        self.leave(new, self.mark(op.result).kinds & origins.CONSTANT)

    def narrow(self, op: IrOperation) -> None:
        """Give the result of an operation one reader."""
        self.rows = op.block if op.block in self.minus_zeros else None
        if self.kind(op.result).category == "f":
            self.replaced(op, lambda after: self._opaque(after, op.result))

    def in_memory(self, x: IrValue) -> None:
        """Divide floats by 1 for all their readers: the compiler computes no quotient again.

        The 1 is found from a bit of the sign that is shifted away.  The compiler's own
        simplifications do not see that; its machine code has no division.
        """
        t, after = x.type, self.m.ir.InsertionPoint.after(mlir.maker(x))
        width, one = _ONE[str(t.element_type)]
        ints = self.m.ir.RankedTensorType.get(
            t.shape,
            self.m.ir.IntegerType.get_signless(width, self.m.context),
            t.encoding,
            self.m.unknown,
        )
        last, second, one = (
            self.made(
                after, "stablehlo.constant", ints, [], value=mlir.attr(f"dense<{n}> : {ints}")
            )
            for n in (width - 1, 2, one)
        )
        bits = self.made(after, "stablehlo.bitcast_convert", ints, [x])
        sign = self.made(after, "stablehlo.shift_right_logical", ints, [bits, last])
        none = self.made(after, "stablehlo.and", ints, [sign, second])
        some = self.made(after, "stablehlo.or", ints, [none, one])
        divisor = self.made(after, "stablehlo.bitcast_convert", t, [some])
        new = self.made(after, "stablehlo.divide", t, [x, divisor])
        x.replace_all_uses_except(new, [bits.owner.operation, new.owner.operation])

    # -- rules ---------------------------------------------------------------------------------

    def leave(
        self,
        x: IrValue,
        kinds: Iterable[str],
        number: IrOperation | None = None,
        spread: bool = False,
    ) -> None:
        """Give a value its mark, unless there is nothing to say of it."""
        found, spread = frozenset(kinds), spread or self.spread
        if found or spread:
            self.marks[x] = Mark(found, number, spread)

    def constant(self, op: IrOperation) -> None:
        self.marks[op.result] = Mark(origins.NUMBER, op)

    def positions(self, op: IrOperation) -> None:
        self.counted.append(op)
        self.leave(op.result, (), None, len(op.result.type.shape) > 1)

    def folded(self, op: IrOperation) -> None:
        """Mark a result as a constant to be, if the compiler may find that all operands are."""
        operands = list(op.operands)
        marks = [self.mark(x) for x in operands]
        kind = self.kind(op.result).category
        if kind in ("f", "c"):
            constant = bool(marks) and all(m.kinds & origins.CONSTANT for m in marks)
        elif op.name in _ANNIHILATED:
            constant = any(m.kinds & origins.CONSTANT for m in marks) or len(set(operands)) == 1
        else:
            constant = all(m.kinds & origins.CONSTANT for m in marks) or (
                len(operands) > 1 and len(set(operands)) == 1
            )
        if constant:
            m = self.mark(op.result)
            if not m.kinds & origins.CONSTANT:
                self.marks[op.result] = Mark(m.kinds | origins.LATE, m.number, m.spread)

    def any_of(self, op: IrOperation, marks: Sequence[Mark], spread: bool = False) -> None:
        """Mark a result that may turn out to be any of some values, or to hold elements of each."""
        m = any_of(marks)
        kinds = m.kinds
        if op.name in _MOVING and not m.written and any("number" in a.kinds for a in marks):
            kinds |= origins.JOINED
        self.leave(op.result, kinds, m.number, spread or m.spread)

    def one_of(self, op: IrOperation) -> None:
        """Mark a result that may turn out to be any of the operands, not counting a condition."""
        operands = list(op.operands)
        marks = [self.mark(x) for x in operands[op.name == "stablehlo.select" :]]
        self.any_of(op, [*marks, Mark(frozenset(["chosen"]))])
        self.folded(op)

    def extreme(self, op: IrOperation) -> None:
        """Keep the greater or the lesser of two floats from the library of kernels, whose own loses
        nan."""
        self.one_of(op)
        if self.has_rows and self.kind(op.result).category == "f":
            for i, x in enumerate(list(op.operands)):
                if not self.mark(x).written:
                    op.operands[i] = self.rounded_to_more(op, x)
            self.replaced(op, lambda after: self.rounded_to_more(after, op.result))

    def moved(self, op: IrOperation) -> None:
        """Copy the marks of the elements that an operation moves, not those of positions."""
        marks = [self.mark(x) for x in list(op.operands)[: _OPERANDS_MOVED.get(op.name, 1)]]
        spread = "broadcast" in op.name and _grows(op)
        if op.name in _CUTTING and marks[0].kinds & origins.JOINED:
            m = marks[0]
            self.leave(op.result, m.kinds | origins.CUT, m.number, m.spread)
        elif len(marks) == 1 and not spread:
            if marks[0] != NOTHING:
                self.marks[op.result] = marks[0]
        elif len(marks) == 1:
            m = marks[0]
            self.leave(op.result, m.kinds, m.number, True)
        else:
            self.any_of(op, marks)

    def negated(self, op: IrOperation) -> None:
        m = self.mark(op.operands[0])
        self.leave(op.result, m.kinds, None, m.spread)

    def passed(self, op: IrOperation) -> None:
        for x, y in zip(op.operands, op.results, strict=True):
            if x in self.marks:
                self.marks[y] = self.marks[x]

    def converted(self, op: IrOperation) -> None:
        x = op.operands[0]
        m = self.mark(x)
        kinds = m.kinds if self.inexact(x) else m.kinds & origins.CONVERTED
        if self.kind(x).category == "b" and not m.written:
            kinds |= origins.MASK
        self.leave(op.result, kinds, m.number if m.written else None, m.spread)

    def divide(self, op: IrOperation) -> None:
        if not self.inexact(op.result):
            self.folded(op)
            return
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        beside = my.spread or my.kinds & {"late", "unknown"} or (
            my.written and not self.inverts(y, my)
        )  # fmt: skip
        if mx.kinds & origins.DIVIDED or (
            my.kinds & origins.CONSTANT and mx.kinds & origins.SCALED
        ):
            self.rounded(op, 0)
        if my.kinds & origins.DIVISORS:  # where the library divides, it takes longer than a loop
            op.operands[1] = self.rounded_to_more(op, y)
        if beside and not (mx.written and my.written):
            op.operands[1] = self.divisor(op, x, op.operands[1])
        kinds = origins.QUOTIENT | (origins.SCALED if my.kinds & origins.CONSTANT else frozenset())
        self.leave(op.result, kinds | self.beside(mx, y, my, 1))

    def divisor(self, op: IrOperation, x: IrValue, y: IrValue) -> Any:
        """Return the divisor `y` of `x` as a value that the compiler takes for no broadcast.

        It is the sum of y and -0, which is written as the lesser of -0 and the size of x.  If x is
        nan or zero, a library may take another number for that; the quotient is the same.  The
        compiler hands loops to a library of kernels that has these operations and no selections,
        so they break none in two.  They hide nothing if x may be a broadcast itself, and the
        compiler takes 0 + y for y.  If x is a sum of rows, the library ends where it is read twice,
        so a constant divisor is made apart.
        """
        m, my = self.mark(x), self.mark(y)
        spread = m.spread or m.kinds & origins.CONSTANT
        if (spread or (self.rows is not None and my.written)) and _has_places(x.type):
            return self.hidden(op, y)
        least = _MINUS_ZERO.get(str(x.type.element_type))
        zero = my.kinds & origins.CONSTANT and not (my.written and value_of(my))
        if least is None or zero:
            return self.made(op, "stablehlo.select", y.type, [self.nans(op, x), x, y])
        value = mlir.attr(f"dense<{least}> : {y.type}")
        lesser = self.made(op, "stablehlo.constant", y.type, [], value=value)
        size = self.made(op, "stablehlo.abs", y.type, [x])
        lesser = self.made(op, "stablehlo.minimum", y.type, [size, lesser])
        return self.made(op, "stablehlo.add", y.type, [y, lesser])

    def left_out(self, x: IrValue) -> None:
        """Let the library of kernels end at a reduction whose broadcast result is `x`.

        It would also compute the elements of `x`, and write them to memory, for a loop that needs
        a selection.
        """
        spread, maker = None, mlir.maker(x)
        while maker is not None and maker.name in _SPREADING:
            spread, maker = maker, mlir.maker(maker.operands[0])
        if spread is not None and maker is not None and maker.name == "stablehlo.reduce":
            self.rounded(spread, 0)

    def hidden(self, op: IrOperation, x: IrValue) -> Any:
        """Return a value as one that the compiler takes for no broadcast.

        It is a selection by booleans that differ from element to element as far as the compiler can
        see: whether the position of an element is nan.
        """
        t = x.type
        places = self.m.ir.RankedTensorType.get(
            [math.prod(t.shape)], self.m.ir.F32Type.get(self.m.context), None, self.m.unknown
        )
        of_all = self.m.ir.RankedTensorType.get(
            t.shape, places.element_type, t.encoding, self.m.unknown
        )
        place = self.made(op, "stablehlo.iota", places, [], iota_dimension=mlir.attr("0 : i64"))
        place = self.made(op, "stablehlo.reshape", of_all, [place])
        never = self.flags(op, place, place, "NE")
        minus = self.made(op, "stablehlo.negate", t, [x])
        return self.made(op, "stablehlo.select", t, [never, minus, x])

    def beside(self, m: Mark, y: IrValue, my: Mark, neutral: float) -> frozenset[str]:
        """Return the kinds of a value that an operation returns if `y` is neutral in it."""
        if not my.kinds & origins.CONSTANT or (my.written and value_of(my) not in (None, neutral)):
            return frozenset()
        return m.kinds - origins.NUMBER | origins.LATE if m.written else m.kinds

    def inverts(self, x: IrValue, m: Mark) -> bool:
        """Return whether multiplying by its reciprocal equals dividing by a number in all bits."""
        value = value_of(m)
        if value is None or self.kind(x).category == "c" or not math.isfinite(value):
            return False
        most = 2.0 ** (60 if str(x.type.element_type) in _WIDE else 6)
        return abs(math.frexp(value)[0]) == 0.5 and 1 / most <= abs(value) <= most

    def multiply(self, op: IrOperation) -> None:
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        category = self.kind(op.result).category
        if category not in ("f", "c"):
            self.folded(op)
            if category == "i" and not (mx.written or my.written):
                self.replaced(op, lambda after: self.clamped(after, op.result))
            return
        if mx.kinds & origins.EXPONENTIAL and my.kinds & origins.EXPONENTIAL:
            self.rounded(op, 0)
        for i, a, b in ((0, mx, my), (1, my, mx)):
            if a.kinds & origins.MASKS or (
                a.kinds & origins.FACTORS and (b.spread or b.kinds & origins.BESIDE_FACTORS)
            ):
                self.rounded(op, i)
        kinds = self.beside(mx, y, my, 1) | self.beside(my, x, mx, 1)
        scales = [m for m in (mx, my) if m.kinds & origins.CONSTANT]
        if not scales:
            self.leave(op.result, origins.PRODUCT | kinds)
        else:
            self.leave(op.result, origins.SCALED | kinds, scales[0].number)

    def dot(self, op: IrOperation) -> None:
        """Protect factors as those of a multiplication, which products with vectors become.

        Products of two matrices stay calls of the compiler's kernels, and keep their factors.
        """
        if self.inexact(op.result) and _is_with_a_vector(op):
            self.multiply(op)

    def reduced(self, op: IrOperation) -> None:
        """Mark results whose reduced axes have one element, or equal ones: x + x is 2 x."""
        for i, (x, y) in enumerate(zip(list(op.operands), op.results, strict=False)):
            m = self.mark(x)
            if m.spread and self.kind(x).category == "c" and _has_places(x.type):
                op.operands[i] = self.hidden(op, x)  # infinity times 2 + 0j is nan + infinity j
            if m.spread:
                self.leave(y, m.kinds | origins.SCALED, None, True)
            elif m != NOTHING and math.prod(x.type.shape) == math.prod(y.type.shape):
                self.marks[y] = m
        self.extremes(op)

    def extremes(self, op: IrOperation) -> None:
        """Replace a reduction to the greatest or the least, which loses nan on CPUs."""
        forms = later("_xla.extremes")
        along = self.cpus == 1 and self.rows is not None and later("_xla.rows").is_along_rows(op)
        if along and forms.is_extreme(op):
            if not self.order:
                self.order = {o: i for i, o in enumerate(self.operations)}
            if later("_xla.peaks").may_lose_nan(op, self.order):
                return
        new = forms.replaced(op, self.cpus, self.mark(op.operands[-1]))
        if new:
            self.changed = True
            self.dead.append(op)
            self.equate(op.results, new)
            self.marks.update(zip(new, map(self.mark, op.results), strict=True))

    def clamped(self, after: object, x: IrValue) -> Any:
        """Return integers clamped to the range of their type, which changes none."""
        bits = self.kind(x).bits
        scalar = self.m.ir.RankedTensorType.get([], x.type.element_type, None, self.m.unknown)
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        ends = [
            self.made(after, "stablehlo.constant", scalar, [],
                      value=mlir.attr(f"dense<{n}> : tensor<i{bits}>"))
            for n in (low, high)
        ]  # fmt: skip
        return self.made(after, "stablehlo.clamp", x.type, [ends[0], x, ends[1]])

    def add(self, op: IrOperation) -> None:
        if not self.inexact(op.result):
            self.folded(op)
            return
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        minus = op.name == "stablehlo.subtract"
        if (
            self.kind(x).category == "c"
            and not self.only_marks
            and ((mx.kinds | my.kinds) & origins.SUMS or _zeros_of(mx) or _zeros_of(my))
        ):
            self.by_parts(op)
            return
        for z, m, other in ((y, my, x), (x, mx, y)):
            if m.written and not (minus and other is y or self.mark(other).written):
                value = value_of(m)
                if value == 0 and (math.copysign(1, value) < 0) is minus:
                    self.cleared(op, other, z, minus)
                    return
        for i, a, b in ((0, mx, my), (1, my, mx)):
            if (a.kinds & origins.TERMS and b.kinds & origins.CONSTANT) or (
                i == 0 and same_scale(a, b)
            ):
                self.rounded(op, i)
            if a.kinds & origins.CUT:
                self.covered(op, i)
        kinds = self.beside(mx, y, my, 0) | self.beside(my, x, mx, 0)
        if (mx.kinds | my.kinds) & origins.CONSTANT:
            kinds |= origins.SHIFTED
        elif self.kind(x).category == "c":
            kinds |= origins.SUM
        self.leave(op.result, kinds)

    def by_parts(self, op: IrOperation) -> None:
        """Add complex numbers part by part: the CPU compiler turns a - b + b into a."""
        xs, ys = (self.zeros(op, x) or self.parts(op, x) for x in op.operands)
        sums = [self.made(op, op.name, a.type, [a, b]) for a, b in zip(xs, ys, strict=True)]
        whole = self.made(op, "stablehlo.complex", op.result.type, sums)
        op.result.replace_all_uses_with(whole)
        for part in sums:
            self.add(part.owner.operation)
        self.moved(whole.owner.operation)

    def zeros(self, op: IrOperation, x: IrValue) -> list[Any] | None:
        """Return the parts of a complex constant that is zero, as constants; None for others."""
        found = _zeros_of(self.mark(x))
        if not found:
            return None
        t = x.type
        part = self.m.ir.RankedTensorType.get(
            t.shape, t.element_type.element_type, t.encoding, self.m.unknown
        )
        made = [
            self.made(
                op, "stablehlo.constant", part, [], value=mlir.attr(f"dense<{text}> : {part}")
            )
            for text in found
        ]
        for p in made:
            self.constant(p.owner.operation)
        return made

    def covered(self, op: IrOperation, i: int) -> None:
        """Hide that operand `i` of a sum may be elements of a constant zero, which the compiler
        drops from x + 0 although it turns -0 to 0.

        Where the other operand is nan so is the sum, whatever is added: that selection changes
        nothing, and the compiler sees no constant.
        """
        x, y = op.operands[i], op.operands[1 - i]
        op.operands[i] = self.made(op, "stablehlo.select", x.type, [self.nans(op, y), y, x])

    def cleared(self, op: IrOperation, x: IrValue, zero: IrValue, minus: bool) -> None:
        """Write x + 0 as a selection: the zero where x equals 0, and x elsewhere.

        Only -0 changes in this sum.
        """
        if self.kind(x).category != "f":
            return
        if minus:
            zero = self.made(op, "stablehlo.negate", zero.type, [zero])
        equal = self.flags(op, x, zero, "EQ")
        new = self.made(op, "stablehlo.select", x.type, [equal, zero, x])
        op.result.replace_all_uses_with(new)
        self.leave(new, (self.mark(x).kinds & origins.CONSTANT) - origins.NUMBER)

    def compare(self, op: IrOperation) -> None:
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        self.folded(op)
        if self.kind(x).category != "f":
            return
        for i, a, b in ((0, mx, my), (1, my, mx)):
            zero = b.kinds & {"late", "unknown"} or (b.written and value_of(b) in (0, None))
            if zero and a.kinds & origins.NEVER_NEGATIVE:
                self.rounded(op, i)

    def of_one(self, op: IrOperation) -> None:
        """Protect functions that undo others: the root of a square, the logarithm of a power."""
        x = op.operands[0]
        m = self.mark(x)
        if not self.inexact(op.result):
            return
        if m.kinds & origins.UNDONE:
            self.rounded(op, 0)
        name = op.name.removeprefix("stablehlo.")
        if name == "power":
            y = op.operands[1]
            self.leave(op.result, origins.POWERS | self.beside(m, y, self.mark(y), 1))
        else:
            self.leave(op.result, (name,))
        self.folded(op)

    def function_of_one(self, op: IrOperation) -> None:
        """Select nan beside a function of x where x is nan.

        If the compiler finds that x is nan, its code for exp(x) and for functions of exp(x) reads
        registers that were never written.
        """
        x = op.operands[0]
        self.composed(op)
        if self.kind(x).category != "f" or op.result.type != x.type:
            return
        difference = mlir.maker(x)
        if difference is not None and difference.name == "stablehlo.subtract":
            self.left_out(difference.operands[1])

        def chosen(after: object) -> Any:
            nan = self.flags(after, x, x, "NE")
            return self.made(after, "stablehlo.select", x.type, [nan, x, op.result])

        self.replaced(op, chosen)

    def exponential(self, op: IrOperation) -> None:
        """Leave an exponential to the library of kernels, with sums of it and factors, unless the
        compiler may foresee nan.

        Elsewhere it is protected as other functions are.  Its last step is a product, which could
        become one operation with a sum, and not overflow.
        """
        (x,) = op.operands
        readers = {u.owner.operation.name for u in op.result.uses}
        if self.rows is None or x not in self.unforeseen or not readers <= _OF_EXPONENTIALS:
            self.function_of_one(op)
        else:
            self.leave(op.result, origins.EXPONENTIAL)
            self.folded(op)

    def absolute(self, op: IrOperation) -> None:
        (x,) = op.operands
        m = self.mark(x)
        self.leave(op.result, {"abs"} | (m.kinds - origins.NUMBER))
        self.folded(op)
        if self.kind(x).category == "i":  # the compiler takes abs(x) >= 0, false for the least x
            negated = self.made(op, "stablehlo.negate", x.type, [x])
            new = self.made(op, "stablehlo.maximum", x.type, [x, negated])
            op.result.replace_all_uses_with(new)
            self.leave(new, self.mark(op.result).kinds & origins.CONSTANT)

    def bounded(self, op: IrOperation) -> None:
        """Write a clamp as a minimum of a maximum, unless its bounds are known to be in order.

        The compiler takes a clamp for no less than its lower bound.
        """
        low, x, high = op.operands
        least, most = (value_of(self.mark(b)) for b in (low, high))
        if least is None or most is None or not least <= most:
            low, high = (
                b if b.type == x.type else self.made(
                    op, "stablehlo.broadcast_in_dim", x.type, [b],
                    broadcast_dimensions=mlir.attr("array<i64>"))
                for b in (low, high)
            )  # fmt: skip
            above = self.made(op, "stablehlo.maximum", x.type, [low, x])
            new = self.made(op, "stablehlo.minimum", x.type, [above, high])
            op.result.replace_all_uses_with(new)
            self.extreme(above.owner.operation)
            self.extreme(new.owner.operation)
        else:
            self.one_of(op)

    def composed(self, op: IrOperation) -> None:
        """Protect the operands of an operation that the compiler expands: its parts may make a
        pattern with the operations that made them."""
        if len(op.results) != 1:
            return
        for i, x in enumerate(list(op.operands)):
            if self.inexact(x) and self.mark(x).kinds - origins.NUMBER:
                self.rounded(op, i)
        self.leave(op.result, ("composed",))
        self.folded(op)


_FOLDED = {
    "stablehlo." + n
    for n in (
        *("and", "or", "xor", "not", "remainder", "sign", "floor", "ceil", "round_nearest_even"),
        *("shift_left", "shift_right_logical", "shift_right_arithmetic", "popcnt", "is_finite"),
        *("count_leading_zeros", "sine", "cosine", "atan2", "cbrt", "tanh"),
    )
}
"""Other operations that the compiler computes itself if their operands are constants."""
_ANNIHILATED = {
    "stablehlo." + n
    for n in (
        *("multiply", "and", "or", "divide", "remainder", "minimum", "maximum", "compare"),
        *("shift_left", "shift_right_logical", "shift_right_arithmetic", "clamp", "select"),
    )
}
"""Operations on whole numbers that are constant if one operand is a certain constant."""

_RULES: dict[str, Callable[[_Walk, Any], None]] = {
    "stablehlo.constant": _Walk.constant,
    "stablehlo.iota": _Walk.positions,
    "stablehlo.convert": _Walk.converted,
    "stablehlo.divide": _Walk.divide,
    "stablehlo.multiply": _Walk.multiply,
    "stablehlo.add": _Walk.add,
    "stablehlo.subtract": _Walk.add,
    "stablehlo.compare": _Walk.compare,
    "stablehlo.sqrt": _Walk.of_one,
    "stablehlo.rsqrt": _Walk.of_one,
    "stablehlo.log": _Walk.of_one,
    "stablehlo.power": _Walk.of_one,
    "stablehlo.abs": _Walk.absolute,
    "stablehlo.negate": _Walk.negated,
    "stablehlo.maximum": _Walk.extreme,
    "stablehlo.minimum": _Walk.extreme,
    "stablehlo.select": _Walk.one_of,
    "stablehlo.clamp": _Walk.bounded,
    "stablehlo.optimization_barrier": _Walk.passed,
    "stablehlo.sort": _Walk.passed,
    "stablehlo.reduce": _Walk.reduced,
    "stablehlo.all_reduce": _Walk.extremes,
    "stablehlo.dot_general": _Walk.dot,
    "stablehlo.convolution": _Walk.dot,
    **dict.fromkeys(_MOVING, _Walk.moved),
    "stablehlo.exponential": _Walk.exponential,
    **dict.fromkeys(_FUNCTIONS, _Walk.function_of_one),
    **dict.fromkeys(_COMPOSED, _Walk.composed),
    **dict.fromkeys(_FOLDED, _Walk.folded),
}


_NAMING = {"stablehlo.composite": "decomposition", "stablehlo.custom_call": "called_computations"}
"""The attribute in which an operation other than a call names functions."""


def _named_by(op: IrOperation) -> list[str]:
    attribute = _NAMING.get(op.name)
    if attribute is None or attribute not in op.attributes:
        return []
    return re.findall(r'@"?([^",\]]+)', str(op.attributes[attribute]))


_ZEROS = re.compile(r" dense<\((-?0\.0+e\+00), *(-?0\.0+e\+00)\)> ")


def _zeros_of(m: Mark) -> tuple[str, ...]:
    """Return the texts of the parts of a complex constant that is zero everywhere, else ()."""
    if not m.written or m.number is None:
        return ()
    found = _ZEROS.search(m.number.get_asm(large_elements_limit=1))
    return found.groups() if found else ()


def _is_with_a_vector(op: IrOperation) -> bool:
    """Return whether a product has one factor, or an operand without other axes than summed ones.

    True, too, where the sizes are unknown.
    """
    x, y = [v.type for v in op.operands]
    if not (x.has_static_shape and y.has_static_shape and op.result.type.has_static_shape):
        return True
    if op.name == "stablehlo.convolution":
        return False
    # The text of the attribute alone: that of an operation numbers all values of its function.
    numbers = str(op.attributes["dot_dimension_numbers"])
    found = re.search(r"lhs_contracting_dimensions = \[([\d, ]*)\]", numbers)
    if found is None:  # an outer product
        return True
    summed = math.prod(x.shape[int(a)] for a in found[1].split(",") if a.strip())
    whole = math.prod(op.result.type.shape) * summed
    return summed == 1 or whole in (math.prod(x.shape), math.prod(y.shape))


def _grows(op: IrOperation) -> bool:
    """Return whether a result may have more elements than the operand."""
    before, after = op.operands[0].type, op.result.type
    known = before.has_static_shape and after.has_static_shape
    return not known or math.prod(before.shape) < math.prod(after.shape)


def _has_places(t: Any) -> bool:
    """Return whether a type has several elements, and how many is known."""
    return t.has_static_shape and math.prod(t.shape) > 1
