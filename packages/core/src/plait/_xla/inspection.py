"""Placement queries: calls that report the placement of a value while the program is compiled.

The compiler calls back once it has divided the program over devices.  In a program for one device
the placement is known before.

Invariant: a query changes neither results nor their placement, and leaves no trace in the
executable.  Its callback runs once each time the program is compiled, and an exception that it
raises comes out of the compilation.
"""

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._base import jaxlib_api
from .._base.errors import PlaitError
from .._base.jaxlib_api import IrValue
from .._types.avals import Aval
from . import mlir
from .mlir import type_of

if TYPE_CHECKING:
    from .lower import Emitter, Unit

TARGET = "plait_inspect_placement"


class Question:
    """The query for one value: `tell(placement)` is called with the answer, None for the default
    device.

    Attributes:
      failure: the exception of `tell`, which must not pass through the compiler.
    """

    def __init__(self, tell: Callable[[Any], None], places: list[Any], aval: Aval):
        self._tell, self._places, self._aval = tell, places, aval
        self._element = str(type_of(Aval((), aval.dtype)).element_type)
        self.failure: BaseException | None = None

    def answer_alone(self) -> None:
        """Call `tell` in a program for one device."""
        self._tell(self._places[0].everywhere() if self._places else None)

    def answer(self, sharding: Any) -> str:
        """Call `tell` with the compiler's sharding; return the text of a module that does nothing
        with a piece of the value."""
        tiles, shape = jaxlib_api.tiles(sharding), self._aval.shape
        try:
            self._tell(placement_of(self._places, tiles, len(shape)))
        except BaseException as e:
            self.failure = e
        counts = (1,) * len(shape) if tiles is None else tiles[0]
        piece = "".join([f"{-(-n // k)}x" for n, k in zip(shape, counts)])
        return f"func.func public @main(%x: tensor<{piece}{self._element}>) {{ return }}"


def placement_of(places: list[Any], tiles: tuple[tuple[Any, ...], ...] | None, ndim: int) -> Any:
    """Return the placement of an array of `ndim` axes with this tiling.

    The first place of the module that can express the tiling does so; otherwise the placement has
    no axis names.
    """
    for place in places:
        placement = place.placement(tiles, ndim)
        if placement is not None:
            return placement
    if not hasattr(places[0], "tiled"):  # places of plugins for older releases
        raise PlaitError(
            f"the compiler divided an array as {tiles}, for which {places[0]} has no words",
            fix="give its sharding, with plait.with_sharding_constraint or jit's out_shardings",
        )
    return places[0].tiled(tiles, ndim)


_numbers = itertools.count()
_open: "weakref.WeakValueDictionary[int, Question]" = weakref.WeakValueDictionary()
"""The queries of living modules, by the numbers in their code."""


def ask(e: "Emitter", x: IrValue, aval: Aval, tell: Callable[[Any], None]) -> None:
    """Record a query for `x`, a value of this type: `tell(placement)` gets the answer."""
    number, question = next(_numbers), Question(tell, e.unit.places, aval)
    _open[number] = question
    jaxlib_api.register_inspector(TARGET, _answered)
    how = {
        "call_target_name": mlir.string(TARGET),
        "api_version": mlir.attr("1 : i32"),
        "has_side_effect": mlir.boolean(True),
        "backend_config": mlir.string(str(number)),
    }
    made = e.create("stablehlo.custom_call", [], [x], how, None, 0, e.where, e.ip)
    e.unit.questions.append((question, made))


def _answered(number: bytes, sharding: Any) -> str:
    return _open[int(number)].answer(sharding)


def settle(unit: "Unit") -> list[Question]:
    """Answer the queries that are known once a module is complete; return the others."""
    if unit.places and len(unit.place.devices) > 1:
        return [question for question, _ in unit.questions]
    for question, made in unit.questions:
        question.answer_alone()
        made.operation.erase()
    return []
