"""Policies: which values a checkpointed function keeps, and which it computes again.

A policy is called for every operation of the forward pass: `policy(prim, *avals, **params)`.  It
returns True to keep the result, False to compute it again, or an `Offload` to keep it in another
memory.  Any function will do; the policies here are `plait.checkpoint_policies`.

    plait.checkpoint(f, policy=plait.checkpoint_policies.dots_saveable)
    plait.checkpoint(f, policy=lambda prim, *avals, **params: prim.name == "core.cos")

Invariant: policies of this module that were made in the same way are equal, so that programs
derived for one are found again for the other.  Each has a text form.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from plait.ext.errors import ArgumentError
from plait.ext.ir import Primitive, primitive
from plait.ext.lower import IrValue
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.convolution import conv_general
from plait.ext.ops.shape import materialise_at_ground
from plait.ext.rules import Elementwise, Increasing, Linear, ZeroPreserving, lower_rules
from plait.ext.trace import Value
from plait.ext.tree import flatten
from plait.ext.types import Aval
from plait.ext.values import as_value

from ..forward import jvp_rules
from ..transpose import transpose_rules

if TYPE_CHECKING:
    from plait.ext.lower import Emitter

T = TypeVar("T")

__all__ = [
    "Offload", "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable",
    "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
    "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
    "save_only_these_names",
]  # fmt: skip

# ---- names of values -----------------------------------------------------------------------


@primitive("autodiff.name", traits=(Elementwise, ZeroPreserving, Increasing, Linear))
def name_(x: Aval, *, name: str) -> Aval:
    """Return the same value under a name that checkpoint policies can refer to."""
    return x


@lower_rules.rule(name_)
def _(e: "Emitter", xs: list[IrValue], ins: list[Aval], outs: list[Aval], name: str):
    return xs[0]


def passed_by(prim: Primitive) -> None:
    """Register the derivatives of an operation that returns its operand unchanged."""

    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: list[Value], /, **params: object):
        return prim.bind(*xs, **params), ts[0]

    @transpose_rules.rule(prim)
    def _(ct: Value, x: object, /, **params: object):
        return (ct,)


passed_by(name_)


def checkpoint_name(x: T, name: str) -> T:
    """Return `x`, a tree of arrays, under a name that policies of `checkpoint` can refer to.

    Use the result, not `x`: the name has effect only for values computed from the result.

    Raises TypeRule if `name` is not a string.

    >>> import plait
    >>> f = lambda x: plait.lax.sin(plait.checkpoint_name(plait.lax.sin(x), "inner"))
    >>> keep = plait.checkpoint_policies.save_only_these_names("inner")
    >>> plait.grad(plait.checkpoint(f, policy=keep))(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"the name given to checkpoint_name is {name!r}", fix="write checkpoint_name(x, 'name')"
        )
    leaves, tree = flatten(x)
    named = [name_.bind(as_value(v), name=name) for v in leaves]
    return tree.unflatten([materialise_at_ground(v) for v in named])


# ---- policies ------------------------------------------------------------------------------


class Offload(NamedTuple):
    """A policy's answer: keep the value in the memory `dst`, move it back to `src` for use.

    On platforms with one memory, such as the CPU, this is the same as keeping.
    """

    src: str
    dst: str


class Saveable(NamedTuple):
    """A policy of the given `kind`; `names` are the names that it keeps, or does not keep."""

    kind: str
    names: tuple[str, ...] = ()
    offloaded: tuple[str, ...] = ()
    to: Offload | None = None

    def __call__(self, prim: Primitive, /, *avals: Aval, **params: object) -> bool | Offload:
        return _KINDS[self.kind](self, prim, params)

    def __repr__(self) -> str:
        given = [*map(repr, (*self.names, *self.offloaded))]
        if self.to is not None:
            given.append(f"{self.to.src} -> {self.to.dst}")
        return f"{self.kind}({', '.join(given)})" if given else self.kind


class Either(NamedTuple):
    """A policy that keeps the values that either of two policies keeps."""

    first: Any
    second: Any

    def __call__(self, prim: Primitive, /, *avals: Aval, **params: object) -> bool | Offload:
        return self.first(prim, *avals, **params) or self.second(prim, *avals, **params)


def _is_dot(prim: Primitive, params: dict[str, Any]) -> bool:
    return prim is dot_general and not any(params["shared"])


def _names(policy: Saveable, prim: Primitive, params: dict[str, Any]) -> bool | Offload:
    if prim is not name_:
        return False
    if policy.to is not None and params["name"] in policy.offloaded:
        return policy.to
    return params["name"] in policy.names


_KINDS: dict[str, Callable[[Saveable, Any, dict[str, Any]], bool | Offload]] = {
    "everything_saveable": lambda policy, prim, params: True,
    "nothing_saveable": lambda policy, prim, params: False,
    "dots_saveable": lambda policy, prim, params: prim is dot_general or prim is conv_general,
    "dots_with_no_batch_dims_saveable": lambda policy, prim, params: _is_dot(prim, params),
    "offload_dot_with_no_batch_dims": lambda policy, prim, params: (
        policy.to or False if _is_dot(prim, params) else False
    ),
    "save_only_these_names": _names,
    "save_and_offload_only_these_names": _names,
    "save_anything_except_these_names": lambda policy, prim, params: (
        prim is not name_ or params["name"] not in policy.names
    ),
    "save_any_names_but_these": lambda policy, prim, params: (
        prim is name_ and params["name"] not in policy.names
    ),
}

everything_saveable = Saveable("everything_saveable")
"""Keep all values that the backward pass needs, as without checkpoint."""
nothing_saveable = Saveable("nothing_saveable")
"""Keep the arguments alone, as checkpoint does without a policy."""
dots_saveable = checkpoint_dots = Saveable("dots_saveable")
"""Keep results of contractions and convolutions."""
dots_with_no_batch_dims_saveable = Saveable("dots_with_no_batch_dims_saveable")
"""Keep results of contractions without shared axes (a layer's product with its weights)."""
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def _strings(names: Sequence[Any], what: str) -> tuple[str, ...]:
    for n in names:
        if not isinstance(n, str):
            raise ArgumentError(f"{what} is for names, not {n!r}", fix=f"write {what}('a', 'b')")
    return tuple(names)


def save_only_these_names(*names: str) -> Saveable:
    """Keep the values that `checkpoint_name` gave one of these names."""
    return Saveable("save_only_these_names", _strings(names, "save_only_these_names"))


def save_any_names_but_these(*names: str) -> Saveable:
    """Keep all named values except those with one of these names."""
    return Saveable("save_any_names_but_these", _strings(names, "save_any_names_but_these"))


def save_anything_except_these_names(*names: str) -> Saveable:
    """Keep all values, named or not, except those with one of these names."""
    what = "save_anything_except_these_names"
    return Saveable(what, _strings(names, what))


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Saveable:
    """Keep values with some names where they are, and those with others in memory `offload_dst`.

    Raises TypeRule if a name is in both lists.
    """
    what = "save_and_offload_only_these_names"
    kept = _strings(names_which_can_be_saved, what)
    moved = _strings(names_which_can_be_offloaded, what)
    if set(kept) & set(moved):
        raise ArgumentError(
            f"{what}: {', '.join(sorted(set(kept) & set(moved)))} cannot be both saved and "
            "offloaded",
            fix="name it in one of the lists",
        )
    return Saveable(what, kept, moved, Offload(offload_src, offload_dst))


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Saveable:
    """Keep results of contractions without shared axes in the memory `offload_dst`."""
    return Saveable("offload_dot_with_no_batch_dims", to=Offload(offload_src, offload_dst))


def save_from_both_policies(
    policy_1: "Saveable | int", policy_2: "Saveable | Callable[..., Any] | None"
) -> Either:
    """Keep the values that either of two policies keeps.

    Raises TypeRule if one of them is not a function.
    """
    for policy in (policy_1, policy_2):
        if not callable(policy):
            raise ArgumentError(
                f"save_from_both_policies is for policies, not {policy!r}",
                fix="choose one of plait.checkpoint_policies, or write a function",
            )
    return Either(policy_1, policy_2)
