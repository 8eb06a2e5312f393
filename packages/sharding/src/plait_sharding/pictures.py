"""Pictures of shardings, of arrays and of meshes: which device has which slice.

Invariant: a picture shows the contents of `devices_indices_map`; it reads no data from devices.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.errors import ArgumentError, PlaitError
from plait.ext.values import Array

from .drawing import Cell, Colour, Panel, Picture, folded, hues, numbers
from .mesh import Mesh
from .movement import sharding_of
from .named_shardings import NamedSharding
from .placement import Sharding

__all__ = ["picture", "visualize_array_sharding", "visualize_sharding"]


def picture(x: object, shape: Sequence[int] | None = None) -> Picture:
    """Return a picture of the placement of an array, of a sharding, or of a mesh.

    Each cell is a slice.  It shows the devices that hold the slice, the slice, the number of copies
    if there are several, and the processes if there are several.  Rows and columns are the last two
    divided axes; each part of a third one has a grid of its own.  A grid with more than 64 cells is
    abridged, with dots for the omitted cells.

    Args:
      x: an array, a sharding or a mesh.
      shape: the shape of an array with this sharding; without it, cells do not show slices.

    Returns:
      A `Picture`: `str(it)` is text, `it.svg()` an SVG document, and notebooks draw it.

    Raises ArgumentError if more than three axes are divided, or for any other type of `x`;
    AxisError if an array of that shape cannot have this sharding.

    >>> import plait
    >>> mesh = plait.make_mesh((1,), ("x",))
    >>> print(plait.sharding.picture(plait.NamedSharding(mesh, plait.P("x")), (4,)))
    shape (4,): PartitionSpec('x') of Mesh('x': 1)
    across: axis 0 of 4, over 'x'
    ┌─────────┐
    │  cpu 0  │
    │   [:]   │
    └─────────┘
    """
    if isinstance(x, Mesh):
        return _of_mesh(x)
    if isinstance(x, Array):
        x, shape = sharding_of(x), x.shape
    if not isinstance(x, Sharding):
        raise ArgumentError(
            f"there is no picture of {x!r}", fix="give an array, a sharding or a mesh"
        )
    return _of_sharding(x, None if shape is None else tuple([int(n) for n in shape]))


# ---- meshes ------------------------------------------------------------------------------------


def _of_mesh(mesh: Mesh) -> Picture:
    grid = mesh.devices if mesh.devices.ndim else mesh.devices.reshape(1)
    several = len({getattr(d, "process_index", 0) for d in grid.flat}) > 1
    shade = _shades(grid.size)

    def cell(at: tuple[int, ...]) -> Cell:
        d = grid[at]
        lines = [_device_words([d])]
        lines += [f"process {getattr(d, 'process_index', 0)}"] if several else []
        return Cell(tuple(lines), shade(int(np.ravel_multi_index(at, grid.shape))))

    said = [f"{n!r} of {k}" for n, k in mesh.shape_tuple]
    words = lambda at: ", ".join([f"{n!r} = {i}" for n, i in zip(mesh.axis_names, at)])  # noqa: E731
    return _laid_out(repr(mesh), grid.shape, said, cell, words)


# ---- shardings ---------------------------------------------------------------------------------


def _of_sharding(sharding: Sharding, shape: tuple[int, ...] | None) -> Picture:
    named = shape is not None
    if shape is None:
        shape = _counted(sharding)
    owners: dict[tuple, list[Any]] = {}
    for device, box in sharding.devices_indices_map(shape).items():
        owners.setdefault(tuple([(s.start or 0, s.stop) for s in box]), []).append(device)
    begins = [sorted({ends[i] for ends in owners}) for i in range(len(shape))]
    axes = [i for i, found in enumerate(begins) if len(found) > 1]
    if len(axes) > 3:
        raise ArgumentError(
            f"a picture has rows, columns and layers, and {sharding!r} divides {len(axes)} axes",
            fix="draw a slice of the array, or print sharding.devices_indices_map(shape)",
        )
    for i in reversed(range(len(shape))):  # a grid shows at least two axes of the array
        if len(axes) < min(2, len(shape)) and i not in axes:
            axes = sorted([*axes, i])
    several = len({d.process_index for ds in owners.values() for d in ds}) > 1
    shade = _shades(len(owners))
    order = {ends: k for k, ends in enumerate(sorted(owners))}

    def cell(at: tuple[int, ...]) -> Cell:
        where = dict(zip(axes, at))
        ends = tuple([begins[i][where.get(i, 0)] for i in range(len(shape))])
        devices = owners[ends]
        lines = [_device_words(devices)]
        lines += [_slice_words(ends, shape)] if named and shape else []
        lines += [f"{len(devices)} copies"] if len(devices) > 1 else []
        lines += [f"process {numbers({d.process_index for d in devices})}"] if several else []
        return Cell(tuple(lines), shade(order[ends]))

    counts = [len(begins[i]) for i in axes]
    said = [_axis_words(sharding, i, shape[i] if named else None) for i in axes]
    words = lambda at: ", ".join([  # noqa: E731
        f"axis {i}: {begins[i][k][0]}:{begins[i][k][1]}" if named else f"axis {i}, part {k}"
        for i, k in zip(axes, at)
    ])  # fmt: skip
    title = f"shape {shape}: " if named else ""
    return _laid_out(title + _sharding_words(sharding), counts, said, cell, words)


def _counted(sharding: Sharding) -> tuple[int, ...]:
    """Return the shape of an array with one element for each tile."""
    if isinstance(sharding, NamedSharding):
        spec = [names or () for names in sharding.spec.parts]
        return tuple([sharding.mesh.product(names) for names in spec]) or (1,)
    return getattr(sharding, "dims", None) or (1,)


def _sharding_words(sharding: Sharding) -> str:
    if isinstance(sharding, NamedSharding):
        return f"{sharding.spec!r} of {sharding.mesh!r}"
    return repr(sharding)


def _axis_words(sharding: Sharding, axis: int, size: int | None) -> str:
    words = f"axis {axis}" if size is None else f"axis {axis} of {size}"
    if isinstance(sharding, NamedSharding) and axis < len(sharding.spec):
        names = sharding.spec.parts[axis]
        words += f", over {' and '.join(map(repr, names))}" if names else ""
    return words


def _slice_words(ends: tuple, shape: tuple[int, ...]) -> str:
    each = [":" if (i, j) == (0, n) else f"{i}:{j}" for (i, j), n in zip(ends, shape)]
    return f"[{', '.join(each)}]"


def _device_words(devices: Sequence[Any]) -> str:
    """Return the platform and the numbers of devices, `cpu 0-3`.

    A mesh may hold plain numbers in place of devices.
    """
    kind = getattr(devices[0], "platform", "device")
    return f"{kind} {numbers([getattr(d, 'id', d) for d in devices])}"


# ---- both --------------------------------------------------------------------------------------


def _shades(n: int) -> Callable[[int], float]:
    return lambda k: k / n


def _laid_out(
    title: str,
    counts: Sequence[int],
    said: Sequence[str],
    cell: Callable[[tuple[int, ...]], Cell],
    words: Callable[[tuple[int, ...]], str],
) -> Picture:
    """Return a picture of a grid of cells.

    Its last two axes are rows and columns.  Each combination of positions along the axes before
    them has a panel, named by `words`.
    """
    shown = folded(counts)
    *before, down, across = [[0], [0], *shown][min(len(shown), 2) :]
    keep = 2 - min(len(shown), 2)  # with fewer than two axes, the row (and column) is not an index
    panels = []
    for lead in itertools.product(*before):
        if None in lead:
            panels.append(Panel("…", ()))
            continue
        rows = [
            tuple([None if None in (i, j) else cell((*lead, *(i, j)[keep:])) for j in across])
            for i in down
        ]
        panels.append(Panel(words(lead) if lead else "", tuple(rows)))
    return Picture(
        title,
        tuple(panels),
        down=said[-2] if len(said) > 1 else "",
        across=said[-1] if said else "",
    )


# ---- as JAX has them ---------------------------------------------------------------------------


def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Print which device holds which piece of an array, or draw it in a notebook.

    Args:
      arr: an array.
      kwargs: as in `visualize_sharding`.

    Raises OperandTypeError if `arr` is not an array.  In traced functions, use
    `inspect_array_sharding` for the sharding of a value.

    >>> import plait
    >>> plait.debug.visualize_array_sharding(plait.numpy.zeros(3))
    shape (3,): SingleDeviceSharding(device=0)
    across: axis 0 of 3
    ┌─────────┐
    │  cpu 0  │
    │   [:]   │
    └─────────┘
    """
    where = sharding_of(arr)
    visualize_sharding(arr.shape, where, **kwargs)


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Colour | None = None,
) -> None:
    """Print which device holds which slice of an array of this shape, or draw it in a notebook.

    Args:
      shape: the shape of the array.
      sharding: the sharding of the array.
      use_color: whether a terminal shows slices in colours.
      scale: the size of the cells, as a multiple of the least size.
      min_width: the least number of characters across a cell.
      max_width: the largest width of the picture; columns that do not fit are left out.
      color_map: maps a number between 0 and 1 to red, green and blue between 0 and 1.

    Raises ArgumentError if more than three axes are divided; AxisError if an array of that shape
    cannot have this sharding.

    >>> import plait
    >>> mesh = plait.make_mesh((1, 1), ("x", "y"))
    >>> plait.debug.visualize_sharding((4, 6), plait.NamedSharding(mesh, plait.P("x", "y")))
    shape (4, 6): PartitionSpec('x', 'y') of Mesh('x': 1, 'y': 1)
    down: axis 0 of 4, over 'x'; across: axis 1 of 6, over 'y'
    ┌─────────┐
    │  cpu 0  │
    │  [:, :] │
    └─────────┘
    """
    drawn = picture(sharding, shape)
    display = _notebook()
    if display is not None:
        display(_Coloured(drawn, color_map))
        return
    colour = (color_map or hues) if use_color and sys.stdout.isatty() else None
    print(drawn.text(colour, scale=scale, min_width=min_width, max_width=max_width))


class _Coloured:
    """A picture in the caller's colours, for notebooks."""

    def __init__(self, drawn: Picture, colour: Colour | None):
        self._drawn, self._colour = drawn, colour

    def __repr__(self) -> str:
        return str(self._drawn)

    def _repr_html_(self) -> str:
        return self._drawn.svg(self._colour)


def _notebook() -> Callable[[Any], Any] | None:
    """Return the function that displays a value in a notebook; None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if ipython is None or not hasattr(shell, "kernel"):
        return None
    return ipython.display.display


def _html(x: object) -> str | None:
    """Return the HTML of a mesh or sharding for notebooks; None if it cannot be drawn."""
    try:
        return picture(x).svg()
    except PlaitError:
        return None


Mesh.draw_by(_html)
Sharding.draw_by(_html)
