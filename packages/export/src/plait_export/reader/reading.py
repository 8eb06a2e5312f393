"""Reading of one module into programs, one for each list of argument types.

Invariant: a module is parsed once and read once for each list of types; the programs live as long
as the artifact.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Program
from plait.ext.ops.opaque import unwrap, wrap
from plait.ext.ops.platforms import platform_index
from plait.ext.ops.shape import convert, fill
from plait.ext.trace import Value, staged
from plait.ext.types import Aval, Opaque, float0

from ..errors import NotReadable
from . import (  # noqa: F401  (they fill the table)
    contractions,
    control,
    devices,
    elementwise,
    generators,
    indexing,
    kernels,
    reductions,
    shapes,
    sorting,
)
from .module import functions_of
from .sizes import Known
from .walking import Walk


class Reading:
    """A module that can be read for given argument types.

    Args:
      name: the name of the function.
      artifact: portable StableHLO.
      platforms: the platforms of the artifact.
      asks: whether its `main` takes the platform index first.
    """

    def __init__(self, name: str, artifact: bytes, platforms: Sequence[str], asks: bool):
        self.name, self.platforms, self.asks = name, tuple(platforms), asks
        self.functions = functions_of(artifact, platforms)
        self.programs: dict[Any, Program] = {}

    def program(
        self, ins: Sequence[Aval], outs: Sequence[Aval], platform: str | None = None
    ) -> Program:
        """Return the program for these argument and result types.

        Args:
          ins, outs: types of arguments and results; sizes may be symbolic.
          platform: the platform of the program; None for all, with the choice made where it runs.

        Raises NotReadable with the name of the operation that cannot be read.
        """
        key = tuple(ins), tuple(outs), platform
        found = self.programs.get(key)
        if found is None:
            found = staged(lambda *xs: self._results(xs, outs, platform), list(ins), self.name)
            self.programs[key] = found
        return found

    def _results(self, xs: Sequence[Any], outs: Sequence[Aval], platform: str | None) -> list:
        walk = Walk(self.functions)
        given: list = [_in_memory(x) for x in xs]
        if self.asks:
            number: Any = platform_index.bind(platforms=tuple([(p,) for p in self.platforms]))
            if platform is not None:
                number = Known([self.platforms.index(platform)], (), number.aval.dtype)
            given = [number, *given]
        found = walk.main(given)
        if len(found) != len(outs):
            raise NotReadable(f"main returns {len(found)} values, and {self.name} {len(outs)}")
        return [_as_said(walk.value(y), o) for y, o in zip(found, outs, strict=True)]


def _in_memory(x: Value) -> Any:
    """Return the physical representation of an argument, with a strong type."""
    if isinstance(x.aval.dtype, Opaque):
        return unwrap(x)
    if x.aval.dtype == float0:
        return fill(False, x.aval.physical)  # float0 has no values; booleans stand for it.
    return convert(x, x.aval.dtype) if x.aval.weak_type else x


def _as_said(y: Value, out: Aval) -> Any:
    """Return a result with the type that the artifact declares."""
    if isinstance(out.dtype, Opaque):
        return wrap(y, out.dtype)
    if out.dtype == float0:
        return fill(False, out)
    return convert(y, out.dtype, weak=out.weak_type) if out.weak_type else y
