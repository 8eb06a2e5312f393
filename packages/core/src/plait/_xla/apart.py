"""Protection of operations from compiler simplifications that change results.

The compiler simplifies a / b / c to a / (b * c), and (x + c) - c to x; it assumes that abs(x) >= 0
holds.  Such a pattern is an operation with an operand that another one made.  Where a module has
one, an operation is inserted that changes no bit and costs nothing in the machine code:

* between floats, `reduce_precision` to more bits than there are, which the compiler keeps;
* beside a divisor that is constant or broadcast, a selection: the compiler would multiply by its
  reciprocal, which may be zero or infinite;
* between integers, a clamp to the least and the greatest number.

So a compiled module returns the results of its operations, one after the other.  Inlining
functions, removing loops of one turn and moving elements can create a pattern later.  Hence
arguments of inner functions and of regions count as the result of any operation.

Invariant: a module computes the same bits as before, for any compiler that follows the StableHLO
specification; it has the same functions, arguments and results.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .._base import jaxlib_api
from . import mlir

VERSION = 2
"""Part of the cache keys on disk; raise it when this module inserts other code."""


class Mark(NamedTuple):
    """The origin of a value.

    Attributes:
      kind: the operation that made it.
      number: the constant operation that it is, or was made with.
      spread: whether one element may stand in many places.
    """

    kind: str
    number: Any = None
    spread: bool = False


class Kind(NamedTuple):
    """The category of an element type ("f", "c", "i" of signed integers, "b", else ""), and its
    number of bits if it is an integer."""

    category: str
    bits: int


UNKNOWN, PRODUCT, QUOTIENT, CHOSEN = (Mark(k) for k in ("unknown", "product", "divide", "chosen"))

_ENTERED = {
    "stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.manual_computation",
    "sdy.named_computation",
}  # fmt: skip
"""Operations whose regions are walked.  Reductions and sorts are left alone: the compiler
recognises them by the exact text of their regions."""

_MOVING = {
    "stablehlo." + n
    for n in (
        *("broadcast_in_dim", "dynamic_broadcast_in_dim", "reshape", "dynamic_reshape", "pad"),
        *("transpose", "reverse", "slice", "dynamic_slice", "concatenate"),
    )
}
_OPERANDS_MOVED = {"stablehlo.pad": 2, "stablehlo.concatenate": None}
"""Count of the operands whose elements are moved, if not only the first; None stands for all."""

_FUNCTIONS = {"stablehlo." + n for n in ("exponential", "exponential_minus_one", "logistic")}
"""Functions that the compiler computes with the exponential, as it does some of CHLO."""

_COMPOSED = {"stablehlo." + n for n in ("tan", "log_plus_one")}
"""Operations that the compiler expands to others, as it does all those of CHLO."""

_WORDS = (
    *(b"divide", b"multiply", b"add", b"subtract", b"compare", b"exponential", b"logistic"),
    *(b"abs", b"sqrt", b"log", b"power", b"tan", b"chlo"),
)


def kept_apart(code: bytes) -> bytes:
    """Return the code of a module that computes the same, without patterns that the compiler
    simplifies."""
    if not any(word in code for word in _WORDS):
        return code
    with jaxlib_api.lock:
        module = mlir.parse(code)
        walk = _Walk()
        for f in module.body.operations:
            walk.function(f.operation)
        return mlir.bytecode(module) if walk.changed else code


class _Walk:
    """One pass over a module, in the order of its operations."""

    def __init__(self) -> None:
        self.m = mlir.bindings()
        self.marks: dict[Any, Mark] = {}
        self.kinds: dict[Any, Kind] = {}
        self.changed = False

    # -- where to look -------------------------------------------------------------------------

    def function(self, f: Any) -> None:
        """Walk over a function; the arguments of `main` are arrays and match no pattern."""
        if f.name != "func.func":
            return
        main = str(f.attributes["sym_name"]) == '"main"'
        for b in f.regions[0].blocks:
            self.block(b, () if main else b.arguments)

    def block(self, b: Any, unknown: Iterable[Any]) -> None:
        """Walk over a block; mark these arguments of it as unknown."""
        for x in unknown:
            self.marks[x] = UNKNOWN
        for o in list(b.operations):
            op = o.operation
            name = op.name
            rule = _RULES.get(name)
            if rule is not None:
                rule(self, op)
            elif name.startswith("chlo."):
                alone = len(op.operands) == 1 and len(op.results) == 1
                self.function_of_one(op) if alone else self.composed(op)
            elif name in _ENTERED or name == "func.call" or name == "stablehlo.composite":
                if name in _ENTERED:
                    for region in op.regions:
                        for inner in region.blocks:
                            self.block(inner, inner.arguments)
                for x in op.results:
                    self.marks[x] = UNKNOWN

    def kind(self, value: Any) -> Kind:
        """Return the kind of the elements of a value."""
        t = value.type
        found = self.kinds.get(t)
        if found is None:
            text = str(t.element_type) if hasattr(t, "element_type") else ""
            if text.startswith("complex"):
                found = Kind("c", 0)
            elif text[:1] == "f" or text == "bf16":
                found = Kind("f", 0)
            elif text == "i1":
                found = Kind("b", 1)
            else:
                signed = text[:1] == "i" and text[1:].isdigit()
                found = Kind("i", int(text[1:])) if signed else Kind("", 0)
            self.kinds[t] = found
        return found

    def inexact(self, value: Any) -> bool:
        """Return whether a value has elements that are rounded."""
        return self.kind(value).category in ("f", "c")

    def mark(self, value: Any) -> Mark | None:
        """Return the origin of a value, or None if no rule depends on it."""
        return self.marks.get(value)

    # -- inserted operations -------------------------------------------------------------------

    def made(self, at: Any, name: str, t: Any, xs: list[Any], **attributes: Any) -> Any:
        """Return the result of a new operation, before the operation `at` or at that point."""
        self.changed = True
        point = self.m.ir.InsertionPoint
        ip = at if isinstance(at, point) else point(at)
        return self.m.create(name, [t], xs, attributes or None, None, 0, self.m.unknown, ip).result

    def rounded(self, op: Any, i: int) -> None:
        """Replace operand `i` of an operation by an equal value that the compiler keeps."""
        x = op.operands[i]
        op.operands[i] = self._opaque(op, x)

    def parts(self, op: Any, x: Any) -> list[Any]:
        """Return the real and the imaginary part of complex numbers."""
        t = x.type
        part = self.m.ir.RankedTensorType.get(
            t.shape, t.element_type.element_type, t.encoding, self.m.unknown
        )
        return [self.made(op, f"stablehlo.{n}", part, [x]) for n in ("real", "imag")]

    def nans(self, op: Any, x: Any) -> Any:
        """Return where numbers are nan; for complex numbers, where both parts are."""
        if self.kind(x).category != "c":
            return self.flags(op, x, x, "NE")
        re, im = (self.flags(op, p, p, "NE") for p in self.parts(op, x))
        return self.made(op, "stablehlo.and", re.type, [re, im])

    def _opaque(self, op: Any, x: Any) -> Any:
        t = x.type
        if self.kind(x).category == "c":
            parts = [self._opaque(op, p) for p in self.parts(op, x)]
            return self.made(op, "stablehlo.complex", t, parts)
        bits = dict(exponent_bits=mlir.attr("11 : i32"), mantissa_bits=mlir.attr("52 : i32"))
        return self.made(op, "stablehlo.reduce_precision", t, [x], **bits)

    def flags(self, op: Any, x: Any, y: Any, direction: str) -> Any:
        """Return the booleans of a comparison."""
        t = x.type
        bools = self.m.ir.RankedTensorType.get(
            t.shape, self.m.ir.IntegerType.get_signless(1, self.m.context), t.encoding,
            self.m.unknown,
        )  # fmt: skip
        how = mlir.attr(f"#stablehlo<comparison_direction {direction}>")
        return self.made(op, "stablehlo.compare", bools, [x, y], comparison_direction=how)

    def replaced(self, op: Any, make: Callable[[Any], Any]) -> None:
        """Let `make(place after it)` replace the result of an operation for all other readers."""
        new = make(self.m.ir.InsertionPoint.after(op))
        op.result.replace_all_uses_except(new, new.owner.operation)

    # -- rules ---------------------------------------------------------------------------------

    def constant(self, op: Any) -> None:
        self.marks[op.result] = Mark("number", op)

    def moved(self, op: Any) -> None:
        """Copy the mark of the elements that an operation moves.

        Operands that hold positions are left out, and elements beside which a constant is filled in
        do not take the mark of that constant.
        """
        many = _OPERANDS_MOVED.get(op.name, 1)
        marks = [self.marks.get(x) for x in list(op.operands)[:many]]
        if len(marks) > 1 and all(map(_written, marks)):
            found: Mark | None = Mark("number")
        elif len(marks) > 1:
            found = next((m for m in marks if m is not None and not _written(m)), None)
        else:
            found = marks[0]
        if "broadcast" in op.name and (found is None or not found.spread):
            found = Mark("other", None, True) if found is None else found._replace(spread=True)
        if found is not None:
            self.marks[op.result] = found

    def converted(self, op: Any) -> None:
        x = op.operands[0]
        if self.kind(x).category == "b":
            self.marks[op.result] = Mark("mask")
        elif (m := self.marks.get(x)) is not None and (m.kind == "number" or m.spread):
            self.marks[op.result] = m if m.kind == "number" else Mark("other", None, True)

    def divide(self, op: Any) -> None:
        if not self.inexact(op.result):
            return
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        known = mx is not None and mx.kind == "number"
        if mx is not None and mx.kind in _DIVIDED:
            self.rounded(op, 0)
        if my is not None:
            written = my.kind == "number"
            if not written and my.kind in _DIVISORS:
                self.rounded(op, 1)
            beside = my.spread or my.kind == "unknown" or (written and not self.inverts(y, my))
            if beside and not known:
                # If x is nan, the quotient is nan for any divisor, so x may replace the divisor.
                by = op.operands[1]
                nan = self.nans(op, x)
                op.operands[1] = self.made(op, "stablehlo.select", y.type, [nan, x, by])
        self.marks[op.result] = QUOTIENT

    def inverts(self, x: Any, m: Mark) -> bool:
        """Return whether multiplying by its reciprocal equals dividing by a number in all bits."""
        value = _value(m)
        if value is None or self.kind(x).category == "c" or not math.isfinite(value):
            return False
        return abs(math.frexp(value)[0]) == 0.5 and 2.0**-6 <= abs(value) <= 2.0**6

    def multiply(self, op: Any) -> None:
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        category = self.kind(op.result).category
        if category == "i" and not (_written(mx) or _written(my)):
            self.replaced(op, lambda after: self.clamped(after, op.result))
            return
        if category not in ("f", "c"):
            return
        for i, a, b in ((0, mx, my), (1, my, mx)):
            if a is None or a.kind not in _FACTORS:
                continue
            if a.kind == "mask" or (b is not None and (b.spread or b.kind in _BESIDE_FACTORS)):
                self.rounded(op, i)
        scale = next(
            (m for m in (mx, my) if m is not None and m.kind in ("number", "unknown")), None
        )
        self.marks[op.result] = PRODUCT if scale is None else Mark("scaled", scale.number)

    def clamped(self, after: Any, x: Any) -> Any:
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

    def add(self, op: Any) -> None:
        if not self.inexact(op.result):
            return
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        minus = op.name == "stablehlo.subtract"
        if self.kind(x).category == "c" and any(
            m is not None and m.kind in _SUMS for m in (mx, my)
        ):
            self.by_parts(op)
            return
        for z, m, other in ((y, my, x), (x, mx, y)):
            if (
                m is not None
                and _written(m)
                and not (minus and other is y or _written(self.mark(other)))
            ):
                value = _value(m)
                if value == 0 and (math.copysign(1, value) < 0) is minus:
                    self.cleared(op, other, z, minus)
                    return
        for i, a, b in ((0, mx, my), (1, my, mx)):
            if a is not None and (
                (a.kind in _TERMS and b is not None and b.kind in _KNOWN_LATER)
                or (i == 0 and _same_scale(a, b))
            ):
                self.rounded(op, i)
        if any(m is not None and m.kind in _KNOWN_LATER for m in (mx, my)):
            self.marks[op.result] = Mark("shifted")
        elif self.kind(x).category == "c":
            self.marks[op.result] = Mark("sum")

    def by_parts(self, op: Any) -> None:
        """Add complex numbers part by part: the CPU compiler turns a - b + b into a."""
        xs, ys = (self.parts(op, x) for x in op.operands)
        sums = [self.made(op, op.name, a.type, [a, b]) for a, b in zip(xs, ys, strict=True)]
        t = op.result.type
        op.result.replace_all_uses_with(self.made(op, "stablehlo.complex", t, sums))

    def cleared(self, op: Any, x: Any, zero: Any, minus: bool) -> None:
        """Write x + 0 as a selection: the zero where x equals 0, and x elsewhere.

        Only -0 changes in this sum.
        """
        if self.kind(x).category != "f":
            return
        if minus:
            zero = self.made(op, "stablehlo.negate", zero.type, [zero])
        equal = self.flags(op, x, zero, "EQ")
        op.result.replace_all_uses_with(self.made(op, "stablehlo.select", x.type, [equal, zero, x]))

    def compare(self, op: Any) -> None:
        x, y = op.operands
        mx, my = self.mark(x), self.mark(y)
        if mx is None or my is None or self.kind(x).category != "f":
            return
        for i, a, b in ((0, mx, my), (1, my, mx)):
            zero = b.kind == "unknown" or (b.kind == "number" and _value(b) in (0, None))
            if zero and a.kind in _NEVER_NEGATIVE:
                self.rounded(op, i)

    def of_one(self, op: Any) -> None:
        """Protect functions that undo others: the root of a square, the logarithm of a power."""
        m = self.mark(op.operands[0])
        if m is not None and m.kind in _UNDONE and self.inexact(op.result):
            self.rounded(op, 0)
        self.marks[op.result] = Mark(op.name.removeprefix("stablehlo."))

    def function_of_one(self, op: Any) -> None:
        """Select nan beside a function of x where x is nan.

        If the compiler finds that x is nan, its code for exp(x) and for functions of exp(x) reads
        registers that were never written.
        """
        x = op.operands[0]
        if self.kind(x).category != "f" or op.result.type != x.type:
            self.composed(op)
            return

        def chosen(after: Any) -> Any:
            nan = self.flags(after, x, x, "NE")
            return self.made(after, "stablehlo.select", x.type, [nan, x, op.result])

        self.replaced(op, chosen)

    def absolute(self, op: Any) -> None:
        (x,) = op.operands
        if self.kind(x).category == "i":  # the compiler takes abs(x) >= 0, false for the least x
            negated = self.made(op, "stablehlo.negate", x.type, [x])
            op.result.replace_all_uses_with(
                self.made(op, "stablehlo.maximum", x.type, [x, negated])
            )
        else:
            self.marks[op.result] = Mark("abs")

    def chosen(self, op: Any) -> None:
        self.marks[op.result] = CHOSEN

    def composed(self, op: Any) -> None:
        if len(op.results) == 1:
            self.marks[op.result] = Mark("composed")


_KNOWN_LATER = {"number", "unknown"}
_DIVIDED = {"divide", "composed", "unknown"}
_DIVISORS = {"divide", "power", "sqrt", "rsqrt", "composed", "unknown"}
_FACTORS = {"scaled", "sqrt", "rsqrt", "mask", "composed", "unknown"}
_BESIDE_FACTORS = {"number", *_FACTORS}
_SUMS = {"sum", "shifted", "unknown"}
_TERMS = {"shifted", "unknown"}
_NEVER_NEGATIVE = {"product", "scaled", "abs", "chosen", "power", "sqrt", "rsqrt", "composed",
                   "unknown"}  # fmt: skip
_UNDONE = {"product", "scaled", "divide", "power", "sqrt", "rsqrt", "composed", "unknown"}

_RULES: dict[str, Callable[[_Walk, Any], None]] = {
    "stablehlo.constant": _Walk.constant,
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
    "stablehlo.maximum": _Walk.chosen,
    "stablehlo.minimum": _Walk.chosen,
    "stablehlo.select": _Walk.chosen,
    **dict.fromkeys(_MOVING, _Walk.moved),
    **dict.fromkeys(_FUNCTIONS, _Walk.function_of_one),
    **dict.fromkeys(_COMPOSED, _Walk.composed),
}


def _written(m: Mark | None) -> bool:
    return m is not None and m.kind == "number"


def _value(m: Mark) -> float | None:
    """Return the number that fills a constant; None if there are several or it is complex."""
    if m.number is None:
        return None
    try:  # the bindings have no attribute for some types of elements
        value = m.number.attributes["value"]
        return float(value.get_splat_value().value) if value.is_splat else None
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def _same_scale(a: Mark, b: Mark | None) -> bool:
    """Return whether the compiler might turn x c + y c into (x + y) c, which may be infinite; it
    does so for powers of 2."""
    if b is None or a.kind != "scaled" or b.kind != "scaled":
        return False
    if a.number is None or b.number is None:
        return True
    value = _value(a)
    return value is None or (value == _value(b) and abs(math.frexp(value)[0]) == 0.5)
