"""An order for kernels of LAPACK, for releases of the runtime where they can wait forever.

Such a kernel divides a stack of matrices among the threads of a pool, and waits for the parts.  The
runtime starts several kernels at once if none needs a result of another one.  It starts them on
threads of the same pool.  If all threads wait, none is left to compute a part.

So each kernel of a block gets an operand that needs a result of the kernel before it: a selection
by a condition that is never true, which the compiler cannot know.  Kernels in different loops or
branches get no order.  They were never seen to wait for each other.  Where the compiler divides
arrays among devices, there is none either, since it would need messages between devices.

Invariant: a module computes the same bits as before.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .._base import jaxlib_api
from .._base.jaxlib_api import LAPACK, IrModule, IrOperation, IrType, IrValue
from . import mlir

_TYPES = {"f32", "f64", "complex<f32>", "complex<f64>"}
_CALL, _MANUAL = "func.call", "sdy.manual_computation"


def in_order(code: bytes, cpus: int) -> bytes:
    """Return the code of a module that computes the same, and runs kernels one after another.

    Args:
      code: the module.
      cpus: how many of these it runs on.
    """
    with jaxlib_api.lock:
        module = mlir.parse(code)
        return mlir.bytecode(module) if _Order(module, cpus > 1).changed else code


class _Held(NamedTuple):
    """The kernels that an operation runs.

    Attributes:
      needed: which operands the first one needs.
      made: which results need the last one.
    """

    needed: list[int]
    made: list[int]


class _Order:
    """One pass over a module.

    Attributes:
      changed: whether operations were inserted.
      divided: whether the compiler divides arrays among devices, except in `_MANUAL`.
    """

    def __init__(self, module: IrModule, divided: bool) -> None:
        self.module, self.divided, self.changed = module, divided, False
        self.m = mlir.bindings()
        self.functions = {mlir.word(f, "sym_name"): f.operation
                          for f in module.body if f.operation.name == "func.func"}  # fmt: skip
        self.held: dict[str, _Held | None] = {}
        self.delays: dict[tuple[IrType, IrType], str] = {}
        """The functions that were added, by the types of an operand and of the needed value."""
        for name, f in list(self.functions.items()):
            if not divided:
                self.of_function(name)
            for block in list(_blocks(f))[1:]:
                if not divided or block.owner.operation.name == _MANUAL:
                    self.of_block(block)

    def of_block(self, block: Any) -> _Held | None:
        """Order the kernels of a block; return them as those of one operation, if there are any."""
        first: set[IrValue] = set()
        """All that the first kernel needs."""
        made: set[IrValue] = set()
        """The values that need the last kernel."""
        wait: IrValue | None = None
        found = False
        for op in list(block.operations):
            held = self.of_operation(op.operation)
            if held is None or not held.made:  # the compiler drops kernels that no result needs
                if made and any(x in made for x in _read(op.operation)):
                    made.update(op.results)
                continue
            if not found:
                first, found = _sources(op.operands[i] for i in held.needed), True
            alone = not any(op.operands[i] in made for i in held.needed)
            if wait is not None and held.needed and alone:
                self.delay(op.operation, held.needed[0], wait)
            made = {op.results[i] for i in held.made}
            wait = op.results[held.made[0]]
        if not found:
            return None
        *_, end = block.operations
        return _Held(
            [i for i, x in enumerate(block.arguments) if x in first and _has_numbers(x)],
            [i for i, x in enumerate(end.operands) if x in made and _has_numbers(x)],
        )

    def of_operation(self, op: IrOperation) -> _Held | None:
        """Return the kernels of stacks that an operation is or calls; None if there is none."""
        if op.name == _CALL:
            return self.of_function(mlir.word(op, "callee"))
        if op.name != "stablehlo.custom_call":
            return None
        if not mlir.word(op, "call_target_name").startswith(LAPACK):
            return None
        needed = [i for i, x in enumerate(op.operands) if _has_numbers(x)]
        if not needed or not _is_stack(op.operands[needed[0]]):
            return None
        return _Held(needed, [i for i, x in enumerate(op.results) if _has_numbers(x)])

    def of_function(self, name: str) -> _Held | None:
        """Order the kernels of a called function's own block, and return them."""
        if name not in self.held:
            blocks = list(self.functions[name].regions[0].blocks) if name in self.functions else []
            self.held[name] = self.of_block(blocks[0]) if blocks else None
        return self.held[name]

    def delay(self, op: IrOperation, i: int, wait: IrValue) -> None:
        """Make operand `i` of an operation wait for a value."""
        x = op.operands[i]
        key = x.type, wait.type
        if key not in self.delays:
            name = self.delays[key] = f"plait_delay_{len(self.delays)}"
            mlir.declare(self.module, _delay(name, *key))
        at, callee = self.m.ir.InsertionPoint(op), {"callee": mlir.symbol(self.delays[key])}
        call = self.m.create(_CALL, [x.type], [x, wait], callee, None, 0, op.location, at)
        op.operands[i] = call.result
        self.changed = True


def _delay(name: str, t: IrType, waits: IrType) -> str:
    """Return the text of a function that returns its first argument, and needs its second one.

    It tests whether the bits of a number, squared, leave 2 when divided by 4.  No square does.
    """
    array: Any = waits
    part = str(array.element_type)
    one, start = f"tensor<{'1x' * array.rank}{part}>", ", ".join(["0:1"] * array.rank)
    real = part.removeprefix("complex<").removesuffix(">")
    bits = f"tensor<i{real.removeprefix('f')}>"
    return f"""func.func private @{name}(%x: {t}, %y: {waits}) -> {t} {{
      %0 = stablehlo.slice %y [{start}] : ({waits}) -> {one}
      %1 = stablehlo.reshape %0 : ({one}) -> tensor<{part}>
      %2 = stablehlo.real %1 : (tensor<{part}>) -> tensor<{real}>
      %3 = stablehlo.bitcast_convert %2 : (tensor<{real}>) -> {bits}
      %4 = stablehlo.multiply %3, %3 : {bits}
      %5 = stablehlo.constant dense<3> : {bits}
      %6 = stablehlo.and %4, %5 : {bits}
      %7 = stablehlo.constant dense<2> : {bits}
      %8 = stablehlo.compare EQ, %6, %7 : ({bits}, {bits}) -> tensor<i1>
      %9 = stablehlo.negate %x : {t}
      %10 = stablehlo.select %8, %9, %x : tensor<i1>, {t}
      return %10 : {t}
    }}"""


def _has_numbers(x: IrValue) -> bool:
    """Return whether an array has elements of one of LAPACK's types."""
    t: Any = x.type
    if not isinstance(t, mlir.bindings().ir.RankedTensorType) or not t.has_static_shape:
        return False
    return 0 not in t.shape and str(t.element_type) in _TYPES


def _is_stack(x: IrValue) -> bool:
    """Return whether an operand of a kernel has several matrices, which the kernel divides."""
    t: Any = x.type
    return math.prod(t.shape[:-2]) > 1


def _blocks(op: IrOperation) -> Iterator[Any]:
    """Yield the blocks inside an operation, at any depth."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                yield from _blocks(inner.operation)


def _read(op: IrOperation) -> Iterator[IrValue]:
    """Yield the operands of an operation, and of those inside."""
    yield from op.operands
    for block in _blocks(op):
        for inner in block.operations:
            yield from inner.operands


def _sources(values: Iterable[IrValue]) -> set[IrValue]:
    """Return all values that some values are computed from, and these."""
    found: set[IrValue] = set()
    left = list(values)
    while left:
        x = left.pop()
        if x not in found:
            found.add(x)
            maker = mlir.maker(x)
            if maker is not None:
                left.extend(_read(maker.operation))
    return found
