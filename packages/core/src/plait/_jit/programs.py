"""Programs of functions, for inspection.

Invariant: a requested program is traced anew, and not cached.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._base.errors import ArgumentError
from .._base.tracebacks import border
from .._base.wrapping import wraps
from .._core.interpreter import Interpreter, current, open_under, opened
from .._core.ir import Program
from .roles import role, without_static
from .shapes import shapes_only
from .tracing import Traced, trace

__all__ = ["make_jaxpr", "make_program"]


@border
def make_program(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Return a function of `fun`'s arguments that returns the Program of `fun` for their types.

    Args:
      fun: takes and returns trees of arrays.
      static_argnums: positions of arguments that are not arrays.
      axis_env: pairs of a name and a size: named axes that collectives in `fun` may use.
      return_shape: whether (program, tree of ShapeDtypeStructs of the results) is returned.

    Arrays that `fun` closes over are constants of the program (`.consts`).  So are values of
    transformations under way; the program is then valid until these end.

    Raises ArgumentError if `fun` is not a function, TypeRule for an argument that is not an array.

    >>> import plait
    >>> print(plait.make_program(lambda x: plait.lax.sin(x) * x)(1.0))
    lambda(%0: f32[]*) {
      %1: f32[]* = core.sin(%0)
      %2: f32[]* = core.mul(%1, %0)
      return %2
    }
    """
    if not callable(fun):
        raise ArgumentError(
            f"make_program needs a function, not {fun!r}",
            fix="write make_program(f)(x), without calling f",
        )
    static = role(fun, static_argnums, None, "static")

    @border
    @wraps(fun)
    def program_of(*args: object, **kwargs: object) -> Program | tuple[Program, Any]:
        call = without_static(args, kwargs, static)
        f = call.bind(fun, len(args)) if static else fun
        with opened(_Axes(dict(axis_env or ()), current())):
            traced = trace(f, shapes_only(call.args), shapes_only(call.kwargs), "make_program")
        program = _closed(traced)
        return (program, traced.shapes()) if return_shape else program

    return program_of


def _closed(traced: Traced) -> Program:
    """Return the program with the captured values among its constants.

    They belong to transformations under way, and the program is valid as long as these are.  They
    cannot be inputs of the program, since the caller has no values to pass for them.
    """
    p, n = traced.program, len(traced.captured)
    if not n:
        return p
    consts = [*zip(p.inputs, traced.captured), *p.consts]
    return Program(p.inputs[n:], p.eqns, p.outputs, p.name, consts)


class _Axes(Interpreter):
    """An interpreter that gives named axes their sizes, and delegates the rest to its parent."""

    does = "make_program"

    def __init__(self, sizes: dict[Any, int], parent: Interpreter):
        open_under(self, parent)
        self.sizes = sizes  # type: ignore[misc]

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        assert self.parent is not None
        return self.parent.apply(prim, args, params)


make_jaxpr = make_program
