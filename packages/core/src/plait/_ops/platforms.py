"""The platform that a program runs on, as a number known when the program is lowered.

Invariant: a module for one platform has the number as a constant, so only the chosen branch is
lowered.  A module for several calls `ASKED`, which is resolved when the module is loaded.
"""

from collections.abc import Sequence
from typing import Any

from .._base.errors import ArgumentError, PlaitError
from .._core.buffers import platform
from .._core.primitive import primitive
from .._plugins.traits import Discrete
from .._types.avals import INT32, Aval
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, string

__all__ = ["platform_index"]

ASKED = "plait.platform_index"
"""The function that a module for several platforms calls; `backend_config` lists its results."""


PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
_OTHER_NAMES = {"gpu": "cuda", "nvidia": "cuda", "amd": "rocm"}


def known_platforms(platforms: Sequence[str]) -> tuple[str, ...]:
    """Return platforms to lower for, each once, in the order given.

    They are some of `PLATFORMS`, or the platform of this process.  Raises ArgumentError for
    others, and if there are none.
    """
    try:
        names = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    except TypeError:
        raise ArgumentError(
            f"platforms are names, and not {platforms!r}",
            fix=f"give a list of some of {', '.join(PLATFORMS)}",
        ) from None
    for name in names:
        if not isinstance(name, str) or name not in PLATFORMS and name != platform():
            other = _OTHER_NAMES.get(str(name).lower())
            hint = f"write {other!r}, or " if other else ""
            raise ArgumentError(
                f"there is no platform {name!r}", fix=f"{hint}use some of {', '.join(PLATFORMS)}"
            )
    if not names:
        raise ArgumentError("no platforms are named", fix=f"use some of {', '.join(PLATFORMS)}")
    return tuple(dict.fromkeys(names))


@primitive("core.platform_index", traits=(Discrete,))
def platform_index(*, platforms: tuple) -> Aval:
    """Return the index of the first of `platforms`, tuples of names, that holds the platform the
    program runs on; an empty tuple holds all."""
    return Aval((), INT32)


def index_of(platforms: Sequence[Sequence[str]], name: str) -> int:
    """Return the index for one platform.

    Raises PlaitError if it is not among them.
    """
    for i, names in enumerate(platforms):
        if not names or name in names:
            return i
    known = [n for names in platforms for n in names]
    raise PlaitError(
        f"there is no branch for the platform {name!r}, only for {', '.join(map(repr, known))}",
        fix="pass platform_dependent a function default=",
    )


def written(platforms: Sequence[Sequence[str]]) -> str:
    """Return the tuples as one text; `read` reverses this."""
    return ";".join(",".join(names) for names in platforms)


def read(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the tuples from a text of `written`."""
    return tuple([tuple(filter(None, part.split(","))) for part in text.split(";")])


@lower_rules.rule(platform_index)
def _(
    e: Emitter,
    xs: list[Any],
    ins: list[Any],
    outs: list[Aval],
    platforms: tuple[tuple[Any, ...], ...],
):
    here = e.unit.platforms
    chosen = {index_of(platforms, name) for name in here}
    if len(chosen) == 1:
        return e.constant(chosen.pop(), outs[0])
    return e.op(
        "stablehlo.custom_call", [], outs[0], call_target_name=string(ASKED),
        api_version=attr("4 : i32"), backend_config=attr(f'{{platforms = "{written(platforms)}"}}'),
    )  # fmt: skip


def answers(e: Emitter, value: Any) -> list[tuple[str, ...]] | None:
    """Return, for each possible index, the platforms that give it.

    Return None if `value` is not a platform index left to the loader of the module.
    """
    op = value.owner
    if getattr(op, "name", "") != "stablehlo.custom_call":
        return None
    if op.attributes["call_target_name"].value != ASKED:
        return None
    groups = read(op.attributes["backend_config"]["platforms"].value)
    chosen = {name: index_of(groups, name) for name in e.unit.platforms}
    return [tuple([n for n, i in chosen.items() if i == k]) for k in range(len(groups))]
