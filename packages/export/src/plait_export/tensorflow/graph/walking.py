"""A walk through a module that builds TensorFlow operations in order.

Invariant: every result has the dtype and the rank that the module declares, and TensorFlow gets the
sizes that are static in the module; otherwise an error names the operation.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from plait.ext.errors import PlaitError

from ...errors import NotExportable
from ...portable import ASSERTION
from ...reader.module import Block, Function, Op
from ..library import tf
from .named import known_again
from .table import GRAPHS, OF_ELEMENTS, REFUSED

_MOST_DEEP = 200
"""The limit for nested regions and functions; no real program reaches it."""

_MOST = 10**6
"""The most operations of a graph; larger graphs are not usable."""


class Walk:
    """The state of building one graph.

    Attributes:
      functions: the functions of the module, by name.
      name, paths: the name of the converted function and the paths of its arguments, for errors.
      checks: operations that must run before the next one.
    """

    __slots__ = (
        "functions",
        "name",
        "paths",
        "_env",
        "_depth",
        "_of_elements",
        "checks",
        "_count",
    )

    def __init__(self, functions: Mapping[str, Function], name: str, paths: Sequence[str]):
        self.functions, self.name, self.paths = functions, name, paths
        self._env: dict[int, Any] = {}
        self._depth = 0
        self._of_elements = False
        self._count = 0
        self.checks: list[Any] = []

    # -- values ----------------------------------------------------------------------------

    def constant_at(self, number: int) -> np.ndarray | None:
        """Return the scalar constant with this number; None if the value is not one."""
        x = self._env.get(number)
        if x is None or x.shape.rank != 0:
            return None
        return tf.get_static_value(x)

    # -- operations ------------------------------------------------------------------------

    def block(self, block: Block, args: Sequence[Any]) -> list[Any]:
        """Build a block for tensors, and return its results."""
        with self._deeper(), ExitStack() as later:
            env = self._env
            env.update(zip(block.arguments, args, strict=True))
            for op in block.ops:
                ys = self._done(op, [env[n] for n in op.operands])
                env.update(zip(op.results, ys, strict=True))
                if self.checks:
                    later.enter_context(tf.control_dependencies(self.checks))
                    self.checks = []
            return [env[n] for n in block.returned]

    def _done(self, op: Op, xs: list) -> Sequence[Any]:
        self._count += 1
        if self._count > _MOST:
            raise self.unsaid(f"it is more than {_MOST} operations, as functions call each other")
        if op.name == "stablehlo.constant":
            return [tf.constant(op.attributes["value"])]
        rule = GRAPHS.get(op.name)
        if rule is None:
            raise self.refused(op)
        _check_types(self, op)
        if self._of_elements and op.name not in OF_ELEMENTS:
            raise self.unsaid(f"a function of elements applies {op.name}, which is not elementwise")
        try:
            out = rule(self, op, xs)
            outs = out if out.__class__ in (list, tuple) else [out]
            return [self._fitted(y, t) for y, t in zip(outs, op.types, strict=True)]
        except PlaitError:
            raise
        except (TypeError, ValueError, tf.errors.OpError) as e:
            said = str(e).strip().splitlines()
            raise self.unsaid(f"{op.name} is refused there: {said[0] if said else e!r}") from e

    def _fitted(self, y: Any, want: Any) -> Any:
        """Check a result against the declared type, and add the sizes that the module has."""
        dtype = tf.as_dtype(want.dtype)
        if y.dtype != dtype:
            raise TypeError(f"it gives {y.dtype.name} for {dtype.name}")
        if self._of_elements:
            return y
        known = y.shape.merge_with(want.shape)  # Raises ValueError if the shapes differ.
        told = y.shape.rank is not None and known.as_list() == y.shape.as_list()
        return y if told else tf.ensure_shape(y, known)

    def refused(self, op: Op) -> NotExportable:
        """Return the error for an operation without a rule."""
        return self.unsaid(f"{op.name}: {REFUSED.get(op.name, 'nobody has said it there')}")

    def unsaid(self, why: str) -> NotExportable:
        """Return the error for a program that no graph can express, with the reason."""
        return NotExportable(
            f"{self.name} has no graph of TensorFlow's: {why}",
            fix="convert it with to_tf(..., enable_graph=False), which runs StableHLO there",
        )

    # -- functions -------------------------------------------------------------------------

    def main(self, xs: Sequence[Any]) -> list[Any]:
        """Build the function `main` and return its results."""
        return self._entered(self.functions["main"], xs)

    def size_checks(self, xs: Sequence[Any]) -> list[Any]:
        """Return operations that fail if the sizes of these arguments do not fit.

        Raises ShapeError if that is known now.
        """
        body, found = self.functions["main"].body, []
        env = dict(zip(body.arguments, xs, strict=True))
        for op in _checking(body):
            env.update(zip(op.results, self._done(op, [env[n] for n in op.operands]), strict=True))
            found += self.checks
            self.checks = []
        return found

    def call(self, name: str, xs: Sequence[Any]) -> list[Any]:
        """Build a function of the module and return its results.

        Functions are inlined where they are called, as compilers do, so that tools that process the
        graph find operations only.
        """
        f = self.functions[name]
        known = known_again(f, xs)
        return self._entered(f, xs) if known is None else known

    def elements(self, block: Block) -> Callable[[Sequence[Any]], list]:
        """Return a region of scalars as a function of arrays, which are broadcast."""
        if any(t.shape for t in block.types):
            raise self.unsaid("a function of elements takes others than elements")

        def apply(xs: Sequence[Any]) -> list:
            before, self._of_elements = self._of_elements, True
            try:
                ys = self.block(block, xs)
            finally:
                self._of_elements = before
            widest = max(xs, key=lambda x: x.shape.rank)
            return [_spread(y, widest) for y in ys]

        return apply

    def _entered(self, f: Function, xs: Sequence[Any]) -> list:
        """Build the body of a function in an empty environment, and return its results."""
        env, self._env = self._env, {}
        try:
            return self.block(f.body, xs)
        finally:
            self._env = env

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MOST_DEEP:
            raise self.unsaid(f"functions and loops in each other, deeper than {_MOST_DEEP}")
        try:
            yield
        finally:
            self._depth -= 1


def _checking(body: Block) -> list[Op]:
    """Return the size checks of a block with the operations that they depend on.

    Returns none if these include calls or operations with regions.
    """
    kept, needed = [], set()
    for op in reversed(body.ops):
        if op.attributes.get("call_target_name") == ASSERTION or needed & {*op.results}:
            kept.append(op)
            needed |= {*op.operands}
    plain = not any(op.regions or op.name == "func.call" for op in kept)
    return kept[::-1] if plain else []


_NARROW = re.compile("u?int[24]$|float[48]_")


def _check_types(walk: Walk, op: Op) -> None:
    """Refuse operations on integers of less than a byte and on floats of at most one.

    TensorFlow has only conversions for them.
    """
    found = [t.dtype.name for t in op.types if _NARROW.match(t.dtype.name)]
    if found and op.name not in ("stablehlo.convert", "func.call"):
        raise walk.unsaid(f"{op.name} of {found[0]}, of which it has conversions only")


def _spread(y: Any, like: Any) -> Any:
    """Broadcast a result without operands, such as a constant, to the rank of the operands."""
    return y if y.shape.rank == like.shape.rank else tf.broadcast_to(y, tf.shape(like))
