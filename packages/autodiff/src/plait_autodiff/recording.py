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
from typing import Any

import plait
from plait.ext.ir import (
    Program,
    Var,
    evaluate,
    programs_in,
    structure,
)
from plait.ext.ops.shape import (
    materialise_at_ground,
)
from plait.ext.trace import (
    GROUND,
    Stage,
    Tracer,
    opened,
    staged,
    use,
)
from plait.ext.tree import (
    flatten,
)
from plait.ext.values import (
    Array,
    Literal,
    as_value,
)

from .adable import adables
from .forward import JVP
from .found_programs import found, note
from .linearization import Levels, Linearized, expect_scalar, finished, levels_over, linearized
from .tangents import name_of, no_tangent, pair_of


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

    def outside(self, x: Any) -> Any:
        jvp = self.resume()
        dual = self.duals[x]
        return x if isinstance(dual, Tracer) and dual.by is jvp else dual

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


def _operand(x: Any) -> Any:
    """What a jitted function is given for a value: Python's numbers are weak there as they are."""
    if x.__class__ is not Literal:
        return x
    return x.value if x.aval.weak_type and not x.aval.ndim else materialise_at_ground(x)


def recorded_gradient(
    f: Callable[..., Any],
    primals: tuple,
    has_aux: bool,
    holomorphic: bool,
    of: Callable[..., Any],
    differentiate: Callable[..., Any],
) -> tuple:
    """(value, auxiliary value, gradients in a tree like the arguments), from one compiled program
    if there is one.

    `of` is the function as its user wrote it, `differentiate` is `value_and_grad`.
    """
    r = Linearized()
    leaves, r.in_tree = flatten(adables.opened(primals))
    xs = [as_value(x) for x in leaves]
    if any(x.__class__ is Array and x.key is not x.aval for x in xs):
        # placed arrays: as they lie
        return linearized(f, primals, has_aux, "grad", of).gradient(holomorphic)
    r.avals, r.name, r.aux = [x.aval for x in xs], name_of(of), None
    levels: Levels | None = None

    def differentiating() -> tuple[JVP, list]:
        nonlocal levels
        levels = levels_over(GROUND, "grad", of)
        j, _, t = levels
        return j, [j.dual(x, t.input(x.aval.tangent_type)) for x in xs if x.aval.varies]

    recording = Recording(of, differentiating)
    try:
        with opened(recording):
            given = [recording.input(x.aval) if x.aval.varies else x for x in xs]
            out = f(*r.in_tree.unflatten(given))
            if has_aux:
                out, r.aux = pair_of(out, "grad")
            outs, r.tree = flatten(adables.opened(out))
            outs = [as_value(o) for o in outs]
        aux, aux_tree = flatten(adables.opened(r.aux))
        if recording.jvp is None and len(outs) == 1 and recording.owns(outs[0]):
            expect_scalar(outs, r.name, holomorphic)
            own = [x for x in aux if recording.owns(x)]
            moving = [x for x in xs if x.aval.varies]
            done = recording.run([outs[0], *own], moving, differentiate, holomorphic)
            note(of, done is not None)
            if done is not None:
                (value, own), gs = done
                it, of_moving = iter(own), iter(gs)
                aux = [next(it) if recording.owns(x) else x for x in aux]
                g = [next(of_moving) if a.varies else no_tangent(a) for a in r.avals]
                return r.tree.unflatten([value]), aux_tree.unflatten(aux), r.in_tree.unflatten(g)
        else:
            note(of, False)
        recording.resume()
        assert levels is not None
        r.aux = aux_tree.unflatten([recording.dual(x) for x in aux])
        levels.jvp.closed = True
        outs = [recording.dual(o) for o in outs]
        return finished(r, levels, outs, has_aux).gradient(holomorphic)
    finally:
        recording.abandon()
        if levels is not None:
            levels.jvp.closed = True
            levels.tangents.abandon()
