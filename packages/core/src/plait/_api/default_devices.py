"""The default device of a block: the place of computations without a placement.

Inside the block an interpreter moves arrays without an explicit placement to the device before
operations on them; the results of operations without operands are moved after.

Invariant: values with an explicit placement stay where they are, and so do operations with a place
of their own (a mesh).
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .._base.errors import PlacementError
from .._core import buffers
from .._core.array import Array, is_tracer
from .._core.interpreter import GROUND, Interpreter, current, open_under, use
from .._plugins.metadata import resolve
from .hardware import Device, default_backend

__all__ = ["default_device", "placed_by_default"]


class _OnDevice(Interpreter):
    """An interpreter that does what its parent does, on a device."""

    does = "default_device"

    def __init__(self, around: Interpreter, device: Device | None):
        while isinstance(around, _OnDevice):  # the innermost of nested blocks counts
            assert around.parent is not None
            around = around.parent
        open_under(self, around)
        self.device = device
        self.at_once = around.at_once

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        assert self.parent is not None
        device = self.device
        if device is None or not all(map(_is_free, args)):
            return _applied(self.parent, prim, args, params)
        try:
            there = [placed_on(x, device) for x in args]
            out = _applied(self.parent, prim, there, params)
        except PlacementError:  # the operation has a place of its own, for instance a mesh
            return _applied(self.parent, prim, args, params)
        return [placed_on(x, device) for x in out] if prim.many else placed_on(out, device)


def _applied(parent: Interpreter, prim: Any, args: Any, params: dict[str, Any]) -> Any:
    if parent is not GROUND:
        return parent.apply(prim, args, params)
    with use(GROUND):
        return GROUND.apply(prim, args, params)


def _is_free(x: Any) -> bool:
    """Return whether an operand may move to another device: a number, or an unplaced array."""
    return _is_nowhere(x) if x.__class__ is Array else not is_tracer(x)


def _is_nowhere(x: Any) -> bool:
    return x.__class__ is Array and x.key.placement is None


def placed_on(x: Any, device: Device) -> Any:
    """Return `x` on a device if it is an array without an explicit placement, else `x`."""
    if not _is_nowhere(x):
        return x
    with use(GROUND):
        return resolve("device_put")(x, device)


def placed_by_default(x: Any) -> Any:
    """Return a new array on the default device of the current block, if there is one."""
    at: Interpreter | None = current()
    while at is not None and at is not GROUND:
        if isinstance(at, _OnDevice):
            return x if at.device is None else placed_on(x, at.device)
        at = at.parent
    return x


def default_device(new_val: object) -> AbstractContextManager[None]:
    """Make arrays, and compute with them, on this device within the block.

    Arrays with an explicit placement stay, and so do operations with a place of their own.  Results
    in the block are explicitly placed on the device.  The block applies to this thread or task.  It
    has no effect in a function that is traced (by jit, say), which runs where it is called.

    Args:
      new_val: a device of this process; the name of its platform, or None, for the first one.

    Raises PlacementError for others.

    >>> import plait
    >>> last = plait.local_devices()[-1]
    >>> with plait.default_device(last):
    ...     plait.numpy.arange(3).devices() == {last}
    True
    """
    return _within(_known(new_val))


@contextmanager
def _within(device: Device | None) -> Generator[None, None, None]:
    here = current()
    if here.staging or (device is None and here is GROUND):
        yield
        return
    with use(_OnDevice(here, device)):
        yield


def _known(given: object) -> Device | None:
    """Return the device; None for the first one, where arrays without a placement lie."""
    if given is None or (isinstance(given, str) and given == default_backend()):
        return None
    if isinstance(given, Device) and given.id in buffers.local():
        return None if given.id == buffers.first() else given
    raise PlacementError(
        f"arrays are to be made on {given!r}, and this process drives {[*buffers.local()]} of "
        f"platform {default_backend()!r}",
        fix="give one of plait.local_devices()",
    )
