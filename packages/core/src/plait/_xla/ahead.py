"""Ahead-of-time compilation: modules compiled for the devices of a topology, and never run.

Invariant: these executables serve inspection only (text, memory, cost), and are never among the
executables that calls look up.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from .._base import jaxlib_api
from .._base.errors import PlaitError, RuntimeFailure, RuntimeRefusal
from .._core.ir import Program, programs_in
from .._core.topologies import Topology, topology_of
from .apart import kept_apart
from .executables import Loaded
from .module import Module
from .tiers import Options

__all__ = ["compiled_for", "topology_in"]


def topology_in(program: Program, keys: Sequence[Any]) -> Topology | None:
    """Return the topology that a program on operands with these dispatch keys is compiled for.

    It comes from an operand, or else from a sharding or mesh in the program; None stands for
    devices of this process.  It must be found before lowering, since rules differ by platform.  If
    there are several, lowering raises the error for operands in different places.
    """
    places = (k.placement.place for k in keys if k.placement is not None)
    return next(filter(None, map(topology_of, places)), None) or next(_spoken_of(program), None)


def _spoken_of(program: Program) -> Iterator[Topology]:
    """Yield the topologies of the shardings and meshes among the parameters of a program."""
    for e in program.eqns:
        for value in e.params.values():
            found = topology_of(value)
            if isinstance(found, Topology):
                yield found
        if e.prim.higher is not None:
            for inner in programs_in(e.params):
                yield from _spoken_of(inner)


def compiled_for(topology: Topology, module: Module, options: Options) -> Loaded:
    """Return a module compiled for devices of a topology.

    Raises PlaitError for a program that calls Python or has placement queries; ArgumentError for
    flags that the compiler does not have; RuntimeFailure for a program that it refuses.
    """
    if module.callbacks or module.questions:
        raise PlaitError(
            "the program calls Python functions, and is to be compiled for devices of a topology "
            f"({topology!r}), which no process drives",
            fix="leave callbacks and prints out of what is compiled ahead of time",
        )
    places = module.place.devices
    devices = [topology.devices[i] for i in places]
    flags = dict(options.flags)
    if options.single().tier == "fast":
        flags = jaxlib_api.fast_flags(topology.platform) | flags
    made = jaxlib_api.compile_options(
        [d.id for d in devices], len(devices) > 1, sorted(flags.items()), module.chosen
    )
    try:
        code = jaxlib_api.compile_for(devices, kept_apart(module.code), made)
    except jaxlib_api.RuntimeFailure as e:
        raise _refused(e, topology, options) from e
    if len(devices) == 1:
        return Loaded(code, None)
    tiles = [jaxlib_api.tiles(s) for s in jaxlib_api.output_shardings(code)]
    if not module.chosen:
        return Loaded(code, tiles)
    return Loaded(code, tiles, [jaxlib_api.tiles(s) for s in jaxlib_api.parameter_shardings(code)])


def _refused(e: Exception, topology: Topology, options: Options) -> PlaitError:
    """Return the error for a module that the compiler refused."""
    said = str(e).splitlines()[0]
    if "RESOURCE_EXHAUSTED" in said:
        return RuntimeFailure(
            f"the program does not fit in the memory of {topology!r}: {said}",
            fix="divide it over more devices, or compute more of it again (plait.checkpoint)",
        )
    names = [name for name, _ in options.flags if name in said]
    if names:
        return RuntimeRefusal(
            f"the compiler for {topology.platform} refused compiler_options: {said}",
            fix="give names and values of its flags, like {'xla_dump_to': folder}",
        )
    return RuntimeFailure(
        f"the compiler for {topology!r} refused the program: {said}",
        fix="jit(f).lower(...).as_text(debug_info=True) shows the program; a function that "
        "is not registered is in the package beside the library (jax-cuda12-plugin)",
    )
