"""Named operations for the compiler, defined by their decompositions.

Invariant: a transformed composite is its transformed decomposition, without the name.
"""

from collections.abc import Callable
from typing import Any

from .._base.errors import ArgumentError
from .._base.wrapping import wraps
from .._jit.tracing import trace
from .._ops.composite import attribute
from .._ops.composite import composite as composite_p


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable[..., Any]:
    """Make `decomposition` one named operation, which a compiler may implement in its own way.

    Args:
      decomposition: takes and returns trees of arrays; its keyword arguments are attributes of the
        operation: numbers, strings, booleans, dtypes, and tuples of these (None is left out).
      name: name of the operation, such as "my.softmax".
      version: version of its meaning.

    Returns a function with the arguments of `decomposition`.  Raises TypeRule for attributes of
    other types.

    >>> import plait
    >>> scaled = plait.lax.composite(lambda x, *, by: x * by, "my.scaled")
    >>> scaled(2.0, by=3.0).item()
    6.0
    """
    if not callable(decomposition) or not isinstance(name, str) or not name:
        raise ArgumentError(
            f"composite of {decomposition!r}, named {name!r}",
            fix='write composite(function, "library.operation")',
        )

    def decorated(*args: Any, **kwargs: object) -> Any:
        given = [(k, attribute(name, k, v)) for k, v in kwargs.items() if v is not None]

        @wraps(decomposition)
        def decomposed(*xs: Any) -> Any:
            return decomposition(*xs, **kwargs)

        traced = trace(decomposed, args, {}, name)
        outs = composite_p.bind(
            *traced.captured, *traced.values, program=traced.program, name=name,
            version=version.__index__(), attributes=tuple(given),
        )  # fmt: skip
        return traced.tree.unflatten(outs)

    return decorated
