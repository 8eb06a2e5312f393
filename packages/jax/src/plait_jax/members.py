"""Attributes with JAX's names of Plait's arrays, types, programs and tracers.

Invariant: they are added when jax is first imported, and stay; each returns what Plait's own
attributes hold, or a view of it.
"""

from typing import Any, NamedTuple

from plait.ext import Aval, Program, Tracer
from plait.ext.ir import Eqn, Var
from plait.ext.trace import GROUND, Lifted
from plait.ext.values import Array, add_members
from plait.stages import Staged

from .jaxprs import ClosedJaxpr, Jaxpr, closed_jaxpr
from .source_info import SourceInfo
from .tracing import LEVEL

__all__ = ["add_jaxs_members"]


# ---- programs --------------------------------------------------------------------------------


@property
def _closed(program: Program) -> ClosedJaxpr:
    """The program as a ClosedJaxpr."""
    return closed_jaxpr(program)


@property
def _open(program: Program) -> Jaxpr:
    """The program as a Jaxpr."""
    return closed_jaxpr(program).jaxpr


@property
def _invars(program: Program) -> list[Any]:
    """The variables of the inputs."""
    return closed_jaxpr(program).jaxpr.invars


@property
def _outvars(program: Program) -> list[Any]:
    """The variables and literals that are returned."""
    return closed_jaxpr(program).jaxpr.outvars


@property
def _constvars(program: Program) -> list[Any]:
    """The variables of the constants."""
    return closed_jaxpr(program).jaxpr.constvars


@property
def _staged(stage: Staged) -> ClosedJaxpr:
    """The program of the stage, as a ClosedJaxpr."""
    return closed_jaxpr(stage.program)


@property
def _source_info(eqn: Eqn) -> SourceInfo:
    """The source location of the equation."""
    return SourceInfo.of(eqn.where)


# ---- types -----------------------------------------------------------------------------------


def to_tangent_aval(aval: Aval) -> Aval:
    """Return the type of tangents of values of this type."""
    return aval.tangent_type


def strip_weak_type(aval: Aval) -> Aval:
    """Return the type whose dtype does not adapt to others."""
    return aval.strong()


def str_short(aval: Aval, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
    """Return the type as text: `f32[2,3]`, or `float32[2,3]`."""
    sizes = ",".join(map(str, aval.shape))
    return repr(aval).rstrip("*") if short_dtypes else f"{aval.dtype.name}[{sizes}]"


def update_weak_type(aval: Aval, weak_type: bool) -> Aval:
    """Return the type with another `weak_type`."""
    return aval.update(weak_type=weak_type)


class ManualAxisType(NamedTuple):
    """Axes along which values differ inside `shard_map`, and those along which they are parts of a
    sum.  Plait adds such parts at once, so the latter are always empty."""

    varying: frozenset[Any]
    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()


@property
def _mat(aval: Aval) -> ManualAxisType:
    """The axes along which values of this type differ inside `shard_map`."""
    return ManualAxisType(aval.vma)


# ---- variables -------------------------------------------------------------------------------

_equal, _unequal = Var.__eq__, Var.__ne__


def _same(x: Var, other: float) -> Any:
    """Compare variables of programs by identity, and values that are being traced by elements."""
    return x is other if _of_programs(x, other) else _equal(x, other)


def _differ(x: Var, other: Any) -> Any:
    """Return the opposite of `_same`."""
    return x is not other if _of_programs(x, other) else _unequal(x, other)


def _of_programs(*variables: Any) -> bool:
    """Return True for variables of programs that are complete, or that no stage made.

    A stage without a parent is one, too: rules are staged so, and compare values by elements.
    """
    return all(v.__class__ is Var and (v.by.closed or v.by is GROUND) for v in variables)


# ---- arrays ----------------------------------------------------------------------------------


@property
def _committed(x: Array) -> bool:
    """True if the user chose the array's devices."""
    return x.committed


@property
def _value(x: Array) -> Any:
    """The elements, as an array of numpy."""
    return x.numpy()


@property
def _device_buffer(x: Array) -> Array:
    """The only piece, as an array on one device.  Raises ValueError if there are several."""
    pieces = x.device_buffers
    if len(pieces) > 1:
        raise ValueError(
            f"expected an array in one piece, got {x.aval!r} in {len(pieces)} pieces: use "
            "`.device_buffers`"
        )
    return pieces[0]


_MEMBERS: dict[type, dict[str, Any]] = {
    Program: {
        "jaxpr": _open, "invars": _invars, "outvars": _outvars, "constvars": _constvars,
        "closed_jaxpr": _closed,
    },
    Staged: {"jaxpr": _staged},
    Eqn: {"source_info": _source_info},
    Aval: {
        "at_least_vspace": to_tangent_aval, "manual_axis_type": _mat, "mat": _mat,
        "str_short": str_short,
        "strip_weak_type": strip_weak_type, "to_cotangent_aval": to_tangent_aval,
        "to_ct_aval": to_tangent_aval, "to_tangent_aval": to_tangent_aval,
        "update_weak_type": update_weak_type,
    },
    Array: {
        "__module__": "jax", "_committed": _committed, "_value": _value,
        "device_buffer": _device_buffer,
    },
    Tracer: {"__module__": "jax", "_trace": LEVEL},
    Var: {"__module__": "jax"},
    Lifted: {"__module__": "jax"},
}  # fmt: skip
"""Class -> members.  The module of values is jax, by which libraries choose their functions."""


def add_jaxs_members() -> None:
    """Give Plait's classes the attributes that code written for JAX reads."""
    for cls, members in _MEMBERS.items():
        add_members(cls, members)
    setattr(Var, "__eq__", _same)  # noqa: B010 - the operators are those of all values
    setattr(Var, "__ne__", _differ)  # noqa: B010
