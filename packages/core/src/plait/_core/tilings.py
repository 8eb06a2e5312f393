"""Texts of tilings: which devices have which tiles of an array, as the compiler writes it.

Invariant: the runtime's parser gets only texts that it can read, since others may end the process.
"""

import math
import re

from .._base import jaxlib_api
from .._base.errors import ArgumentError


def parse_tiling(x: int | str | None) -> tuple[tuple[int, ...] | None, tuple[int, ...]]:
    """Return (how many tiles each axis has, the numbers of the devices in the order of the tiles);
    (None, ()) if every device has the whole array.

    `x` is the text of an HloSharding, or one of jaxlib's objects.  Raises ArgumentError for
    anything else, and if a device has neither a tile of its own nor a copy of one.
    """
    sharding = None
    if not isinstance(x, str) or _is_tiling(x):
        try:
            sharding = jaxlib_api.parsed_tiling(x)
        except (jaxlib_api.RuntimeFailure, ValueError):
            pass  # refused below
    if sharding is not None and sharding.is_replicated():
        return None, ()
    if sharding is None or not sharding.is_tiled() or sharding.subgroup_types():
        raise ArgumentError(
            f"{x!r} does not say which tiles devices have",
            fix='write an HloSharding, for instance "{devices=[2,4]<=[8]}" or "{replicated}"',
        )
    found = jaxlib_api.tiles(sharding)
    assert found is not None  # or it were replicated
    return tuple(found[0][: -1 if sharding.replicate_on_last_tile_dim() else None]), found[1]


_INTS = r"\d+(?:,\d+)*"
_TILING = (
    rf"\{{devices=\[({_INTS})\](?:<=\[({_INTS})\](?:T\(({_INTS})\))?|({_INTS}))"
    r"(?: ?last_tile_dim_replicate)?\}"
)


def _is_tiling(text: str) -> bool:
    """Return whether a text states which devices have which tiles; the runtime's own parser may end
    the process for other texts."""
    if text == "{replicated}":
        return True
    found = re.fullmatch(_TILING, text)
    if found is None:
        return False
    dims, grid, turned, each = [[int(n) for n in (g or "").split(",") if n] for g in found.groups()]
    count = len(each) if each else math.prod(grid)
    axes = sorted(turned) if turned else list(range(len(grid)))
    return 0 < math.prod(dims) == count and axes == list(range(len(grid)))
