"""Export: a function is traced, lowered, and turned into portable StableHLO.

Invariant: an exported function has no side effects.  Programs are refused, with a list of the
places, if they act on the world or call Python.  So are programs for several devices without a
mesh, and those that call functions without a stability promise.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import plait
from plait import jit
from plait.ext.devices import Placed, platform
from plait.ext.errors import ArgumentError, border, parameter_names, user_line
from plait.ext.ir import Eqn, Program, effects_of, evaluate, live_equations, programs_in
from plait.ext.lower import known_platforms, module_of
from plait.ext.ops.callbacks import host
from plait.ext.ops.checks import check_p
from plait.ext.rules import cpu_form_rules, expand_rules, lower_rules
from plait.ext.trace import Handle, Value, as_list, staged
from plait.ext.tree import flatten
from plait.ext.types import ShapeDtypeStruct, float0
from plait.ext.values import is_tracer

from .artifact import STABLE_CALLS, Exported, pullback_name, pullback_types
from .calling import call_exported
from .checks import DisabledSafetyCheck, calls_allowed
from .division import Division, division_of, is_several
from .elementary import where_libraries_lack, without_libraries
from .errors import NotExportable
from .naming import names
from .parameters import flag_of, names_of
from .portable import UNTIL_SIZES_ARE_KNOWN, artifact_with, give_entry
from .reader import functions_of, names_in
from .signature import scope_of
from .weights import MEBIBYTE, Weighing


def default_export_platform() -> str:
    """Return the platform that functions are exported for by default: that of this process."""
    return platform()


@border
def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Iterable[DisabledSafetyCheck] = (),
    custom_calls: Iterable[str] = (),
    libraries: bool = True,
    weights: str | int = "inside",
    cpu_forms: bool = False,
) -> Callable[..., Exported]:
    """Return a function that exports `fun_jit` for the types of its arguments.

    Args:
      fun_jit: a function, jitted or not, with any transformations in it.
      platforms: one or several target platforms: "cpu", "cuda", "rocm", "tpu".  They need not be
        available here.  By default the platform of this process.
      disabled_checks: checks to skip, as in jax.export: `DisabledSafetyCheck.custom_call(name)`.
      custom_calls: functions outside StableHLO that it may call, besides those that every reader
        supports.
      libraries: whether linear algebra calls the libraries of the platforms, LAPACK and others.  If
        not, it is lowered to elementary operations, in loops over rows and columns, for other
        readers of StableHLO.  This is slower, and as exact.
      weights: where to store large arrays that the function closes over: "inside" the module, or
        "separate" if they have 2**20 bytes or more.  A number sets that limit.  Separate weights
        are in a safetensors file inside the artifact, which `load` maps into memory without a copy.
        They have names (`Exported.weights`) and can be replaced (`Exported.with_weights`).  Earlier
        readers refuse such artifacts.
      cpu_forms: whether operations take the forms that `jit` gives them on CPUs: attention by
        tiles, convolutions as products.  Their sizes depend on `plait.config.cpu_limits`.  Values
        that are divided over devices have none.

    Returns a function of arrays and ShapeDtypeStructs, whose sizes may be symbolic
    (`symbolic_args_specs`), that returns an `Exported`.

    Raises NotExportable for a function without a portable form, ArgumentError for forms of CPUs on
    other platforms, and what tracing raises.

    >>> import numpy as np, plait
    >>> types = plait.export.symbolic_args_specs(np.ones((4, 3), np.float32), "b, 3")
    >>> exported = plait.export.export(lambda x: x.sum(1) * 2)(types)
    >>> exported
    <Exported lambda(f32[b,3]) -> (f32[b]) for cpu>
    >>> exported.call(np.ones((2, 3), np.float32))
    Array([6., 6.], dtype=float32)
    """
    if not callable(fun_jit):
        raise ArgumentError(
            f"export needs a function, not {fun_jit!r}", fix="write export(f)(*args)"
        )
    least = _least(weights)
    wanted = None if platforms is None else known_platforms(platforms)
    libraries = flag_of(libraries, "libraries")
    in_forms = flag_of(cpu_forms, "cpu_forms")
    allowed = {*(STABLE_CALLS if libraries else UNTIL_SIZES_ARE_KNOWN),
               *names_of(custom_calls, "custom_calls"),
               *calls_allowed(disabled_checks)}  # fmt: skip
    traceable = fun_jit if hasattr(fun_jit, "clear_cache") else jit(fun_jit)

    @border
    def exported(*args: object, **kwargs: object) -> Exported:
        # Scopes are checked before tracing, whose errors would show two sizes that look alike.
        scope_of([x for x in flatten((args, kwargs))[0] if hasattr(x, "shape")])
        staged = traceable.trace(*args, **kwargs)  # type: ignore[attr-defined]
        _check_closed(staged)
        weighing = None if least is None else Weighing(least, fun_jit)
        here = wanted or (default_export_platform(),)
        if in_forms and here != ("cpu",):
            raise ArgumentError(
                f"cpu_forms=True, and the export is for {', '.join(here)}",
                fix='write platforms=["cpu"], and export for others without cpu_forms',
            )
        how = _How(here, allowed, libraries, in_forms, weighing)
        made = _made(staged, how, staged.keys())
        made.parameters = parameter_names(fun_jit)
        return made

    return exported


def _least(weights: int | str) -> int | None:
    """Return the number of bytes from which on a constant is a weight; None if none is."""
    if isinstance(weights, str) and weights in ("inside", "separate"):
        return MEBIBYTE if weights == "separate" else None
    if not isinstance(weights, int) or isinstance(weights, bool) or weights < 1:
        raise ArgumentError(
            f'weights is {weights!r}, and is "inside", "separate" or a number of bytes',
            fix='write weights="separate": constants of 2**20 bytes or more are then beside the '
            "module",
        )
    return weights


class _How(NamedTuple):
    """Options of one export: target platforms, permitted custom calls, whether library calls stay,
    whether operations have the forms for CPUs, and the choice of weights."""

    platforms: tuple[str, ...]
    allowed: set[str]
    libraries: bool
    cpu_forms: bool = False
    weighing: Weighing | None = None


def _made(staged: Any, how: _How, keys: Sequence[Any], linear_from: int | None = None) -> Exported:
    """Export a traced function.

    Args:
      staged: the program, and the structures of its arguments and results.
      how: the options of the export.
      keys: dispatch keys of its arguments.
      linear_from: as for `Exported`.
    """
    platforms, allowed, libraries, cpu_forms, weighing = how
    program = staged.program
    name = _called(program)
    _check_closed(staged)
    _check_pure(program, name)
    scope = scope_of(program.in_avals)
    instead = _without_checks(where_libraries_lack if libraries else without_libraries)
    instead = _in_forms(instead) if cpu_forms else instead
    embed = True if weighing is None else weighing.is_inside
    placed = [k for k in keys if k.placement is not None and is_several(k.placement.place)]
    module = module_of(
        program, keys=keys if placed else (), platforms=platforms, embed=embed, instead=instead,
        named=names(),
    )  # fmt: skip
    held = [] if weighing is None else [weighing.weight(x) for x in module.constants]
    # A mesh, also one of a single device, is written into the module; a device is not.
    division = division_of(module, keys, name)
    several, entry = len(platforms) > 1, None
    if scope is not None or several:
        ins = [*[w.aval for w in held], *program.in_avals]
        entry = partial(give_entry, name=name, ins=ins, scope=scope, platforms=platforms,
                        weights=len(held))  # fmt: skip
    artifact, calls = artifact_with(module.code, scope is not None, division is not None, entry)
    unknown = [c for c in calls if c not in allowed]
    if unknown and not libraries:
        raise NotExportable(
            f"{name} calls functions outside StableHLO: {', '.join(unknown)}",
            fix="they have no form without libraries: leave them out, or export with "
            "libraries=True",
        )
    if unknown:
        raise NotExportable(
            f"{name} calls functions outside StableHLO, of which nothing is promised: "
            f"{', '.join(unknown)}",
            fix=f"if its readers have them too: plait.export.export(f, custom_calls={unknown})",
        )
    return Exported(
        name, program.in_avals, staged.in_tree, program.out_avals, staged.out_tree, platforms,
        scope, artifact, calls, several, lambda: _pullback(program, name, how, division, keys),
        linear_from, _rules_lost(program), held, division,
    )  # fmt: skip


def _called(program: Program) -> str:
    return "lambda" if program.name == "<lambda>" else program.name


def _pullback(
    program: Program, name: str, how: _How, division: Division | None, keys: Sequence[Any]
) -> Exported:
    """Export the derivative of a program.

    It maps (arguments, cotangents of results) to cotangents of arguments, flat, with float0 for
    arguments without one.  A cotangent has the sharding of its argument or result.
    """
    count = len(program.inputs)
    there = [k.placement for k in keys]
    back = [None] * len(program.outputs)
    if division is not None:
        placed = [p.place.devices for p in there if p is not None]
        ids = placed[0] if placed else tuple(range(division.devices))
        back = [division.sharding(lies, ids) for lies in division.outs]

    def pullback(*values: Any) -> tuple:
        of = lambda *xs: evaluate(program, xs)  # noqa: E731
        found = plait.vjp(of, *values[:count])[1]([*values[count:]])
        return tuple([_lying(ct, p) for ct, p in zip(found, there, strict=True)])

    pullback.__name__ = pullback_name(name)
    types = pullback_types(program.in_avals, program.out_avals)[0]
    staged = jit(pullback).trace(  # type: ignore[attr-defined]
        *[ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in types]
    )
    places = [*there, *back]
    given = [a if p is None else Placed(a, p) for a, p in zip(types, places, strict=True)]
    return _made(staged, how, given, linear_from=count)


def _lying(ct: Value, placement: Any) -> Any:
    """Return a cotangent with the sharding of its argument, if that is on a mesh."""
    if placement is None or not hasattr(placement.place, "mesh") or ct.dtype == float0:
        return ct
    return placement.constrain(ct)


_KEPT = ("core.call", "core.cond", "core.scan", "core.while", "core.map_axes", "core.composite",
         "autodiff.checkpoint", "sharding.shard_map")  # fmt: skip
"""Operations with sub-programs that a module can express."""


def _rules_lost(program: Program) -> list[str] | None:
    """Return the custom rules that the module loses, as `custom_jvp of f`; None if unknown."""
    found: dict[str, None] = {}
    for e in _equations(program):
        if e.prim is call_exported:
            inner = e.params["artifact"]
            if inner.custom_rules is None:
                return None
            found.update(dict.fromkeys(inner.custom_rules))
            # Such a module is refined when it is lowered, which loses the names of operations.
            if inner.symbolic or inner.by_argument:
                held = functions_of(inner.mlir_module_serialized, inner.platforms).values()
                found.update(dict.fromkeys(sorted(names_in(held))))
        elif e.prim.higher is not None and e.prim.name not in _KEPT:
            kind = e.prim.name.rpartition(".")[2].removesuffix("_call")
            of = next((p.name for p in programs_in(e.params)), "a function")
            found[f"{kind} of {of}"] = None
    return list(found)


def _check_closed(staged: Any) -> None:
    """Refuse a function that captures traced values, or that captures or takes handles."""
    taken = [
        *staged.captured,
        *(v for v in staged.program.inputs if v.aval.dtype in Handle.of_dtype),
    ]
    for c in taken:
        if c.aval.dtype in Handle.of_dtype:
            how = "closes over" if isinstance(c, Handle) else "is given"
            raise NotExportable(
                f"{_called(staged.program)} {how} {c!r}, made at {user_line(c.where)}, which is no "
                "array: what an artifact computes follows from arrays alone",
                fix="give it the array that it holds, and return what is to be written",
            )
    held = [c for c in staged.captured if is_tracer(c)]
    if held:
        raise NotExportable(
            f"{_called(staged.program)} closes over {', '.join(map(repr, held))}, which is being "
            "traced",
            fix="pass it as an argument, or export outside of the transformation",
        )


def _without_checks(instead: Callable) -> Callable:
    """Return `instead`, extended to replace each check by a function that does nothing."""

    def given(e: Eqn, platforms: tuple[str, ...]) -> Callable | None:
        return _nothing if e.prim is check_p else instead(e, platforms)

    return given


def _in_forms(instead: Callable) -> Callable:
    """Return `instead`, extended to replace operations by their forms for CPUs."""

    def given(e: Eqn, platforms: tuple[str, ...]) -> Callable | None:
        found, rule = instead(e, platforms), cpu_form_rules.find(e.prim)
        avals = [a.aval for a in e.inputs]
        if found is not None or rule is None or any(a.division is not None for a in avals):
            return found
        form = rule(avals, **e.params)
        return None if form is None else lambda *xs, **_: form(*xs)

    return given


def _nothing(*_: object, **params: object) -> list:
    return []


def _check_pure(program: Program, name: str) -> None:
    """Refuse a program that acts on the world or calls Python, with a list of these places."""
    found = []
    for e in _equations(program):
        if e.prim is host:
            found.append(f"a call of Python at {user_line(e.where)}")
        elif e.prim is check_p and e.params["optional"]:
            continue
        elif e.prim.effect is not None and effects_of(e.prim, e.params) and not _is_mark(e):
            found.append(f"{e.prim.name} at {user_line(e.where)}")
    if found:
        listed = "\n  ".join(dict.fromkeys(found))
        raise NotExportable(
            f"{name} calls Python or acts on the world, which an artifact cannot:\n  {listed}",
            fix="leave out debug.print and callbacks, or do that around the exported function",
        )


def _is_mark(e: Eqn) -> bool:
    """Return whether an operation has an effect for interpreters alone: it is lowered by an
    expansion that has none."""
    rule = expand_rules.find(e.prim)
    if rule is None or lower_rules.find(e.prim) is not None:
        return False
    expansion = lambda *xs: as_list(rule(*xs, **e.params))  # noqa: E731
    return not staged(expansion, tuple([a.aval for a in e.inputs]), e.prim.name).effects


def _equations(program: Program) -> Iterator[Eqn]:
    """Yield the live equations, also those of sub-programs."""
    for e in live_equations(program.eqns, program.outputs):
        yield e
        for inner in programs_in(e.params):
            yield from _equations(inner)
