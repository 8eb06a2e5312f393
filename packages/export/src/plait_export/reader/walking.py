"""A walk through a module that applies the table of rules to its operations in order.

Invariant: every result has the dtype, the rank and the sizes that the module declares, or an error
is raised.  A function is read once for each list of argument types and sizes, so that repeated
calls do not enlarge the program.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import plait
from plait.ext.errors import PlaitError
from plait.ext.lower import OPERATION
from plait.ext.ops.callbacks import foreign
from plait.ext.ops.collective import pvary_
from plait.ext.ops.control_flow import call
from plait.ext.ops.shape import convert
from plait.ext.sizes import Dim
from plait.ext.trace import Value, stage
from plait.ext.types import Aval
from plait.ext.values import Literal, as_value

from ..errors import NotReadable
from .module import Block, Function, Op, Type
from .sizes import Known, Place, folded, known_constant
from .table import REFUSED, RULES

_MOST_DEEP = 200
"""The limit for nested regions and functions; no real program reaches it."""


class Walk:
    """The state of reading one module.

    Attributes:
      functions: the functions of the module, by name.
      instead: maps the number of a result to a value that replaces its operation.
      region: the per-device region around the current operation, or None.
    """

    __slots__ = ("functions", "instead", "region", "_read", "_env", "_depth", "_made")

    def __init__(self, functions: dict[str, Function]):
        self.functions = functions
        self._read: dict[Any, Any] = {}
        self._env: dict[int, Any] = {}
        self.instead: dict[int, Any] = {}
        self.region: Any = None
        self._depth = 0
        self._made: dict[int, Op] = {}

    # -- values ----------------------------------------------------------------------------

    def value(self, x: Any) -> Any:
        """Return an array value, converting known values and places."""
        return x.value() if x.__class__ in (Known, Place) else x

    def of(self, number: int) -> Any:
        """Return the value with this number.  Raises NotReadable if it is not made yet."""
        try:
            return self._env[number]
        except KeyError:
            raise NotReadable("a value is used before it is made") from None

    def sizes(self, x: Any, what: str) -> tuple[Any, ...]:
        """Return an operand as sizes.  Raises NotReadable if they are not known."""
        if x.__class__ is not Known:
            raise NotReadable(
                f"the {what} are computed of values, and not of the sizes of arguments",
                fix="Exported.specialize(sizes) may make them numbers",
            )
        return x.items

    def constant_at(self, number: int) -> np.ndarray | None:
        """Return the scalar constant with this number; None if the value is not one."""
        x: Any = self._env.get(number)
        if x.__class__ is Known and not x.shape and x.items[0].__class__ is not Dim:
            return np.asarray(x.items[0], x.dtype)
        if x.__class__ is Literal and not x.aval.shape:
            return np.asarray(x.value).astype(x.aval.dtype)
        return None

    def made_by(self, number: int) -> Op | None:
        """Return the operation that made a value; None for an argument."""
        return self._made.get(number)

    # -- operations ------------------------------------------------------------------------

    def block(self, block: Block, args: Sequence[Any]) -> list[Any]:
        """Read a block for array values or known values, and return its results."""
        if len(args) != len(block.arguments):
            raise NotReadable(f"{len(args)} values are given to a block of {len(block.arguments)}")
        self._depth += 1
        if self._depth > _MOST_DEEP:
            raise NotReadable(f"functions and loops in each other, deeper than {_MOST_DEEP}")
        env, before = self._env, [(n, self._env.get(n)) for n in block.arguments]
        try:
            env.update(zip(block.arguments, args))
            for op in block.ops:
                if op.results and op.results[0] in self.instead:
                    env[op.results[0]] = self.instead[op.results[0]]
                    continue
                xs = [self.of(n) for n in op.operands]
                for number, y in zip(op.results, self._done(op, xs), strict=True):
                    env[number], self._made[number] = y, op
            return [self.of(n) for n in block.returned]
        finally:
            env.update([(n, x) for n, x in before if x is not None])
            self._depth -= 1

    def known_in(self, block: Block, number: int, args: Sequence[Any]) -> "Known | None":
        """Return a value of a block if it can be computed from known values, otherwise None.

        The arguments that are not None are known, and so may be values outside the block.
        """
        env = dict(zip(block.arguments, args, strict=True))
        for op in block.ops:
            xs: list[Any] = [env[n] if n in env else self._env.get(n) for n in op.operands]
            if op.name == "stablehlo.constant":
                found: Any = constant(op.attributes["value"])
            else:
                known = bool(xs) and all(x.__class__ is Known for x in xs)
                found = folded(op, xs) if known else None
            env.update(dict.fromkeys(op.results, found))
        found = env.get(number)
        return found if found.__class__ is Known else None

    def _done(self, op: Op, xs: list) -> Sequence[Any]:
        if op.name == "stablehlo.constant":
            return [constant(op.attributes["value"])]
        if xs and all(x.__class__ is Known for x in xs):
            found = folded(op, xs)
            if found is not None:
                return [found]
        if xs and xs[0].__class__ is Place:
            place = xs[0].after(op, xs[1:])
            if place is not None:
                return [place]
        xs = [x.value() if x.__class__ is Place else x for x in xs]
        rule = RULES.get(op.name)
        if rule is None:
            raise _unknown(op)
        try:
            given = xs if rule in TAKES_KNOWN else [self.value(x) for x in xs]
            out = rule(self, op, given)
            outs = out if out.__class__ in (list, tuple) else [out]
            return [self._fitted(op, y, t) for y, t in zip(outs, op.types, strict=True)]
        except NotReadable:
            raise
        except PlaitError as e:
            raise NotReadable(f"{op.name} cannot be read back: {e.what}") from e
        except RecursionError:
            raise
        except Exception as e:  # Damaged files may hold attributes that StableHLO never writes.
            raise NotReadable(f"{op.name} cannot be read back: {type(e).__name__}: {e}") from e

    def _fitted(self, op: Op, y: Any, want: Type) -> Any:
        """Check a result against the type that the module declares, and return it."""
        if y.__class__ in (Known, Place):
            return y
        y = as_value(y)
        a = y.aval
        if a.weak_type:
            y = convert(y, a.dtype)
        fits = a.dtype == want.dtype and len(a.shape) == len(want.shape)
        if fits and all(m is None or n.__class__ is Dim or n == m
                        for n, m in zip(a.shape, want.shape)):  # fmt: skip
            return y
        raise NotReadable(
            f"{op.name} is said to return {_shown(want)}, and returns {a!r}",
        )

    # -- functions -------------------------------------------------------------------------

    def call(self, name: str, xs: Sequence[Any]) -> list[Any]:
        """Call a function of the module and return its results.

        Known results stay known; the others come from one call operation.
        """
        f = self._function(name)
        if OPERATION in f.attributes:
            return operation(f.attributes[OPERATION], [self.value(x) for x in xs])
        known = [x.key() if x.__class__ is Known else x.aval for x in xs]
        key = (name, self.region, *known)
        if key not in self._read:
            self._read[key] = self._staged(f, xs)
        program, returned = self._read[key]
        values = [x for x in xs if x.__class__ is not Known]
        outs = iter(call.bind(*values, program=program))
        return [next(outs) if y is None else y for y in returned]

    def main(self, xs: Sequence[Any]) -> list[Any]:
        """Read the function `main` and return its results."""
        return self._entered(self._function("main"), xs)

    def _function(self, name: str) -> Function:
        if name not in self.functions:
            raise NotReadable(f"the module has no function {name}")
        return self.functions[name]

    def _staged(self, f: Function, xs: Sequence[Any]) -> Any:
        """Return (program of a function, its results if they are known and else None).

        The program takes the arguments that are not known, and returns the results that are not.
        """
        returned: list = []

        def apply(*values: Value) -> list:
            given = iter(values)
            found = self._entered(f, [x if x.__class__ is Known else next(given) for x in xs])
            returned[:] = [y if y.__class__ is Known else None for y in found]
            return [self.value(y) for y in found if y.__class__ is not Known]

        avals = [x.aval for x in xs if x.__class__ is not Known]
        # Traced within the caller's trace, which binds the mesh axes that the function may use.
        program, captured = stage(apply, avals, f.name, prune=True)
        assert not captured, "a function sees nothing outside"
        return program, returned

    def _entered(self, f: Function, xs: Sequence[Any]) -> list:
        """Read the body of a function in an empty environment, and return its results."""
        env, self._env = self._env, {}
        try:
            return self.block(f.body, xs)
        finally:
            self._env = env


TAKES_KNOWN: set[Callable[..., Any]] = set()
"""Rules that take known values without conversion to arrays."""


def takes_known(rule: Callable) -> Callable:
    """Mark a rule as taking known values without conversion to arrays."""
    TAKES_KNOWN.add(rule)
    return rule


def operation(text: str, xs: Sequence[Any]) -> list[Any]:
    """Apply the operation that a function is named after, and return the results.

    Operands may be preceded by sizes, which are ignored.  Raises NotReadable for a text that is not
    an operation, or an operation that artifacts must not name (with effects or sub-programs).
    """
    try:
        (e,) = plait.text.parse(text).eqns
    except (PlaitError, ValueError, RecursionError) as error:
        said = getattr(error, "what", str(error))
        raise NotReadable(
            f"an operation has a name that says nothing here: {said}",
            fix="install, or update, the package that it is of",
        ) from None
    prim, count = e.prim, len(e.inputs)
    if prim is pvary_:  # Reading infers anew along which mesh axes values vary.
        return [*xs]
    if prim.higher or prim.ambient or prim.effect or prim is foreign or len(xs) < count:
        raise NotReadable(f"the operation {prim} has no place in an artifact")
    out = prim.bind(*xs[len(xs) - count :], **e.params)
    return list(out) if prim.many else [out]


def names_in(functions: Iterable[Function]) -> set[str]:
    """Return the names of the operations that functions are named after."""
    found = [re.search(r"= ([\w.]+)\(", str(f.attributes.get(OPERATION, ""))) for f in functions]
    return {m[1] for m in found if m}


def constant(x: np.ndarray) -> Any:
    """Return a constant as known values, as a literal if all elements are equal, or as an array."""
    found = known_constant(x)
    if found is not None:
        return found
    first = x.reshape(-1)[:1]
    same = x.size and np.full(x.shape, first[0]).tobytes() == x.tobytes()
    return Literal(first[0].item(), Aval(x.shape, x.dtype)) if same else as_value(x)


def _shown(t: Type) -> str:
    return f"{t.dtype.name}[{','.join('?' if d is None else str(d) for d in t.shape)}]"


def _unknown(op: Op) -> NotReadable:
    why = REFUSED.get(op.name)
    if why is not None:
        return NotReadable(f"{op.name} cannot be read back: {why}")
    return NotReadable(
        f"{op.name} is an operation that this reader does not know",
        fix="python -m pip install --upgrade plait-export; until then, call the artifact as it is",
    )
