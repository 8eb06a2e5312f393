"""Definitions of values that the tracer treats as several arrays (`jax.experimental.hijax`).

Libraries define such types and operations when they are imported, for a mode that few programs
choose.  A definition succeeds; applying such an operation raises an error.

Invariant: no operation defined here is ever applied.
"""

from collections.abc import Callable
from typing import Any

from plait.ext import Aval

from .requests import missing

__all__ = [
    "AvalMutableQDD", "AvalQDD", "EffectTypes", "HiPrimitive", "HiType", "MutableHiType",
    "aval_method", "aval_property", "control_flow_allowed_effects", "register_hitype",
]  # fmt: skip


class HiType(Aval):
    """The base of types that libraries define; it has no instances."""

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        raise missing(f"jax.experimental.hijax.{HiType.__name__}")


class MutableHiType(HiType):
    """The base of types of values that change; it has no instances."""


class AvalQDD:
    """A type together with its changing part, for annotations and `isinstance`."""


class AvalMutableQDD(AvalQDD):
    """The same for mutable types."""


class HiPrimitive:
    """The base of operations that libraries define; applying one raises an error."""

    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def bind(self, /, *args: Any, **params: object) -> Any:
        """Raise MissingName."""
        raise missing("jax.experimental.hijax.HiPrimitive", f"{self.name} cannot be applied")


class EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    def add_type(self, effect: type) -> None:
        """Add a class."""
        self.types.add(effect)

    def contains(self, effect: object) -> bool:
        """Return whether an effect is of one of the classes."""
        return isinstance(effect, tuple(self.types))


control_flow_allowed_effects = EffectTypes()


class aval_method:
    """A decorator of methods that values of a type also have."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun


class aval_property:
    """A property that values of a type have, too."""

    def __init__(self, fget: Callable[..., Any]):
        self.fget = fget


def register_hitype(cls: type, typeof: Callable[[Any], Any]) -> None:
    """Ignore which type the values of a class have: no such value exists."""
