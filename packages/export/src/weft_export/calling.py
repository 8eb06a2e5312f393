"""Calling what was exported: at once, and inside functions that are being traced.

Invariant: a call on arrays is compiled once per types of arguments, and is a look-up after that;
the executables live as long as the artifact.  A call in a traced function is one operation of it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.buffers import handler, move, platform
from weft.dims import is_symbolic
from weft.door import lock
from weft.primitive import Primitive
from weft.types import Aval
from weft.values import Array, solid, wrap
from weft.xla.execute import eager_rules, load
from weft.xla.lower import Module, Unit, lower_rules

from .errors import NotExportable
from .portable import call_inside, code_for
from .signature import check_types, solved, with_sizes

if TYPE_CHECKING:
    from .artifact import Exported


def _call(*xs: Aval, artifact: "Exported") -> list[Aval]:
    """Apply what was exported."""
    return result_types(artifact, xs)


def result_types(artifact: "Exported", given: Sequence[Aval]) -> list[Aval]:
    """Types of the results for arguments of these types.

    Raises TypeRule, DimMismatch or UndecidedDim if it can not be called with them.
    """
    path = artifact.path
    check_types(artifact.in_avals, given, path, artifact.fun_name)
    sizes = solved(artifact.in_avals, given, path, artifact.fun_name)
    return [with_sizes(a, sizes) for a in artifact.out_avals]


call_exported = Primitive("export.call", _call, many=True, effect=lambda params: None)
"""Not remembered by types, as what has an effect is not: an artifact may be large, and goes when
nobody holds it."""


@eager_rules.rule(call_exported)
def _(args: Sequence[Any], params: dict[str, Any]) -> list[Array]:
    return run(params["artifact"], [solid(x) for x in args])


def run(artifact: "Exported", args: Sequence[Array]) -> list[Array]:
    """The results for arrays."""
    bufs = [x.buffer() for x in args]
    for i, x in enumerate(args):
        if x.key.placement is not None:  # it is for one device, the default one
            bufs[i] = move(bufs[i], x.aval)
    ins = tuple([x.aval for x in args])
    compiled = artifact.compiled.get(ins)
    if compiled is None:
        compiled = artifact.compiled[ins] = _compile(artifact, ins)
    execute, handlers, outs = compiled
    results = execute(bufs).consume_with_handlers(handlers)
    return [wrap(b, a) for b, a in zip(results, outs, strict=True)]


def _compile(artifact: "Exported", ins: tuple[Aval, ...]) -> tuple:
    """(run, handlers, types of results) for arguments of these types."""
    outs = result_types(artifact, ins)
    here = platform()
    _check_platforms(artifact, (here,))
    code = code_for(artifact.mlir_module_serialized, ins, artifact.symbolic)
    with lock:
        module = Module(code, Unit((here,), embed=True), [None] * len(outs))
    execute = load(module).executable.execute_sharded
    return execute, [handler(a) for a in outs], outs


def _check_platforms(artifact: "Exported", wanted: Sequence[str]) -> None:
    missing = [p for p in wanted if p not in artifact.platforms]
    if missing:
        every = (*artifact.platforms, *missing)
        raise NotExportable(
            f"{artifact.fun_name} was exported for {', '.join(artifact.platforms)}, and is called "
            f"on {', '.join(missing)}",
            fix=f"export it for all: wf.export.export(f, platforms={list(every)})",
        )


@lower_rules.rule(call_exported)
def _(e, xs, ins, outs, artifact):
    _check_platforms(artifact, e.unit.platforms)
    open_sizes = any(is_symbolic(a.shape) for a in ins)
    types = None if open_sizes else tuple(ins)
    code = artifact.bytecode() if open_sizes or not artifact.symbolic else code_for(
        artifact.mlir_module_serialized, ins, True
    )
    key = "exported", artifact, types if artifact.symbolic else None
    return call_inside(e, key, artifact.fun_name, code, xs, outs)
