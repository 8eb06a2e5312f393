"""Calls of exported functions: on arrays, and inside functions that are being traced.

Invariant: a call on arrays is compiled once for each list of argument types, and looked up after
that; executables live as long as the artifact.  A call in a traced function is one operation.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import plait
from plait.ext.devices import Placed, expect_runtime, handler, move, platform
from plait.ext.errors import PlaitError, border, names_in_call
from plait.ext.ir import Primitive, Program, evaluate
from plait.ext.lower import (
    Emitter,
    IrValue,
    Module,
    RuntimeFailure,
    Unit,
    executable_again,
    load,
    lock,
    mlir,
    module_of,
    serialized,
)
from plait.ext.rules import eager_rules, lower_rules, physical_rules
from plait.ext.sizes import is_symbolic
from plait.ext.trace import staged
from plait.ext.types import Aval
from plait.ext.values import Array, solid, wrap

from .division import Division, constrained, enter
from .errors import ArtifactError, NotExportable, NotReadable, expecting
from .portable import call_inside, code_for, has_regions, parsed, sizes_in_regions
from .reader import Reading
from .signature import check_types, solved, with_sizes
from .weights import Weight

if TYPE_CHECKING:
    from .artifact import Exported


class MachineCode(NamedTuple):
    """Compiled code for several devices, and the functions outside StableHLO that it calls."""

    data: bytes
    calls: Sequence[str]


class FlatFunction:
    """A portable function of a list of arrays.

    Attributes:
      fun_name: its name.
      in_avals, out_avals: types of arguments and results; sizes may be symbolic.
      platforms: platforms that it was lowered for.
      mlir_module_serialized: the portable StableHLO artifact.  If it was read from bytes, the
        first access parses and verifies it, and raises ArtifactError if it does not match its
        manifest.
      by_argument: whether the module takes the number of the platform it runs on.
      held: the weights, which the module takes before the arguments.
      division: how it is divided over several devices; None if it is not.
      symbolic: whether some sizes are symbolic.
      paths: the paths of the arguments, by which commands and files name them.
      parameters: the names of the function's positional parameters, for messages; () if unknown.
      compiled: types of arguments -> (run, handlers, types of results).  For several devices:
        (types, devices) -> (run, handlers, keys of results, keys of arguments, weights there).
      made: types of arguments -> machine code for them, on any devices of the right number.
    """

    __slots__ = (
        "fun_name", "in_avals", "out_avals", "platforms", "symbolic", "by_argument", "paths",
        "parameters", "held", "division", "compiled", "made", "_portable", "_code", "_laid_out",
        "_reading", "_read", "_divided", "__weakref__",
    )  # fmt: skip
    fun_name: str
    in_avals: tuple[Aval, ...]
    out_avals: tuple[Aval, ...]
    platforms: tuple[str, ...]
    symbolic: bool
    by_argument: bool
    paths: Sequence[str]
    parameters: tuple[str, ...]
    held: tuple[Weight, ...]
    division: Division | None

    def __init__(
        self,
        fun_name: str,
        in_avals: Iterable[Aval],
        out_avals: Iterable[Aval],
        platforms: Iterable[str],
        mlir_module_serialized: bytes,
        paths: Sequence[str],
        by_argument: bool,
        held: Iterable[Weight] = (),
        division: Division | None = None,
        parameters: Iterable[str] = (),
    ):
        self.fun_name, self.platforms = fun_name, tuple(platforms)
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)
        self._portable: bytes | Callable[[FlatFunction], bytes] = mlir_module_serialized
        self.paths, self.parameters = paths, tuple(parameters)
        self.by_argument, self.held, self.division = by_argument, tuple(held), division
        self.symbolic = any(is_symbolic(a.shape) for a in self.in_avals)
        self.compiled: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.made: dict[tuple[Aval, ...], MachineCode] = {}
        self._code: bytes | None = None
        self._laid_out: FlatFunction | None = None
        self._reading: Reading | None = None
        self._read: dict[Any, Program] = {}
        self._divided: Any = None

    @property
    @border
    def mlir_module_serialized(self) -> bytes:
        """The portable StableHLO artifact."""
        if not isinstance(self._portable, bytes):
            self._portable = self._portable(self)
        return self._portable

    def weighted(self, ins: Iterable[Aval]) -> list[Aval]:
        """Return the types that the module takes: those of the weights, then `ins`."""
        return [*[w.aval for w in self.held], *ins]

    def bind(self, xs: Sequence[Any]) -> list[Any]:
        """Bind the call as one operation whose operands are the weights and then `xs`."""
        return call_exported.bind(*[w.array() for w in self.held], *xs, artifact=self)

    def read_for(self, given: Sequence[Aval], platform: str | None = None) -> Program:
        """Read the module back for arguments of these types.

        Args:
          given: types of arguments; symbolic sizes stay symbolic.
          platform: the platform to read it for; None for all of them.

        Raises NotReadable if it cannot be read, and the errors of `result_types`.
        """
        program = self._of_weights(given, platform)
        if not self.held:
            return program
        key = *given, platform
        if key not in self._read:
            arrays = [w.array() for w in self.held]
            of_arguments = lambda *xs: evaluate(program, [*arrays, *xs])  # noqa: E731
            self._read[key] = staged(of_arguments, list(given), self.fun_name)
        return self._read[key]

    def _of_weights(self, given: Sequence[Aval], platform: str | None) -> Program:
        """Read the module back as a Program that takes the weights before the arguments."""
        if self._reading is None:
            with expecting(f"{self.fun_name} cannot be read back"):
                self._reading = Reading(
                    self.fun_name, self.mlir_module_serialized, self.platforms, self.by_argument
                )
        return self._reading.program(self.weighted(given), self.result_types(given), platform)

    def bytecode(self) -> bytes:
        """Return the module as bytecode of this release of jaxlib."""
        if self._code is None:
            with lock:
                self._code = mlir.bytecode(parsed(self.mlir_module_serialized))
        return self._code

    def result_types(self, given: Sequence[Aval]) -> list[Aval]:
        """Return the types of the results for arguments of these types.

        Raises TypeRule, DimMismatch or UndecidedDim if it cannot be called with them.
        """
        check_types(self.in_avals, given, self.argument, self.fun_name)
        sizes = solved(self.in_avals, given, self.argument, self.fun_name)
        return [with_sizes(a, sizes) for a in self.out_avals]

    def argument(self, i: int) -> str:
        """Return the name of argument `i` for messages, as the function's signature has it."""
        path = self.paths[i]
        if not path.startswith(("args[", "[")):
            return path
        whole = f"[0]{path[4:]}" if path.startswith("args") else f"[1]{path}"
        return names_in_call(self.parameters)(whole)

    def laid_out(self) -> "FlatFunction":
        """Return the same function on the physical types of opaque arguments and results."""
        if self._laid_out is None:
            ins, outs = ([a.physical for a in avals] for avals in (self.in_avals, self.out_avals))
            code, paths = self.mlir_module_serialized, self.paths
            self._laid_out = FlatFunction(
                self.fun_name, ins, outs, self.platforms, code, paths, self.by_argument, self.held,
                self.division, self.parameters,
            )  # fmt: skip
        return self._laid_out

    def check_platforms(self, wanted: Sequence[str]) -> None:
        """Raise NotExportable if it was not lowered for all these platforms."""
        missing = [p for p in wanted if p not in self.platforms]
        if missing:
            every = [*self.platforms, *missing]
            raise NotExportable(
                f"{self.fun_name} was exported for {', '.join(self.platforms)}, and is called on "
                f"{', '.join(missing)}",
                fix=f"export it for all: plait.export.export(f, platforms={every})",
            )

    def code_for(self, ins: Sequence[Aval], platforms: Sequence[str]) -> bytes:
        """Return the module for arguments of these types; code for several platforms still selects
        among them when it runs."""
        by_argument, artifact = self.by_argument, self.mlir_module_serialized
        one = by_argument and len(platforms) == 1
        number = self.platforms.index(platforms[0]) if one else None
        if self.symbolic and self.division is not None and has_regions(artifact):
            program = self._of_regions(ins, platforms)
            if program is not None:
                return module_of(program, platforms=tuple(platforms), embed=True).code
        return code_for(artifact, self.weighted(ins), self.symbolic, platforms, by_argument, number)

    def _of_regions(self, ins: Sequence[Aval], platforms: Sequence[str]) -> Program | None:
        """Read the module back for arguments of these types, whose sizes are numbers.

        jaxlib does not propagate sizes into the regions that hold the program of each device, and
        computations with sizes there may crash the process.  The program read back holds numbers.

        Returns None if the module cannot be read and no region uses sizes.  Raises ArtifactError if
        it cannot be read although one does.
        """
        one = not self.by_argument or len(platforms) == 1
        try:
            if one:
                return self._of_weights(ins, platforms[0] if self.by_argument else None)
            why = "it is for several platforms"
        except NotReadable as e:
            why = e.what
        if not sizes_in_regions(self.mlir_module_serialized):
            return None
        raise ArtifactError(
            f"{self.fun_name} cannot be made for {', '.join(map(repr, ins))}: what each device "
            f"does computes with sizes, and is not read back: {why}",
            fix="export it for sizes that are numbers, or for one platform",
        )

    def run(self, args: Sequence[Array]) -> list[Array]:
        """Return the results for arrays."""
        expect_runtime()
        if self.division is not None:
            return self._run_divided(args, self.division)
        bufs = [x.buffer() for x in args]
        for i, x in enumerate(args):
            if x.key.placement is not None:  # the executable is for the default device only
                bufs[i] = move(bufs[i], x.aval)
        if self.held:
            bufs = [*[w.array().buffer() for w in self.held], *bufs]
        ins = tuple([x.aval for x in args])
        found = self.compiled.get(ins)
        if found is None:
            found = self.compiled[ins] = self._compile(ins)
        execute, handlers, outs = found
        try:
            results = execute(bufs).consume_with_handlers(handlers)
        except RuntimeFailure as e:
            raise self._failed(e) from None
        return [wrap(b, a) for b, a in zip(results, outs, strict=True)]

    def _run_divided(self, args: Sequence[Array], division: Division) -> list[Array]:
        """Return the results for arrays, on their devices, or the first ones if none is placed."""
        ids = division.devices_of(args, self.fun_name)
        self.check_platforms((platform(),))
        there = [division.sharding(lies, ids) for lies in division.ins]
        given = [x if s is None else plait.device_put(x, s) for x, s in zip(args, there)]
        data = self.made.get(tuple([x.aval for x in given]))
        if data is not None:
            return self._executed(given, ids, data)
        if not any(x.key.placement is not None for x in given):
            whole = division.whole(ids)
            given = [plait.device_put(x, whole) for x in given]
        if self._divided is None:
            # self holds this function, so it holds self weakly; the traced operation keeps the
            # executables.
            self._divided = plait.jit(lambda *xs, of=ref(self): _alive(of).bind(xs))
        return list(self._divided(*given))

    # -- machine code for several devices --------------------------------------------------

    def _executed(self, args: Sequence[Array], ids: tuple[int, ...], code: MachineCode) -> list:
        """Return the results of compiled code, after moving arguments to where it takes them."""
        ins = tuple([x.aval for x in args])
        key = ins, ids
        if key not in self.compiled:
            self.compiled[key] = self._loaded_for(ins, ids, code)
        execute, handlers, outs, wanted, front = self.compiled[key]
        args = [x if x.key == k else plait.device_put(x, k.placement)
                for x, k in zip(args, wanted, strict=True)]  # fmt: skip
        try:
            results = execute([*front, *[x.buffer() for x in args]])
            return [wrap(b, a) for b, a in zip(results.consume_with_handlers(handlers), outs)]
        except RuntimeFailure as e:
            raise self._failed(e) from None

    def load_made(self, ins: tuple[Aval, ...], code: MachineCode) -> None:
        """Keep machine code for arguments of these types, and load it for the first devices.

        Raises RuntimeFailure if the runtime refuses the code.
        """
        assert self.division is not None, "of one device there are executables alone"
        self.made[ins] = code
        ids = tuple(range(self.division.devices))
        self.compiled[ins, ids] = self._loaded_for(ins, ids, code)

    def _loaded_for(self, ins: Sequence[Aval], ids: Sequence[int], code: MachineCode) -> tuple:
        """Load compiled code on these devices; return (run, handlers, keys of results, keys of
        arguments, weights)."""
        division = self.division
        assert division is not None
        unit = Unit((platform(),))
        for mesh in range(len(division.meshes)):
            unit.run_at(division.whole(ids, mesh).place)
        keys = self._keys(ins, ids)
        results = [division.sharding(lies, ids) for lies in division.outs]
        module, program = Module(b"", unit, results, keys), self._whole_call(ins)
        made, wanted = executable_again(code.data, program, module, keys, code.calls)
        front = len(self.held)
        weights = [plait.device_put(w.array(), k.placement)
                   for w, k in zip(self.held, wanted[:front])]  # fmt: skip
        return (*made, wanted[front:], [x.buffer() for x in weights])

    def _keys(self, ins: Sequence[Aval], ids: Sequence[int]) -> list:
        """Return the dispatch keys of the weights and arguments on these devices.

        The compiler chooses the placement of weights, and of arguments with no recorded one.
        """
        division = self.division
        assert division is not None
        there = [division.sharding(lies, ids) for lies in division.ins]
        return [*[w.aval for w in self.held],
                *[a if s is None else Placed(a, s) for a, s in zip(ins, there)]]  # fmt: skip

    def _whole_call(self, ins: Sequence[Aval]) -> Program:
        """Stage a Program that is one call, on the weights and arguments of these types."""
        call = lambda *xs: call_exported.bind(*xs, artifact=self)  # noqa: E731
        return staged(call, self.weighted(ins), self.fun_name)

    def _failed(self, e: Exception) -> PlaitError:
        said = str(e).strip().splitlines()
        return plait.errors.RuntimeFailure(
            f"the computation of {self.fun_name} failed: {said[0] if said else ''}",
            fix="Exported.mlir_module() shows what it does",
        )

    def _compile(self, ins: tuple[Aval, ...]) -> tuple:
        outs = self.result_types(ins)
        with expecting(f"{self.fun_name} cannot be compiled here"):
            run = load(self._module(ins, outs)).executable.execute_sharded
        return run, [handler(a) for a in outs], outs

    def executable_for(self, ins: tuple[Aval, ...]) -> bytes:
        """Compile it for arguments of these types on this process's platform; return the bytes.

        Raises the errors of a call with such arguments.
        """
        with expecting(f"{self.fun_name} cannot be compiled here"):
            division = self.division
            if division is None:
                return serialized(self._module(ins, self.result_types(ins)))
            here = (platform(),)
            self.check_platforms(here)
            division.expect_here(self.fun_name)
            keys = self._keys(ins, tuple(range(division.devices)))
            return serialized(module_of(self._whole_call(ins), keys=keys, platforms=here))

    def _module(self, ins: tuple[Aval, ...], outs: Sequence[Aval]) -> Module:
        """Return the module for arguments of these types, for this process's platform."""
        here = platform()
        self.check_platforms((here,))
        with expecting(f"{self.fun_name} cannot be compiled here"):
            code = self.code_for(ins, (here,))
            with lock:
                return Module(code, Unit((here,), embed=True), [None] * len(outs))


def _alive(of: Any) -> FlatFunction:
    found = of()
    assert found is not None, "it is called by its own method"
    return found


def _call(*xs: Aval, artifact: FlatFunction) -> list[Aval]:
    """Apply an exported function to its weights and arguments."""
    return artifact.result_types(xs[len(artifact.held) :])


call_exported = Primitive("export.call", _call, many=True, effect=lambda params: None)
"""The call of an exported function.  Its `effect`, which always returns None, keeps its types from
being memoised: an artifact may be large, and must be freed with its last reference."""


@physical_rules.rule(call_exported)
def _(tail: object, xs, artifact):
    return call_exported.bind(*xs, artifact=artifact.laid_out())


@eager_rules.rule(call_exported)
def _(args: Sequence[Any], params: dict[str, Any]) -> list[Array]:
    artifact = params["artifact"]
    return artifact.run([solid(x) for x in args[len(artifact.held) :]])


@lower_rules.rule(call_exported)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], artifact: "Exported"):
    here = e.unit.platforms
    artifact.check_platforms(here)
    one = artifact.by_argument and len(here) == 1
    asked = artifact.platforms if artifact.by_argument else ()
    held, ins = len(artifact.held), ins[len(artifact.held) :]
    division, ids = artifact.division, ()
    if division is not None:
        ids = enter(e, division, artifact.fun_name)
        xs = [*xs[:held], *constrained(e, division, ids, xs[held:], ins, division.ins, False)]
    with expecting(f"{artifact.fun_name} cannot be put into another function"):
        if (one or artifact.symbolic) and not any(is_symbolic(a.shape) for a in ins):
            key, code = ("exported", artifact, tuple(ins), here), artifact.code_for(ins, here)
            asked = () if one else asked
        else:
            key, code = ("exported", artifact, here), artifact.bytecode()
        results = call_inside(e, key, artifact.fun_name, code, xs, outs, asked)
    if division is None:
        return results
    return constrained(e, division, ids, results, outs, division.outs, True)
