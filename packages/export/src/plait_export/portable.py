"""Portable StableHLO modules: made, inspected, and refined for known sizes.

An artifact's `main` takes the arguments and reads symbolic sizes off them.  An artifact for several
platforms takes an i32 first: the index, in the artifact's list of platforms, of the one that runs
it.  That argument carries an attribute (`PLATFORM`) that tells other StableHLO runtimes which value
to pass.  Format 1 called a function of our own instead.

Invariant: one MLIR context serves the process and is touched only while `jaxlib_api.lock` is held;
results are bytes and text, or operations put into a module that is being built.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from plait.ext import lower as jaxlib_api
from plait.ext.errors import PlaitError
from plait.ext.lower import (
    ASKED,
    I32,
    Emitter,
    IrValue,
    Unit,
    index_of,
    measured,
    mlir,
    read,
    type_of,
)
from plait.ext.ops.platforms import platform_index
from plait.ext.ops.random import DYNAMIC_GENERATOR
from plait.ext.rules import lower_rules
from plait.ext.sizes import Dim, Scope, read_constraint
from plait.ext.types import BOOL, Aval

from .container import stablehlo_version
from .errors import ArtifactError, NotExportable
from .library_calls import check_library_calls

ASSERTION = "shape_assertion"
"""The name that StableHLO compilers give to a size check; refining the module removes it."""

UNTIL_SIZES_ARE_KNOWN = frozenset({ASSERTION, DYNAMIC_GENERATOR})
"""Calls that every StableHLO compiler replaces when it refines a module for known sizes."""

PLATFORM = "_platform_index"
"""The value of the attribute `jax.global_constant` that marks the platform index."""

_POLYMORPHIC = "jax.uses_shape_polymorphism"
"""The attribute of modules with symbolic sizes."""

_OLDEST = 9
"""The minor version of StableHLO 1 that is written where it suffices.  Older readers accept it
(TensorFlow 2.18 does), and few operations need a longer form in it."""


# ---- making --------------------------------------------------------------------------------


@cache
def newest_version() -> tuple[int, ...]:
    """Return the newest StableHLO version that the installed jaxlib reads and writes."""
    return tuple(map(int, jaxlib_api.stablehlo_version("NONE").split(".")))


def artifact_of(code: bytes, symbolic: bool, divided: bool = False) -> bytes:
    """Return the portable artifact of a module.

    The version is the oldest StableHLO, from 1.9 on, that can express the module.  So a function
    serializes to the same bytes whichever release of jaxlib wrote them.

    Args:
      code: bytecode of a module.
      symbolic: whether some sizes are symbolic.
      divided: whether the module is sharded over a mesh; Shardy's operations are kept as they are.
    """
    return artifact_with(code, symbolic, divided)[0]


def artifact_with(
    code: bytes, symbolic: bool, divided: bool, entry: Callable[[Any], None] | None = None
) -> tuple[bytes, list[str]]:
    """Return (portable artifact of a module, names of the custom calls in it).

    `entry` may change the module first, so that the module is parsed only once.
    """
    major, minor, patch = newest_version()
    versions = [*(f"{major}.{n}.0" for n in range(_OLDEST, minor)), f"{major}.{minor}.{patch}"]
    with jaxlib_api.lock:
        module = mlir.parse(code)
        if entry is not None:
            entry(module)
        calls = custom_calls(module)
        if symbolic:
            module.operation.attributes[_POLYMORPHIC] = mlir.boolean(True)
        for version in versions:  # The first version suffices for nearly all modules.
            found = _written(module, version, divided)
            if found is not None:
                return found, calls
    raise NotExportable(
        f"the program has no portable form in StableHLO {versions[-1]}",
        fix="jit(f).lower(...).as_text() shows what it consists of",
    )


def _written(module: object, version: str, divided: bool) -> bytes | None:
    """Return the artifact, or None if the version cannot express it."""
    try:
        return jaxlib_api.portable_artifact(module, version, divided)
    except (ValueError, RuntimeError):
        return None


# ---- the way in ----------------------------------------------------------------------------


def give_entry(
    module: object,
    name: str,
    ins: Sequence[Aval],
    scope: Scope | None,
    platforms: Sequence[str],
    weights: int = 0,
) -> None:
    """Give a module a self-contained `main` that checks the sizes of its arguments.

    The caller must hold `jaxlib_api.lock`.  With several platforms, `main` takes the platform index
    first.  With symbolic sizes, it checks that the sizes of the arguments fit together.  The check
    is a `shape_assertion`, which StableHLO compilers support, so runs without Plait are checked,
    too.  The first `weights` of `ins` are weights, not arguments of the user.
    """
    # A module that was lowered for one platform does not query the platform.
    asking = _asked_by_argument(module, platforms) if len(platforms) > 1 else set()
    taken, returned = types_of(main_of(module))
    taken = taken[: len(ins)]
    asks = "main" in asking
    name = _renamed_main(module, name)
    unit = Unit(())
    unit.module = module
    front = [type_of(I32)] if len(platforms) > 1 else []
    block, f = mlir.function(module, "main", front + taken, returned, public=True)
    if front:
        _mark_platform(f)
    m, arguments, ip = mlir.bindings(), list(block.arguments), mlir.insertion_point(block)
    xs = arguments[len(front) :]
    if scope is not None:
        e = Emitter(unit, ip, {}, {}, {}, {}, m.unknown)
        e.dims = measured(e, ins, xs)
        _check_axes(e, ins[weights:], xs[weights:])
        _check_constraints(e, scope, ins[weights:])
    if asks:
        xs, taken = [*xs, arguments[0]], taken + front
    results = _called(m, ip, m.unknown, name, taken, returned, xs)
    m.create("func.return", [], results, None, None, 0, m.unknown, ip)


def _asked_by_argument(module: Any, platforms: Sequence[str]) -> set[str]:
    """Pass the platform index to all functions that query it, and return their names.

    The functions with a query, and their callers, take the index as a last argument.
    """
    m, functions = mlir.bindings(), {_name(f): f for f in module.body.operations}
    asks = {name: operations(f, _is_question) for name, f in functions.items()}
    calls = {name: operations(f, _is_call) for name, f in functions.items()}
    asking = {name for name, found in asks.items() if found}
    while more := {
        name
        for name, found in calls.items()
        if name not in asking and any(_callee(op) in asking for op in found)
    }:
        asking |= more
    for name in asking:
        f = functions[name]
        taken, returned = types_of(f)
        with m.context, m.unknown:
            kind = m.ir.FunctionType.get([*taken, type_of(I32)], returned)
            f.operation.attributes["function_type"] = m.ir.TypeAttr.get(kind)
        number = f.regions[0].blocks[0].add_argument(type_of(I32), m.unknown)
        if "arg_attrs" in f.operation.attributes:
            held = list(f.operation.attributes["arg_attrs"])
            held.append(m.ir.DictAttr.get({}, m.context))
            f.operation.attributes["arg_attrs"] = m.ir.ArrayAttr.get(held, m.context)
        for op in asks[name]:
            groups = _groups(op)
            e = Emitter(Unit(()), m.ir.InsertionPoint(op), {}, {}, {}, {}, m.unknown)
            replace(op, [_chosen(e, number, [_answer(groups, p) for p in platforms])])
        for op in calls[name]:
            if _callee(op) in asking:
                types = [r.type for r in op.results]
                callee = {"callee": mlir.symbol(_callee(op))}
                ip = m.ir.InsertionPoint(op)
                operands = [*op.operands, number]
                made = m.create("func.call", types, operands, callee, None, 0, op.location, ip)
                replace(op, list(made.results))
    return asking


def operations(f: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """Return the operations in a function that satisfy a predicate."""
    found: list[Any] = []
    walk_on = mlir.bindings().ir.WalkResult.ADVANCE

    def look(op: object) -> Any:
        if wanted(op):
            found.append(op)
        return walk_on

    f.operation.walk(look)
    return found


def _is_question(op: Any) -> bool:
    return op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value == ASKED


def _is_call(op: Any) -> bool:
    return op.name == "func.call"


def _callee(op: Any) -> str:
    return op.attributes["callee"].value


def replace(op: Any, values: list[Any]) -> None:
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _groups(question: Any) -> tuple[tuple[str, ...], ...]:
    """Return the platform groups of a query.  Raises ArtifactError if they cannot be read."""
    try:
        return read(question.attributes["backend_config"]["platforms"].value)
    except (KeyError, TypeError, AttributeError):
        raise ArtifactError("the artifact is damaged: its choice of a platform") from None


def _answer(groups: Sequence[Sequence[str]], platform: str) -> int:
    """Return the index of the group that contains a platform.

    A platform in no group gets 0.  Such a query stands in a branch for other platforms, which does
    not run on this one.
    """
    try:
        return index_of(groups, platform)
    except PlaitError:
        return 0


def _chosen(e: Emitter, number: IrValue, answers: Sequence[int]) -> Any:
    """Return `answers[number]`, for a traced number."""
    found = e.constant(answers[-1], I32)
    if len(set(answers)) == 1:
        return found
    if list(answers) == list(range(len(answers))):
        return number
    for i, answer in reversed(list(enumerate(answers[:-1]))):
        here = e.compare(number, e.constant(i, I32), "EQ", Aval((), BOOL))
        found = e.op("stablehlo.select", [here, e.constant(answer, I32), found], I32)
    return found


def _check_axes(e: Emitter, ins: Sequence[Aval], xs: Sequence[Any]) -> None:
    for k, (x, a) in enumerate(zip(xs, ins, strict=True)):
        for i, d in enumerate(a.shape):
            if d.__class__ is not Dim or _is_read_from(e.dims.get(str(d)), x, i):
                continue
            n = e.op("stablehlo.get_dimension_size", [x], I32, dimension=mlir.i64(i))
            what = f"axis {i} of argument {k} must have size {d}, which is {{1}}; found {{0}}"
            _assert(e, n, "EQ", e.size(d), what)


def _is_read_from(size: Any, x: Any, axis: int) -> bool:
    """Return whether a size was read from this axis, so that a check would be trivial."""
    if size is None:
        return False
    op = size.owner
    reads = op.name == "stablehlo.get_dimension_size" and op.operands[0] == x
    return reads and op.attributes["dimension"].value == axis


def _check_constraints(e: Emitter, scope: Scope, ins: Sequence[Aval]) -> None:
    relations = {"==": "EQ", ">=": "GE", "<=": "LE", ">": "GT", "<": "LT"}
    for fact in scope.facts_of(frozenset(e.dims)):
        where = _where(fact.constraint, ins)
        for left, relation, right in read_constraint(fact.constraint, e.arithmetic()):
            what = f"sizes must satisfy {fact.constraint}; found {{0}} and {{1}}{where}"
            _assert(e, left, relations[relation], right, what)


def _where(constraint: str, ins: Sequence[Aval]) -> str:
    """Describe the axes that have the sizes of a constraint."""
    found = {}
    for k, a in enumerate(ins):
        for i, d in enumerate(a.shape):
            for name in d.variables if d.__class__ is Dim else ():
                if re.search(rf"\b{name}\b", constraint):
                    found.setdefault(name, f"axis {i} of argument {k} is {d}")
    return ", where " + ", ".join(dict.fromkeys(found.values())) if found else ""


def _assert(e: Emitter, left: IrValue, relation: str, right: IrValue, what: str) -> None:
    holds = e.compare(left, right, relation, Aval((), BOOL))
    e.op(
        "stablehlo.custom_call", [holds, left, right], call_target_name=mlir.string(ASSERTION),
        api_version=mlir.attr("2 : i32"), has_side_effect=mlir.boolean(True),
        error_message=mlir.string(what),
    )  # fmt: skip


def without_composites(artifact: bytes) -> bytes:
    """Return the portable artifact with composite operations replaced by calls.

    Some shape refinement passes, such as TensorFlow's, descend into calls only.
    """
    with jaxlib_api.lock:
        module, m = parsed(artifact), mlir.bindings()
        found = operations(module, lambda op: op.name == "stablehlo.composite")
        if not found:
            return artifact
        for op in found:
            callee = {"callee": op.attributes["decomposition"]}
            types, ip = [r.type for r in op.results], m.ir.InsertionPoint(op)
            made = m.create("func.call", types, list(op.operands), callee, None, 0, op.location, ip)
            replace(op, list(made.results))
        code = mlir.bytecode(module)
    return artifact_of(code, False)


# ---- looking into --------------------------------------------------------------------------


def parsed(artifact: bytes) -> Any:
    """Parse the module of an artifact in our context.  The caller must hold `jaxlib_api.lock`.

    Raises ArtifactError if it cannot be read.
    """
    try:
        module = jaxlib_api.load_portable_artifact(artifact, mlir.bindings().context)
    except Exception as e:
        raise _unreadable(artifact, str(e).splitlines()[0] if str(e) else "") from None
    if module is None:
        raise _unreadable(artifact, "")
    return module


def _unreadable(artifact: bytes, why: str) -> ArtifactError:
    version = ".".join(map(str, stablehlo_version(artifact)))
    return ArtifactError(
        f"StableHLO {version} of {len(artifact)} bytes cannot be read: {why}".rstrip(": "),
        fix="save it again with Exported.serialize()",
    )


def custom_calls(module: object) -> list[str]:
    """Return the names of the custom calls of a module, sorted."""
    return targets(outside_calls(module))


def targets(calls: Sequence[Any]) -> list[str]:
    """Return the target names of custom calls, sorted."""
    return sorted({op.attributes["call_target_name"].value for op in calls})


def outside_calls(module: object) -> list[Any]:
    """Return the custom calls of a module."""
    return operations(module, lambda op: op.name == "stablehlo.custom_call")


def calls_in(module: Any) -> tuple[list[Any], bool]:
    """Return (custom calls of a module, whether a function calls itself).

    Calls through other functions count.  No valid program has such a cycle, and compilers do not
    terminate on one.
    """
    outside, calls = [], {}
    for f in module.body.operations:
        found = operations(f, lambda op: op.name == "stablehlo.custom_call" or _is_call(op))
        inside = {_callee(op) for op in found if _is_call(op)}
        outside += [op for op in found if not _is_call(op)]
        if f.operation.name == "func.func":
            calls[_name(f)] = inside
    return outside, _goes_round(calls)


def _goes_round(calls: dict[str, set[str]]) -> bool:
    """Return whether the call graph has a cycle."""
    while calls:
        done = {name for name, callees in calls.items() if not callees & calls.keys()}
        if not done:
            return True
        calls = {name: callees for name, callees in calls.items() if name not in done}
    return False


def has_regions(artifact: bytes) -> bool:
    """Return whether a module contains per-device regions (manual computations)."""
    return b"manual_computation" in artifact


def sizes_in_regions(artifact: bytes) -> bool:
    """Return whether a per-device region reads sizes, or calls a function that may."""
    with jaxlib_api.lock:
        module = parsed(artifact)
        regions = operations(module, lambda op: op.name == "sdy.manual_computation")
        asks = lambda op: op.name in ("stablehlo.get_dimension_size", "func.call")  # noqa: E731
        return any(operations(op, asks) for op in regions)


def main_of(module: Any) -> Any:
    """Return the function `main`.  Raises ArtifactError if there is none."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and _name(op) == "main":
            return op
    raise ArtifactError("the artifact is damaged: its module has no function main")


def _name(f: Any) -> str:
    return f.operation.attributes["sym_name"].value


def types_of(f: Any) -> tuple[list[Any], list[Any]]:
    """Return (argument types, result types) of a function."""
    kind = f.operation.attributes["function_type"].value
    return list(kind.inputs), list(kind.results)


def is_for(module: object, ins: Sequence[Aval], outs: Sequence[Aval], by_argument: bool) -> bool:
    """Return whether `main` takes and returns the physical types of `ins` and `outs`.

    With `by_argument`, `main` must take the platform index first.
    """
    taken, returned = types_of(main_of(module))
    said = lambda avals: [type_of(a.physical) for a in avals]  # noqa: E731
    front = [type_of(I32)] if by_argument else []
    return taken == front + said(ins) and returned == said(outs)


def text_of(artifact: bytes) -> str:
    """Return the module as text."""
    with jaxlib_api.lock:
        return parsed(artifact).operation.get_asm()


# ---- written anew --------------------------------------------------------------------------


def rewritten(artifact: bytes, divided: bool) -> tuple[bytes, list[str]]:
    """Return (the artifact in the form that is written here, names of the custom calls in it).

    Unless `divided`, the module runs on one device, and its sharding annotations are removed.
    """
    with jaxlib_api.lock:
        module = parsed(artifact)
        if not divided:
            _undivided(module)
        code = mlir.bytecode(module)
    written = artifact_of(code, False, divided)
    with jaxlib_api.lock:
        return written, custom_calls(parsed(written))


_OF_DIVISIONS = ("sdy.", "mhlo.sharding")


def _undivided(module: object) -> None:
    """Remove sharding constraints, the meshes that they name, and sharding attributes."""
    for op in operations(module, lambda op: op.name == "sdy.sharding_constraint"):
        replace(op, [op.operands[0]])
    for op in operations(module, lambda op: op.name == "sdy.mesh"):
        op.erase()
    for op in operations(module, lambda op: True):
        for name in [name for name in op.attributes if name.startswith(_OF_DIVISIONS)]:
            del op.attributes[name]
        _without_divisions(op)


def _without_divisions(f: Any) -> None:
    """Remove the shardings of the arguments and results of a function."""
    m, op = mlir.bindings(), f.operation
    for name in [name for name in ("arg_attrs", "res_attrs") if name in op.attributes]:
        kept = [
            {each.name: each.attr for each in held if not each.name.startswith(_OF_DIVISIONS)}
            for held in op.attributes[name]
        ]
        dictionaries = [m.ir.DictAttr.get(held, m.context) for held in kept]
        op.attributes[name] = m.ir.ArrayAttr.get(dictionaries, m.context)


# ---- for a platform that is known ----------------------------------------------------------


def answered(module: object, platforms: Sequence[str]) -> Any:
    """Replace platform queries by constants if there is only one platform, and return the module.

    Modules of format 1 contain such queries.
    """
    if len(platforms) != 1:
        return module
    m = mlir.bindings()
    for op in operations(module, _is_question):
        e = Emitter(Unit(()), m.ir.InsertionPoint(op), {}, {}, {}, {}, m.unknown)
        replace(op, [e.constant(_answer(_groups(op), platforms[0]), I32)])
    return module


# ---- for sizes that are known --------------------------------------------------------------


def code_for(
    artifact: bytes,
    ins: Sequence[Aval],
    symbolic: bool,
    platforms: Sequence[str] = (),
    by_argument: bool = False,
    number: int | None = None,
) -> bytes:
    """Return bytecode of the module for arguments of these types, whose sizes are numbers.

    Args:
      artifact: portable StableHLO.
      ins: types of the arguments.
      symbolic: whether the module has symbolic sizes.
      platforms: target platforms; with a single one, queries are resolved to its branch.
      by_argument: whether `main` takes the platform index first.
      number: the platform index, if it is known; the returned `main` does not take it then.

    Raises ArtifactError if the module leaves a size undetermined, refuses these sizes, or calls a
    library with operands that it does not accept.  Raises ShapeError if a value would have more
    bytes than can be counted.
    """
    known = symbolic or number is not None
    with jaxlib_api.lock:
        module = answered(parsed(artifact), platforms)
        if known:
            asked = [type_of(I32)] if by_argument and number is None else []
            _enter_with(module, asked + [type_of(a.physical) for a in ins], number)
        else:
            mlir.expect_countable(module)
        code = mlir.bytecode(module)
    if not known:
        return code
    # Refining also propagates constants into functions, so the compiler can drop the branches of
    # other platforms.
    try:
        refined = jaxlib_api.refine_shapes(code)
    except (jaxlib_api.RuntimeFailure, ValueError) as e:
        raise ArtifactError(
            f"the artifact cannot be made for {', '.join(map(repr, ins))}: {e}",
            fix="call it with sizes that satisfy its constraints; Exported.mlir_module() shows it",
        ) from None
    with jaxlib_api.lock:
        module = mlir.parse(refined)
        mlir.expect_countable(module)
        check_library_calls(outside_calls(module))
    return refined


def specialised(code: bytes, by_argument: bool, divided: bool = False) -> bytes:
    """Return the portable artifact of bytecode from `code_for`.

    Args:
      code: bytecode of a module in which all sizes are numbers.
      by_argument: whether `main` takes the platform index first.
      divided: whether the module is sharded over a mesh.
    """
    with jaxlib_api.lock:
        module = mlir.parse(code)
        if _POLYMORPHIC in module.operation.attributes:
            del module.operation.attributes[_POLYMORPHIC]
        if by_argument:
            _mark_platform(main_of(module))
        code = mlir.bytecode(module)
    return artifact_of(code, False, divided)


def with_arguments(
    artifact: bytes, ins: Sequence[Aval], kept: Sequence[int], by_argument: bool
) -> bytes:
    """Return the artifact with a `main` that takes all arguments, also those that it ignores.

    Args:
      artifact: portable StableHLO.
      ins: types of all arguments.
      kept: indices of the arguments that the module takes.
      by_argument: whether it takes the platform index first.

    Raises ArtifactError if the module takes other arguments.
    """
    with jaxlib_api.lock:
        module = parsed(artifact)
        m, front = mlir.bindings(), [type_of(I32)] if by_argument else []
        taken, returned = types_of(main_of(module))
        every = [type_of(a.physical) for a in ins]
        if any(k >= len(every) for k in kept) or taken != front + [every[k] for k in kept]:
            raise ArtifactError("the artifact is damaged: its module takes other arguments")
        name = _renamed_main(module, "of_some")
        block, f = mlir.function(module, "main", front + every, returned, public=True)
        if by_argument:
            _mark_platform(f)
        xs = list(block.arguments)
        given = [*xs[: len(front)], *[xs[len(front) + k] for k in kept]]
        ip = mlir.insertion_point(block)
        results = _called(m, ip, m.unknown, name, taken, returned, given)
        m.create("func.return", [], results, None, None, 0, m.unknown, ip)
        code = mlir.bytecode(module)
    return artifact_of(code, False)


def with_constants(
    artifact: bytes,
    values: Sequence[tuple[Any, Aval]],
    by_argument: bool,
    symbolic: bool,
    divided: bool = False,
) -> bytes:
    """Return the artifact with its first arguments replaced by constants.

    Args:
      artifact: portable StableHLO.
      values: a numpy array and its type for each of these arguments.
      by_argument: whether `main` takes the platform index before them.
      symbolic: whether some sizes are symbolic.
      divided: whether the module is sharded over a mesh.
    """
    with jaxlib_api.lock:
        module = parsed(artifact)
        m, front = mlir.bindings(), int(by_argument)
        taken, returned = types_of(main_of(module))
        name = _renamed_main(module, "of_weights")
        rest = taken[front + len(values) :]
        block, f = mlir.function(module, "main", taken[:front] + rest, returned, public=True)
        if by_argument:
            _mark_platform(f)
        ip, xs = mlir.insertion_point(block), list(block.arguments)
        e = Emitter(Unit(()), ip, {}, {}, {}, {}, m.unknown)
        given = [*xs[:front], *[e.constant(x, a) for x, a in values], *xs[front:]]
        results = _called(m, ip, m.unknown, name, taken, returned, given)
        m.create("func.return", [], results, None, None, 0, m.unknown, ip)
        code = mlir.bytecode(module)
    return artifact_of(code, symbolic, divided)


def _mark_platform(main: object) -> None:
    """Mark the first argument as the platform index, for other StableHLO runtimes."""
    taken, _ = types_of(main)
    kind = {"jax.global_constant": mlir.string(PLATFORM)}
    mlir.annotate(main, [kind, *[{} for _ in taken[1:]]])


def _enter_with(module: object, ins: list, number: int | None) -> None:
    """Give the module a `main` of known types that calls the former one.

    If a platform index is given, it is passed as a constant.
    """
    m = mlir.bindings()
    taken, returned = types_of(main_of(module))
    name = _renamed_main(module, "of_any_size")
    block, _ = mlir.function(module, "main", ins, returned, public=True)
    ip = mlir.insertion_point(block)
    xs = list(block.arguments)
    if number is not None:
        e = Emitter(Unit(()), ip, {}, {}, {}, {}, m.unknown)
        xs = [e.constant(number, I32), *xs]
    results = _called(m, ip, m.unknown, name, taken, returned, xs)
    m.create("func.return", [], results, None, None, 0, m.unknown, ip)


def _renamed_main(module: Any, name: str) -> str:
    """Make `main` private under a unique name similar to `name`, and return that name."""
    held = {_name(f) for f in module.body.operations}
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "f"
    while name in held:
        name += "_"
    main = main_of(module)
    main.operation.attributes["sym_name"] = mlir.string(name)
    main.operation.attributes["sym_visibility"] = mlir.string("private")
    return name


def _called(
    m: Any, ip: Any, where: Any, name: str, taken: list[Any], returned: list[Any], args
) -> list:
    """Call a function and return its results; operands are converted to its argument types.

    The types may differ in which sizes are static.
    """
    xs = [_as(m, ip, where, x, t) for x, t in zip(args, taken, strict=True)]
    callee = {"callee": mlir.symbol(name)}
    return list(m.create("func.call", returned, xs, callee, None, 0, where, ip).results)


def _as(m: Any, ip: Any, where: Any, x: Any, kind: Any) -> Any:
    """Return a value with its sizes static or dynamic as in another type."""
    if x.type == kind:
        return x
    return m.create("stablehlo.convert", [kind], [x], None, None, 0, where, ip).result


# ---- in another module ---------------------------------------------------------------------


def call_inside(
    e: Emitter,
    key: tuple[Any, ...],
    name: str,
    code: bytes,
    xs: Sequence[Any],
    outs: Sequence[Aval],
    platforms: Sequence[str] = (),
) -> list[Any]:
    """Call the `main` of a module within another module that is being built.

    Args:
      e: the emitter of the other module.
      key: identifies the module, so that repeated calls share one copy.
      name: a readable name for the function.
      code: bytecode of the module.
      xs: the operands.
      outs: types of the results.
      platforms: the platforms that `main` takes an index of first, if it does.

    Returns the results.
    """
    symbols, m = e.unit.symbols, mlir.bindings()
    if key not in symbols:
        symbols[key] = _joined(e, name, answered(mlir.parse(code), e.unit.platforms))
    held = symbols[key]
    inner = next(f for f in e.unit.module.body.operations if _name(f) == held)
    taken, returned = types_of(inner)
    if platforms:
        groups = tuple([(p,) for p in platforms])
        xs = [lower_rules[platform_index](e, [], [], [I32], platforms=groups), *xs]
    results = _called(m, e.ip, e.where, held, taken, returned, xs)
    return [_as(m, e.ip, e.where, y, type_of(o)) for y, o in zip(results, outs, strict=True)]


def _joined(e: Emitter, name: str, module: Any) -> str:
    """Move the functions of a module into the one being built; return the new name of `main`."""
    table, target = mlir.bindings().ir.SymbolTable, e.unit.module.body
    _share_meshes(e, table, module)
    functions = list(module.body.operations)
    main = _name(main_of(module))
    new = {}
    # Two renames, the first to names that no function has: a final name may still be the old name
    # of another function in this module.
    for i, f in enumerate(functions):
        old = _name(f)
        wanted = name if old == main else f"{name}_{old}"
        new[f"join.{i}"] = e.unit.unique(wanted), old == main
        _rename(table, module, f, old, f"join.{i}")
    for f, (between, (final, _)) in zip(functions, new.items()):
        _rename(table, module, f, between, final)
    # Functions refer to each other by name, so they move only after all are renamed.
    for f in functions:
        f.operation.attributes["sym_visibility"] = mlir.string("private")
        _without_divisions(f)
        f.operation.detach_from_parent()
        target.append(f)
    return next(final for final, is_main in new.values() if is_main)


def _share_meshes(e: Emitter, table: Any, module: Any) -> None:
    """Move the meshes of a module into the one being built, and merge equal ones."""
    here = {str(op.operation.attributes["mesh"]): op for op in _meshes(e.unit.module)}
    for op in _meshes(module):
        mesh, old = str(op.operation.attributes["mesh"]), _name(op)
        if mesh not in here:
            _rename(table, module, op, old, e.unit.unique("mesh"))
            op.operation.clone(mlir.bindings().ir.InsertionPoint.at_block_begin(
                e.unit.module.body))  # fmt: skip
        else:  # Through a temporary name, for the reason given in `_joined`.
            _rename(table, module, op, old, "join.mesh")
            table.replace_all_symbol_uses("join.mesh", _name(here[mesh]), module.operation)
        op.operation.erase()


def _meshes(module: Any) -> list[Any]:
    return [op for op in module.body.operations if op.operation.name == "sdy.mesh"]


def _rename(table: Any, module: Any, f: Any, old: str, new: str) -> None:
    table.replace_all_symbol_uses(old, new, module.operation)
    f.operation.attributes["sym_name"] = mlir.string(new)
