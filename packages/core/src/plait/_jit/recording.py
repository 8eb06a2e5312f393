"""Transformations outside of jit, run as one program: functions are recorded, then transformed.

Transforming a function operation by operation takes a launch for each one, and some twenty for the
gradient of a function of ten.  But functions that are transformed again and again do the same each
time.  So a transformation with no other around it may record the function.  If a program with the
structure of the recording is compiled already, that program is run.  A recording ends early at a
branch of Python (which needs a value), an effect, or a custom rule: the recorded operations
are then executed one by one, and so is the rest (`Recording.resume`).

Invariant: the user's Python code runs once per call.  The cache key of a compiled program holds
everything that it depends on: the transformation, operations, parameters, numbers, types, their
connections, and the settings.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._base.config import config
from .._base.errors import PlaitError
from .._core.array import Array, Literal
from .._core.carrier import Carrier, components
from .._core.deferred import Deferred
from .._core.handles import apply_through, handle_among
from .._core.interpreter import GROUND, Interpreter, Tracer, Value, as_list, use
from .._core.ir import Program, Var, evaluate, programs_in
from .._core.primitive import Primitive
from .._core.staging import Stage, staged
from .._core.structures import structure
from .._ops.shape import materialise_at_ground
from .._types.avals import WEAK
from .found_programs import found, note
from .jitted import jit

__all__ = ["Recording", "as_operand", "is_unplaced"]


class Recording(Stage):
    """A stage that records operations on its inputs, and executes all others at once.

    Operations on numbers alone are recorded too.

    Args:
      kind: the class of the transformation's interpreter.
      of: the function as its user wrote it.
      opening: opens the interpreter of the transformation, and returns it with its values for the
        inputs; called when the recording ends early, and at most once.
      does: the name of the transformation, if it is not that of the class.
      settles: whether Python functions in parameters (custom rules) are staged, as that interpreter
        would stage them, and recorded; otherwise they end the recording.

    >>> import plait
    >>> from plait.ext.trace import GROUND, Recording, opened
    >>> def twice(f, x):
    ...     recording = Recording(type(GROUND), f, lambda: (GROUND, [x]), "twice")
    ...     with opened(recording):
    ...         out = f(recording.input(x.aval))
    ...     done = recording.run([out], [[x]], None, lambda g, xs: g(*g(*xs)))
    ...     recording.abandon()
    ...     return f(f(x)) if done is None else done[0]
    >>> [float(twice(lambda x: x * x + 1, plait.numpy.asarray(2.0))) for _ in range(9)][-1]
    26.0
    """

    settles: bool
    is_run: bool

    def __init__(
        self,
        kind: type[Interpreter],
        of: Callable[..., Any],
        opening: Callable[[], tuple[Interpreter, Sequence[Any]]],
        does: str | None = None,
        settles: bool = False,
    ):
        super().__init__(GROUND, does or kind.does, of)
        self._kind, self.copies, self.settles = kind, kind.copies, settles
        self.staging = False  # it is a form of eager execution, so no program is returned
        self.opening = opening
        self.interpreter: Any = None
        """The interpreter of the transformation, once the recording ended early."""
        self.values: dict[Any, Any] = {}
        """The values of variables for that interpreter, once the recording ended early."""
        self.is_run = False

    @property
    def kind(self) -> type[Interpreter]:
        return self._kind

    def apply(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        own = known = False
        for a in args:
            if a.__class__ is Var and a.by is self:
                own = True
            elif a.__class__ is not Literal:
                known = True
                if isinstance(a, Tracer):  # of another thread, or escaped: the interpreter decides
                    self.resume()
        if self.settles and prim.higher is not None and prim.higher.pending(params):
            if own or self._is_closed_over(params):
                args, params = prim.higher.settle(params, args)
                handle = handle_among(args)
                if handle is not None:
                    return apply_through(self, handle, prim, args, params)
                return self.apply(prim, args, params)
        # Operations on numbers alone are recorded, since each would take its own launch.
        if not own and (known or not args or self.interpreter is not None):
            out = GROUND.apply(prim, args, params)
            if prim.higher is not None and prim.higher.custom:
                self._refuse_enclosed(prim, params, out)
            return out
        interpreter = self.interpreter
        if interpreter is None:
            if (prim.effect is None and prim.higher is None) or not _acts(prim, params):
                return Stage.apply(self, prim, args, params)
            interpreter = self.resume()
        out = interpreter.apply(prim, [self.value(a) for a in args], params)
        if not own and prim.higher is not None and prim.higher.custom:
            self._refuse_enclosed(prim, params, out)
        return [self._variable(o) for o in out] if prim.many else self._variable(out)

    def _is_closed_over(self, params: dict[str, Any]) -> bool:
        """Return whether functions that are not staged yet close over recorded values."""
        users = [p for p in params.values() if p.__class__ is Deferred]
        return any(x.by is self for p in users for x in p.tracers())

    def _refuse_enclosed(self, prim: Any, params: dict[str, Any], out: list[Value]) -> None:
        """Refuse results of a function with a custom rule that ran unrecorded and closes over
        recorded values, as the transformation does; see `Carrier.refuse_enclosed`."""
        outs = [o for o in components(as_list(out)) if self.owns(o)]
        if outs:
            interpreter = self.resume()
            kind = prim.higher.custom
            if isinstance(interpreter, Carrier) and kind in interpreter.heeds:
                interpreter.refuse_enclosed(kind, params, [self.value(o) for o in outs])

    def concrete(self, x: Tracer) -> Any:
        interpreter = self.resume()
        value = self.values[x]
        return value if isinstance(value, Array) else interpreter.concrete(value)

    def outside(self, x: Value) -> Any:
        interpreter = self.resume()
        value = self.values[x]
        return x if isinstance(value, Tracer) and value.by is interpreter else value

    def resume(self) -> Any:
        """End the recording and return the interpreter of the transformation.

        The recorded operations are executed under that interpreter, and later ones as they come.
        """
        if self.interpreter is None:
            interpreter, values = self.opening()
            eqns, self.eqns = self.eqns, []
            consts = list(self.consts.values())
            made = [o for e in eqns for o in e.outputs]
            program = Program([*(v for v, _ in consts), *self.inputs], eqns, made)
            with use(interpreter):
                outs = evaluate(program, [*(x for _, x in consts), *values])
            self.values.update(zip(self.inputs, values))
            self.values.update(zip(made, outs))
            self.interpreter = interpreter
        return self.interpreter

    def value(self, x: Value) -> Any:
        """Return the value of `x` for the interpreter of the transformation, after `resume`."""
        return self.values[x] if self.owns(x) else x

    def owns(self, x: Any) -> bool:
        """Return whether a value was recorded here."""
        return x.__class__ is Var and x.by is self

    def run(
        self,
        outs: Sequence[Any],
        operands: Sequence[list[Any]],
        key: tuple[Any, ...],
        transformed: Callable[..., Any],
    ) -> Any:
        """Return the result of the transformed function, from a compiled program.

        The result is None if no program is compiled, or if an operation needed a value while the
        function ran: then `resume` continues.

        Args:
          outs: results that were recorded here.
          operands: lists of values, which `transformed` takes besides.
          key: everything that the transformed function depends on besides types and the recording.
          transformed: `transformed(f, *operands)` applies the transformation to `f`, which takes
            the inputs and returns a list like `outs`, and returns a tree of arrays.
        """
        if self.interpreter is not None:
            return None
        done = self._found(outs, operands, key, transformed)
        self.is_run = done is not None
        return done

    def abandon(self) -> None:
        """End the recording, and drop the recorded operations and values.

        The values are found by variables that refer to this recording: kept, they would be garbage
        that only the collector frees, which counts objects and not the bytes of devices.
        """
        if self.parent is not None:
            note(self.of, self.does, self.is_run)
        self.values, self.interpreter, self.opening = {}, None, _ended
        super().abandon()

    def _found(
        self,
        outs: Sequence[Any],
        operands: Sequence[list[Any]],
        key: tuple[Any, ...],
        transformed: Callable[..., Any],
    ) -> Any:
        held = list(self.consts.values())
        consts = [x for _, x in held]
        if self.captured or not all(map(is_unplaced, consts)):
            return None
        variables = [*(v for v, _ in held), *self.inputs]
        what = structure(self.eqns, variables, outs)
        if what is None:
            return None
        types = tuple([v.aval for v in variables])
        does = self.does, key

        def make() -> Callable[..., Any]:
            recorded = Program(variables, self.eqns, outs)
            # Staged anew: the variables hold this recording, which holds the function and arrays.
            program = staged(lambda *xs: evaluate(recorded, xs), types, self.does)

            def whole(consts: list[Any], *operands: list[Any]) -> Any:
                return transformed(lambda *xs: evaluate(program, [*consts, *xs]), *operands)

            return jit(whole)

        given = [[as_operand(x) for x in xs] for xs in operands]
        full = does, what, types, len(consts), config.state
        return found(full, does, self.eqns, make, [consts, *given])

    def _variable(self, value: Value) -> Any:
        if not isinstance(value, Tracer) or self.owns(value):
            return value
        v = self.var(value.aval, value.where)
        self.values[v] = value
        return v


def _ended() -> Any:
    raise PlaitError("a recording that ended was resumed", fix="abandon it when all is done")


def is_unplaced(x: Any) -> bool:
    """Return whether a value has no explicit placement; recordings become programs only of such
    values."""
    return x.__class__ is not Array or x.key is x.aval


def _acts(prim: Primitive, params: dict[str, Any]) -> bool:
    """Return whether an operation has effects, or custom rules that are not programs yet."""
    if prim.effect is not None or (prim.higher is not None and prim.higher.pending(params)):
        return True
    return any(p.effects or p.axes for p in programs_in(params))


def as_operand(x: Any) -> Any:
    """Return a value as an operand of a jitted function: Python numbers stay numbers.

    A number of another type than Python's, such as a weak float64, would become one of these.
    """
    if x.__class__ is not Literal:
        return x
    return x.value if x.aval is WEAK.get(x.value.__class__) else materialise_at_ground(x)
