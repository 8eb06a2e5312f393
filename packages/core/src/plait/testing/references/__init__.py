"""The primitives of core in numpy, and operands to try them with: a module for each family.

Invariant: every primitive of core is here, by its name; nothing here asks the compiler.
"""

from functools import cache
from types import ModuleType

from ..._base.errors import PlaitError
from ..._core.primitive import Primitive
from ..samples import Reference
from . import (
    accuracy,
    attention,
    bessel,
    boxes,
    checks,
    collective,
    composite,
    contraction,
    conversion,
    convolution,
    cumulative,
    elementwise,
    factorisation,
    foreign,
    fourier,
    gaussian,
    higher,
    host,
    hypergeometric,
    incomplete,
    indexing,
    integrals,
    inverses,
    keys,
    mapping,
    opaque,
    platforms,
    reduction,
    rng,
    roots,
    sampling,
    scattering,
    shape,
    sizes,
    solving,
    sorting,
    special,
    spectral,
    waves,
    windows,
)

__all__ = ["FAMILIES", "all_references", "reference"]

FAMILIES: tuple[ModuleType, ...] = (
    accuracy, attention, bessel, boxes, checks, collective, composite, contraction, conversion,
    convolution, cumulative, elementwise, factorisation, foreign, fourier, gaussian, higher, host,
    hypergeometric, incomplete, indexing, integrals, inverses, keys, mapping, opaque,
    platforms, reduction, rng, roots, sampling, scattering, shape, sizes, solving, sorting,
    special, spectral, waves, windows,
)  # fmt: skip
"""The modules, by name."""


@cache
def all_references() -> dict[str, Reference]:
    """What is known of each primitive of core, by its name."""
    return {name: known for family in FAMILIES for name, known in family.REFERENCES.items()}


def reference(prim: Primitive) -> Reference:
    """What is known of a primitive of core.

    Raises PlaitError for other primitives.

    >>> from plait._ops.elementwise import add
    >>> reference(add).value(2, 3)
    array(5)
    """
    known = all_references().get(prim.name)
    if known is None:
        raise PlaitError(
            f"the kit has no reference for {prim}",
            fix="give conformance samples and the same in numpy",
        )
    return known
