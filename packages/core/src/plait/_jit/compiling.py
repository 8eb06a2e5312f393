"""Compiling: a traced program becomes a compiled call, for the placements of its arguments.

Invariant: executables and the builders of their results are kept on the program, and die with it.
The key holds the donated arguments, the dispatch keys of all arguments, and the options.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from .._base import jaxlib_api
from .._base.lazy import later
from .._base.source import warn
from .._core.array import run_on, wrap
from .._core.ir import Program, derived, live_equations, programs_in, swept
from .._core.same_parts import alike
from .._types.avals import OPAQUE, Aval, Key
from .._xla.executables import Executable, compile_in_tiers
from .._xla.tiers import Options, Swap
from ..tree import LEAF, KeyedTree, TreeDef, exact_key
from .call_forms import builder
from .tracing import Traced


class CompiledCall(NamedTuple):
    """A compiled call: a function of buffers, and how its results are made from theirs.

    Attributes:
      run: the executable, a function of buffers.
      handlers: convert its results.
      key: the dispatch key of the result, where that is one array.
      build: makes the tree of results from their buffers, where it is not.
      direct: (jaxlib's executable, keys of its results, numbers of its arguments or None for all)
        if jaxlib may run it by itself, since its run has no wrappers; else None.
      swap: the wait for a better tier, if this executable is temporary; else None.
    """

    run: Callable[[list[Any]], Any]
    handlers: list[Any]
    key: Any
    build: Callable[[list[Any]], Any] | None
    direct: tuple[Any, list[Key], list[int] | None] | None
    swap: Swap | None


def run(call: CompiledCall, bufs: list[Any]) -> Any:
    """Run a compiled call; return the tree of its results."""
    outs = run_on(call.run, bufs, call.handlers)
    return wrap(outs[0], call.key) if call.build is None else call.build(outs)


class _Compiled:
    """A compiled program, and the builders of its result trees.

    Attributes:
      made: the executable, in the best tier that is ready; its run takes all arguments.
      itself: jaxlib's executable, if that is all that runs; else None.
      read: the numbers of the arguments that it takes; None for all.
      builds: builders by the structure of the results; they serve every tier.
      swap: the wait for a better tier that is being compiled; else None.
    """

    __slots__ = ("made", "itself", "read", "builds", "swap")

    made: Executable
    itself: Any

    def __init__(
        self, program: Program, donated: tuple[int, ...], keys: tuple[Key, ...], options: Options
    ):
        self.builds: dict[TreeDef | KeyedTree, Callable[[list[Any]], Any]] = {}
        self.swap: Swap | None = None

        self.read = read = _read(program, keys)
        given: Callable = _unchanged
        if read is not None:
            program, given = _of_some(program, read), _taking(read)
            donated = tuple([i for i, at in enumerate(read) if at in donated])
            keys = tuple([keys[i] for i in read])

        def take(made: Executable, last: bool) -> None:
            waiting = self.swap
            self.itself = jaxlib_api.executable_of(made.run)
            self.made = made._replace(run=given(made.run))
            self.swap = None if last else Swap()
            if waiting is not None:
                waiting.finish()

        compile_in_tiers(program, donated, keys, options, take, quickly(program, keys, options))


_UNREAD = 8
"""The fewest arguments that a program must not read for them to be left out.

Each costs the runtime a fifth of a microsecond, and leaving them out costs one in all."""


def _read(program: Program, keys: Sequence[Key]) -> list[int] | None:
    """Return the numbers of the inputs that a program reads; None to give it all of them.

    Arguments that have a place decide where the program runs, so they stay.
    """
    if len(program.inputs) < _UNREAD or any(k.placement is not None for k in keys):
        return None
    live = swept(program.eqns, program.outputs)[1]
    read = [i for i, v in enumerate(program.inputs) if v in live]
    return read if len(program.inputs) - len(read) >= _UNREAD else None


def _of_some(program: Program, read: Sequence[int]) -> Program:
    """Return the program with these inputs alone."""
    inputs = [program.inputs[i] for i in read]
    eqns = live_equations(program.eqns, program.outputs)
    return Program(inputs, eqns, program.outputs, program.name, program.consts)


def _unchanged(run: Callable) -> Callable:
    return run


def _taking(read: Sequence[int]) -> Callable[[Callable], Callable[[list[Any]], Any]]:
    """Return a decorator for functions of some buffers: the result takes these from all."""
    if len(read) < 2:
        return lambda run: lambda bufs: run([bufs[i] for i in read])
    pick = itemgetter(*read)
    return lambda run: lambda bufs: run([*pick(bufs)])


def _length(program: Program) -> int:
    """Return the number of operations, with those of the programs in them."""
    inner = [p for e in program.eqns if e.prim.higher for p in programs_in(e.params)]
    return len(program.eqns) + sum(map(_length, inner))


_TIMES, _SIZE = 4, 16
"""The least number of equal layers, and of operations in one, that the fast tier rolls."""


def quickly(program: Program, keys: Sequence[Key], options: Options) -> Program:
    """Return what the fast tier compiles: the program, with equal layers rolled into scans.

    Compile time grows with the operations of a program, and this tier is there to save it.  Values
    on several devices are left where they are, since a stack of them would have to be divided.
    """
    if options.tier_now == "full" or any(k.placement is not None for k in keys):
        return program
    if _length(program) < _TIMES * _SIZE:
        return program
    rolled: Program = later("_simplify.rerolling").rerolled(program, _TIMES, _SIZE)
    return rolled


def compiled(
    traced: Traced, keys: tuple[Key, ...], donated: tuple[int, ...], options: Options
) -> CompiledCall:
    """Return the compiled call of a trace, for arguments with these dispatch keys.

    Args:
      traced: the trace; the values that it captured are arrays.
      keys: the dispatch keys of the flat arguments.
      donated: the numbers of the donated ones.
      options: flags and tier of the compiler.
    """
    program, captured = traced.program, traced.captured
    k = len(captured)
    all_keys = (*[c.key for c in captured], *keys)
    shifted = tuple([i + k for i in donated])
    options = options.resolved()

    def make() -> _Compiled:
        warn_of_unusable(program, shifted)
        return _Compiled(program, shifted, all_keys, options)

    # Kept on the program, not here: equal traces of other versions share it, and it dies with them.
    kept = derived(program, ("executable", shifted, all_keys, options), make)
    swap = kept.swap  # read before `made`: if it is None, `made` is the last tier
    made, builds, itself = kept.made, kept.builds, kept.itself
    direct = None if itself is None else (itself, made.keys, kept.read)
    if traced.tree == LEAF:
        return CompiledCall(made.run, made.handlers, made.keys[0], None, direct, swap)
    tree = exact_key(traced.tree)
    build = builds.get(tree)
    if build is None:
        one = alike(traced.tree, program.outputs)
        build = builds[tree] = builder(traced.tree, made.keys, one)
    return CompiledCall(made.run, made.handlers, None, build, direct, swap)


def warn_of_unusable(program: Program, donated: Sequence[int]) -> None:
    """Warn, at the user's line, of donated arguments whose memory no result can take.

    They are deleted all the same; for opaque elements (keys) that may be the purpose.
    """
    left = Counter([(a.shape, a.dtype) for a in program.out_avals])
    unusable: list[Aval] = []
    for i in donated:
        aval = program.in_avals[i]
        if left[aval.shape, aval.dtype] > 0:
            left[aval.shape, aval.dtype] -= 1
        elif aval.category != OPAQUE:
            unusable.append(aval)
    if unusable:
        warn(
            "No result can use the memory of these donated arguments: "
            f"{', '.join(map(repr, unusable))}\n"
            "  a result of the same shape and dtype is needed; donate no more than there are"
        )
