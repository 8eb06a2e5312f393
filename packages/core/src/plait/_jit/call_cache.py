"""The compiled calls of a function, by the types of their arguments.

Invariant: the key of a compiled call holds the structure of the arguments, the dispatch keys of
their leaves (interned types and placements), and which parts are one (`same_parts`).  All are
dropped when a setting changes, and those of a temporary tier when the better one is ready.
"""

from typing import Any

from .tables import forgetting, make_room


class CompiledCalls:
    """The compiled calls of a function, with one set of static values.

    Attributes:
      every: all compiled calls, by `Signature.call_key`.
      one: those with one array, by its dispatch key.
      flat: those with several arrays, by their dispatch keys.
      staged: calls with flat values under a transformation, by their types.
      forget: drops them all.
    """

    __slots__ = ("every", "one", "flat", "staged", "forget", "__weakref__")

    def __init__(self) -> None:
        self.every: dict[tuple[Any, ...], Any] = {}
        self.one: dict[Any, Any] = {}
        self.flat: dict[Any, Any] = {}
        self.staged: dict[Any, Any] = {}
        self.forget = forgetting((self.every, self.one, self.flat, self.staged))

    def keep(self, key: tuple[Any, ...], call: Any) -> None:
        """Keep a compiled call."""
        if make_room(self.every):
            self.forget()  # other tables may lead to the dropped calls
        self.every[key] = call
        self._forget_with(call)

    def keep_flat(self, keys: tuple[Any, ...], call: Any) -> None:
        """Keep a compiled call with flat arrays by their dispatch keys alone."""
        self.flat[keys] = call[:4]
        if len(keys) == 1:
            self.one[keys[0]] = call[:4]
        self._forget_with(call)

    def _forget_with(self, call: Any) -> None:
        # After the call is in the table: if the other tier arrived in between, it would stay there.
        if call.swap is not None:
            call.swap.tell(self.forget)
