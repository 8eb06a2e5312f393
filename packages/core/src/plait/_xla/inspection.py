"""Asking where values of a program come to lie, while it is compiled.

The compiler calls back once it has divided the program over devices; of a program for one device it
is known before.

Invariant: what is asked changes neither results nor how they lie, and nothing of it is left in the
executable.  Whoever asks is told as often as the program is compiled, and what he raises comes out
of the compilation.
"""

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from .._base import jaxlib_api
from .._base.errors import PlaitError
from .._types.avals import Aval
from . import mlir
from .mlir import type_of

TARGET = "plait_inspect_placement"


class Question:
    """Where a value lies: `tell(placement)` is called with the answer, None for the default
    device.

    Attributes:
      failure: what `tell` raised, which must not pass through the compiler.
    """

    def __init__(self, tell: Callable[[Any], None], places: list[Any], aval: Aval):
        self._tell, self._places, self._aval = tell, places, aval
        self._element = str(type_of(Aval((), aval.dtype)).element_type)
        self.failure: BaseException | None = None

    def answer_alone(self) -> None:
        """Tell it of a program for one device."""
        self._tell(self._places[0].everywhere() if self._places else None)

    def answer(self, sharding: Any) -> str:
        """Tell it, as the compiler says it; return the text of a module that does nothing with a
        piece of the value."""
        tiles, shape = jaxlib_api.tiles(sharding), self._aval.shape
        try:
            self._tell(placement_of(self._places, tiles, len(shape)))
        except BaseException as e:
            self.failure = e
        counts = (1,) * len(shape) if tiles is None else tiles[0]
        piece = "".join([f"{-(-n // k)}x" for n, k in zip(shape, counts)])
        return f"func.func public @main(%x: tensor<{piece}{self._element}>) {{ return }}"


def placement_of(places: list[Any], tiles: Any, ndim: int) -> Any:
    """Return the placement of an array of `ndim` axes that is tiled so, in words of one of the
    places of a module; without names, if none has any."""
    for place in places:
        placement = place.placement(tiles, ndim)
        if placement is not None:
            return placement
    if not hasattr(places[0], "tiled"):  # those of releases that came before it
        raise PlaitError(
            f"the compiler divided an array as {tiles}, for which {places[0]} has no words",
            fix="say how it shall lie, with plait.with_sharding_constraint or jit's out_shardings",
        )
    return places[0].tiled(tiles, ndim)


_numbers = itertools.count()
_open: "weakref.WeakValueDictionary[int, Question]" = weakref.WeakValueDictionary()
"""The questions of modules that live, by the numbers that their code has for them."""


def ask(e: Any, x: Any, aval: Aval, tell: Callable[[Any], None]) -> None:
    """Have `tell(placement)` called where `x`, a value of this type in a module, comes to lie."""
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


def settle(unit: Any) -> list[Question]:
    """Answer what is known when a module is complete; return the questions that are left."""
    if unit.places and len(unit.place.devices) > 1:
        return [question for question, _ in unit.questions]
    for question, made in unit.questions:
        question.answer_alone()
        made.operation.erase()
    return []
