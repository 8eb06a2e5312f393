"""saved_residuals and print_saved_residuals: a report of the values that reverse mode keeps.

Invariant: the list holds exactly the values that the function's pullback holds and needs.  Its
memory is the sum of their bytes, less memory that several entries share.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from plait.ext.errors import border, user_frames
from plait.ext.ir import Eqn, Program, Var, dce
from plait.ext.trace import Value, shapes_only, stage, trace
from plait.ext.tree import flatten, key_paths
from plait.ext.types import Aval, float0
from plait.ext.values import as_value

from ..api import linearize
from ..tangents import expect_function, no_tangent
from .policies import name_
from .residuals import move_


class Residual(NamedTuple):
    """A value that reverse mode keeps.

    Attributes:
      aval: its type.
      what: where it comes from, in words: an argument, an operation, a name, a constant.
      where: `file:line (function)` of the operation, or "".
    """

    aval: Aval
    what: str
    where: str

    @property
    def bytes(self) -> Any:
        """The size in memory; symbolic if the shape is."""
        return self.aval.size * self.aval.dtype.itemsize

    def __str__(self) -> str:
        line = f"{self.aval!r:16} {self.bytes!s:>10} B  {self.what}"
        return f"{line} at {self.where}" if self.where else line


@border
def saved_residuals(f: Callable, *args: object, **kwargs: object) -> list[Residual]:
    """Return the values that `vjp` of `f` would keep for its pullback.

    Args:
      f: takes and returns trees of arrays.
      args, kwargs: arguments for `f`, or ShapeDtypeStructs: nothing is computed.

    >>> import plait
    >>> [r.what for r in plait.saved_residuals(lambda x: plait.lax.sin(plait.lax.sin(x)), 1.0)]
    ['result of core.cos', 'result of core.cos']
    >>> f = plait.checkpoint(lambda x: plait.lax.sin(plait.lax.sin(x)))
    >>> [r.what for r in plait.saved_residuals(f, 1.0)]
    ['the argument x']
    """

    expect_function(f, "saved_residuals")

    def kept(a: tuple, k: dict) -> list:
        _, linear = linearize(lambda a, k: f(*a, **k), a, k)
        leaves, tree = flatten((a, k))

        def flat(*ts: Value) -> list:
            given = iter(ts)
            whole = [next(given) if x.aval.varies else no_tangent(x.aval) for x in leaves]
            dots = flatten(linear(*tree.unflatten(whole)))[0]
            return [as_value(t) for t in dots if getattr(t, "dtype", None) != float0]

        moving = [x.aval.tangent_type for x in leaves if x.aval.varies]
        program, captured = stage(flat, moving, prune=True)
        program, used = dce(program)
        return [*(c for c, u in zip(captured, used) if u), *(x for _, x in program.consts)]

    traced = trace(kept, shapes_only((args, kwargs)), {}, "saved_residuals")
    p = traced.program
    positions = dict(zip(p.inputs[len(traced.captured) :], _names(f, args, kwargs)))
    return [Residual(a.aval, *_described(p, a, positions)) for a in dict.fromkeys(p.outputs)]


@border
def print_saved_residuals(f: Callable, *args: object, **kwargs: object) -> None:
    """Print a line for each value that `vjp` of `f` would keep, and the total of their bytes.

    >>> import plait
    >>> plait.print_saved_residuals(lambda x, y: x * y, plait.numpy.ones(3), plait.numpy.ones(3))
    f32[3]                   12 B  the argument y
    f32[3]                   12 B  the argument x
    in all                   24 B
    """
    total: Any = 0
    for r in saved_residuals(f, *args, **kwargs):
        print(r)
        total = total + r.bytes
    print(f"{'in all':16} {total!s:>10} B")


def section(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]] | None:
    """Return the table of residuals for the page of a function: its title, the heads of its columns
    and its rows; None if it keeps none."""
    found = saved_residuals(f, *args, **kwargs)
    rows = [(repr(r.aval), f"{r.bytes:,}", r.what, r.where) for r in found]
    total = sum(r.bytes for r in found if isinstance(r.bytes, int))
    title = f"Values that a gradient keeps: {total:,} bytes"
    return (title, ("type", "bytes", "value", "line"), rows) if rows else None


def _names(f: Callable, args: tuple, kwargs: dict) -> list[str]:
    """Return a name for each flat argument, in the order of flattening."""
    try:
        parameters = inspect.signature(f).parameters.values()
        names = [p.name for p in parameters if p.kind < p.VAR_POSITIONAL][: len(args)]
    except (TypeError, ValueError):
        names = []
    front = [*names, *(f"number {i}" for i in range(len(names), len(args)))]
    found = [name + path for name, x in zip(front, args) for path in key_paths(x)]
    return found + [k + path for k in sorted(kwargs) for path in key_paths(kwargs[k])]


def _described(p: Program, a: Value, positions: dict[Any, str]) -> tuple[str, str]:
    """Return (description of a value, source line that computes it)."""
    if a in positions:
        return f"the argument {positions[a]}", ""
    e = next((e for e in p.eqns if any(a is o for o in e.outputs)), None)
    if e is None:
        return ("a constant" if any(a is v for v, _ in p.consts) else "a value from outside"), ""
    if e.prim is move_:
        what, where = _described(p, e.inputs[0], positions)
        return f"{what}, in {e.params['memory']}", where
    if e.prim is name_:
        what = f"named {e.params['name']!r}"
    else:
        inner = _inside(p, e, a, positions) if e.prim.higher is not None else None
        if inner is not None:
            return inner
        what = f"result of {e.prim.name}"
    frames = user_frames(e.where, 1)
    return what, str(frames[0]) if frames else ""


def _inside(p: Program, e: Eqn, a: Any, positions: dict[Any, str]) -> tuple[str, str] | None:
    """Describe a result of an operation with programs by the value inside; None if there is
    none."""
    w = e.prim.higher.slots(e.params)
    slot = w.outputs[[o is a for o in e.outputs].index(True)]
    every = ", of every turn" if slot in w.mapped else ""
    for body, ins, outs in w.bodies:
        if slot not in outs:
            continue
        inner = body.outputs[list(outs).index(slot)]
        if inner.__class__ is not Var:
            continue
        at = dict(zip(body.inputs, ins))
        if inner in at:
            outer = at[inner]
            if outer in w.operands and not every:
                return _described(p, e.inputs[w.operands.index(outer)], positions)
            continue
        what, where = _described(body, inner, {})
        return what + every, where
    return None
