"""Gradients outside of jit, as one program: functions are recorded first, and differentiated then.

Differentiating a function operation by operation takes a launch for each of them, and some twenty
for a function of ten.  But the functions whose gradients are taken again and again do the same each
time.  So outside of every transformation a function is recorded; if what was recorded has the
structure of something that is compiled already, that is run.  Whatever needs a value while the
function runs (a branch of Python), has an effect, or a rule of the user's, ends the recording: what
was recorded is done as ever, and so is the rest (`Recording.resume`).

Invariant: Python code of the user runs once a call.  A compiled gradient is found by all of what it
depends on: operations, parameters, numbers, types, how they are connected, and the settings.
"""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

import plait
from plait.ext.ir import (
    Eqn,
    Program,
    Var,
    derived,
    evaluate,
    programs_in,
)
from plait.ext.ops.shape import (
    materialise_at_ground,
)
from plait.ext.trace import (
    GROUND,
    Stage,
    Tracer,
    staged,
    use,
)
from plait.ext.values import (
    Array,
    Literal,
)

from .forward import JVP


class Recording(Stage):
    """Records what touches its inputs, and does everything else at once.

    Args:
      differentiating: opens the interpreter that differentiates, and returns it with the duals of
        the inputs; asked when the recording ends early.
    """

    settles = False

    def __init__(
        self, of: Callable[..., Any], differentiating: Callable[[], tuple[JVP, Sequence[Any]]]
    ):
        super().__init__(GROUND, "grad", of)
        self.staging = False  # nobody will ask for a program: it is a way of doing things at once
        self.differentiating = differentiating
        self.jvp: JVP | None = None
        self.duals: dict[Any, Any] = {}
        """What variables are for the interpreter that differentiates, once there is one."""

    def apply(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        own = False
        for a in args:
            if a.__class__ is Var and a.by is self:
                own = True
            elif isinstance(a, Tracer):  # of another thread, or escaped: not for us to say
                self.resume()
        if not own:
            return GROUND.apply(prim, args, params)
        if self.jvp is None:
            if (prim.effect is None and prim.higher is None) or not _acts(prim, params):
                return Stage.apply(self, prim, args, params)
            self.resume()
        return self._forwarded(prim, args, params)

    def concrete(self, x: Tracer) -> Any:
        jvp = self.resume()
        dual = self.duals[x]
        return dual if isinstance(dual, Array) else jvp.concrete(dual)

    def resume(self) -> JVP:
        """End the recording: differentiate what was recorded, and from now on as things come."""
        if self.jvp is None:
            jvp, duals = self.differentiating()
            eqns, self.eqns = self.eqns, []
            consts = list(self.consts.values())
            made = [o for e in eqns for o in e.outputs]
            program = Program([*(v for v, _ in consts), *self.inputs], eqns, made)
            with use(jvp):
                outs = evaluate(program, [*(x for _, x in consts), *duals])
            self.duals.update(zip(self.inputs, duals))
            self.duals.update(zip(made, outs))
            self.jvp = jvp
        return self.jvp

    def dual(self, x: Any) -> Any:
        """What a value is for the interpreter that differentiates."""
        return self.duals[x] if x.__class__ is Var and x.by is self else x

    def owns(self, x: Any) -> bool:
        """Whether a value was recorded here."""
        return x.__class__ is Var and x.by is self

    def run(
        self,
        outs: Sequence[Any],
        inputs: Sequence[Any],
        differentiate: Callable[..., Any],
        holomorphic: bool,
    ) -> Any:
        """Return ((value, auxiliary values), gradients) from a compiled program, if there is one.

        `outs` are the value and what is auxiliary; `differentiate` is `value_and_grad`.
        """
        consts = list(self.consts.values())
        operands = [x for _, x in consts], [_operand(x) for x in inputs]
        if self.captured or any(x.key is not x.aval for x in operands[0]):
            return None
        variables = [*(v for v, _ in consts), *self.inputs]
        key = structure(self.eqns, variables, outs)
        if key is None:
            return None
        key = key, tuple([v.aval for v in variables]), len(consts), holomorphic, plait.config.state

        def make() -> Callable[..., Any]:
            recorded = Program(variables, self.eqns, outs)
            # Staged anew, for variables hold this recording, and that the function and its arrays.
            program = staged(
                lambda *xs: evaluate(recorded, xs), [v.aval for v in variables], "gradient"
            )

            def whole(consts: list, xs: list) -> Any:
                def function(*ys: Any) -> Any:
                    out = evaluate(program, [*consts, *ys])
                    return out[0], tuple(out[1:])

                every = tuple(range(len(xs)))
                return differentiate(function, every, has_aux=True, holomorphic=holomorphic)(*xs)

            return plait.jit(whole)

        return found(key, self.eqns, make, operands)

    def _forwarded(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        assert self.jvp is not None
        out = self.jvp.apply(prim, [self.dual(a) for a in args], params)
        return [self._variable(o) for o in out] if prim.many else self._variable(out)

    def _variable(self, dual: Any) -> Any:
        if not isinstance(dual, Tracer):
            return dual
        v = self.var(dual.aval, dual.where)
        self.duals[v] = dual
        return v


def _acts(prim: Any, params: dict[str, Any]) -> bool:
    """Whether an operation has effects, or rules of the user's that are not programs yet."""
    if prim.effect is not None or (prim.higher is not None and prim.higher.pending(params)):
        return True
    return any(p.effects or p.axes for p in programs_in(params))


# ---- what is compiled ----------------------------------------------------------------------------


class _Unkeyed(Exception):
    """Raised at what can not be told apart from something else."""


def structure(
    eqns: Sequence[Eqn], variables: Sequence[Any], outputs: Sequence[Any]
) -> tuple[Any, ...] | None:
    """Return a key that equations of the same structure have, and no others; None if there is none.

    `variables` are those that the equations begin with, in order.
    """
    try:
        key = _structure(eqns, {v: i for i, v in enumerate(variables)}, outputs)
        hash(key)
    except (_Unkeyed, TypeError, KeyError):
        return None
    return key


def _structure(
    eqns: Sequence[Eqn], number: dict[Any, Any], outputs: Sequence[Any]
) -> tuple[Any, ...]:
    n = len(number)
    key: list[Any] = []
    for e in eqns:
        prim = e.prim
        key.append(prim)
        if e.params:
            key.append(_parameters(prim, e.params))
        for a in e.inputs:
            key.append(number[a] if a.__class__ is Var else _literal(a))
        for o in e.outputs:
            number[o] = n
            n += 1
    for a in outputs:
        key.append(number[a] if a.__class__ is Var else _literal(a))
    return tuple(key)


def _literal(x: Literal) -> tuple[Any, ...]:
    """Zeros and nans by their text: equality does not tell the one apart, nor find the other."""
    v = x.value
    return v.__class__, v if v and v == v else repr(v), x.aval


def _parameters(prim: Any, params: dict[str, Any]) -> tuple[Any, ...]:
    if prim.higher is None:
        return prim.frozen(params)
    plain: dict[str, Any] = {}
    key: list[Any] = []
    for name, x in params.items():
        if x.__class__ is Program:
            key.append((name, _of_program(x)))
        elif x.__class__ is tuple and any(p.__class__ is Program for p in x):
            key.append((name, *[_of_program(p) if p.__class__ is Program else p for p in x]))
        elif callable(x) and not isinstance(x, type):
            raise _Unkeyed
        else:
            plain[name] = x
    return (*key, prim.frozen(plain))


def _of_program(program: Program) -> tuple[Any, ...]:
    """The structure of a program; its constants are told apart as objects, and it holds them."""

    def make() -> tuple[Any, ...]:
        number: dict[Any, Any] = {v: i for i, v in enumerate(program.inputs)}
        for v, x in program.consts:
            number[v] = "constant", id(x)
        held = _Held([x for _, x in program.consts])
        types = tuple(program.in_avals)
        return types, held, _structure(program.eqns, number, program.outputs)

    return derived(program, ("structure", "autodiff"), make)


class _Held:
    """Objects that a key holds, since it has their numbers; it is equal to every other one."""

    def __init__(self, objects: list[Any]):
        self.objects = objects

    def __eq__(self, other: object) -> bool:
        return other.__class__ is _Held

    def __hash__(self) -> int:
        return 0


_MOST = 512
_SIGHTS = 8
"""Calls of one structure after which it is compiled, which takes as long as hundreds of them."""
_NEW = 4
"""So many operations that were never done compile about as long as the whole; so it is compiled."""
_UNUSED = 4
"""Programs compiled at first sight that may wait for a second call; beyond, structures change at
every call, and operations are what they share."""

_compiled: "dict[Any, _Whole]" = {}
_sights: dict[int, int] = {}
_done: set[Any] = set()
"""Operations with types that were done one by one."""


class _Whole:
    """A compiled function (None if it can not be), and whether it was found again."""

    __slots__ = ("call", "used")

    def __init__(self, call: Callable[..., Any] | None):
        self.call, self.used = call, False


def _operand(x: Any) -> Any:
    """What a jitted function is given for a value: Python's numbers are weak there as they are."""
    if x.__class__ is not Literal:
        return x
    return x.value if x.aval.weak_type and not x.aval.ndim else materialise_at_ground(x)


_TRIES = 32
"""Calls in a row of which no program came, after which a function is recorded no more: it branches,
or is another one each time."""
_vain: "WeakKeyDictionary[CodeType, int]" = WeakKeyDictionary()


def is_recorded(f: Callable[..., Any]) -> bool:
    """Whether calls of a function are worth recording."""
    code = getattr(f, "__code__", None)
    return not isinstance(code, CodeType) or _vain.get(code, 0) < _TRIES


def note(f: Callable[..., Any], is_run: bool) -> None:
    """Remember whether what was recorded of a function was run as a program."""
    code = getattr(f, "__code__", None)
    if isinstance(code, CodeType):
        _vain[code] = 0 if is_run else _vain.get(code, 0) + 1


def found(
    key: Any, eqns: Sequence[Eqn], make: Callable[[], Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """Return what the compiled function of this key gives, which `make()` makes; None if there is
    none, since that would take longer or can not be compiled."""
    whole = _compiled.get(key)
    if whole is not None:
        whole.used = True
        return whole.call(*operands) if whole.call is not None else None
    if not _is_worth_it(key, eqns):
        return None
    if len(_compiled) >= _MOST:
        _compiled.clear()
    call = make()
    try:
        out = call(*operands)
    except Exception:
        _compiled[key] = _Whole(None)  # done one by one, the operations say what is wrong
        return None
    _compiled[key] = _Whole(call)
    return out


def _is_worth_it(key: Any, eqns: Sequence[Eqn]) -> bool:
    operations = [(e.prim, *[a.aval for a in e.inputs]) for e in eqns]
    unknown = sum(o not in _done for o in operations)
    if unknown >= _NEW and sum(not w.used for w in _compiled.values()) < _UNUSED:
        return True
    if len(_done) > 16 * _MOST or len(_sights) > 16 * _MOST:
        _done.clear()
        _sights.clear()
    _done.update(operations)
    number = hash(key)
    seen = _sights[number] = _sights.get(number, 0) + 1
    return seen >= _SIGHTS
