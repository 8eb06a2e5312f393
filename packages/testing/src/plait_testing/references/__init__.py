"""The primitives of the core in numpy, with sample operands: a module for each family.

Invariant: every primitive of the core is here, by its name; nothing here uses the compiler.
"""

from functools import cache
from types import ModuleType

from plait.ext import PlaitError, Primitive

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
    """Return the Reference of each primitive of the core, by name."""
    return {name: known for family in FAMILIES for name, known in family.REFERENCES.items()}


def reference(prim: Primitive) -> Reference:
    """Return the Reference of a primitive of the core.

    Raises PlaitError for other primitives.

    >>> from plait.ext.ops.elementwise import add
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
