"""Functions that depend on the platform of a program.

Invariant: the choice is made when the program is lowered; when lowered for several platforms, at
loading.  Python that runs directly chooses at once.
"""

from collections.abc import Callable

from plait.typing import Array, ArrayLike

from .._base.errors import ArgumentError
from .._control.branches import branched
from .._core.buffers import platform
from .._core.interpreter import current
from .._ops.platforms import index_of, platform_index


def platform_dependent(
    *args: ArrayLike, default: Callable | None = None, **per_platform: Callable
) -> Array:
    """Call the function for the platform that the program runs on.

    Args:
      args: trees of arrays.
      default: function for other platforms.
      per_platform: functions by platform: cpu=, cuda=, rocm=, tpu=.  All return the same structure
        and shapes.

    Raises TypeRule if no function is given, TreeMismatch or TypeRule if they disagree.
    Raises PlaitError when a program is lowered for a platform without a function.

    >>> import plait
    >>> f = lambda x: plait.lax.platform_dependent(x, cpu=lambda v: v + 1, tpu=lambda v: v + 2,
    ...                                         default=lambda v: v + 3)
    >>> plait.jit(f).lower(0.0, lowering_platforms=["tpu"]).as_text().count("2.0")
    1
    """
    functions, names = [*per_platform.values()], [(n,) for n in per_platform]
    if default is not None:
        functions, names = [*functions, default], [*names, ()]
    if not functions or not all(map(callable, functions)):
        raise ArgumentError(
            "platform_dependent needs functions by platform",
            fix="write platform_dependent(x, cpu=f, default=g)",
        )
    if not current().staging:
        return functions[index_of(names, platform())](*args)
    index = platform_index.bind(platforms=tuple(names))
    return branched("platform_dependent", index, functions, args, always=True)
