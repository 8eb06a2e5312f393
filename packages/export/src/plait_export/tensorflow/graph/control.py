"""Branches, loops, calls and custom calls.

Invariant: values that no turn of a loop changes stay outside the loop; a failing size check raises
an error with its text and sizes.
"""

import re
from collections.abc import Sequence
from typing import Any

from plait.ext.errors import ShapeError
from plait.ext.lower import ASKED
from plait.ext.ops.random import DYNAMIC_GENERATOR

from ...portable import ASSERTION
from ...reader.table import ACTING, OF_SEVERAL_DEVICES, UNSEEN_STATE
from ..library import tf
from .elementwise import in_total_order
from .table import REFUSED, graphs, refuses

# ---- calls ---------------------------------------------------------------------------------


@graphs("func.call")
def _(walk, op, xs):
    return walk.call(op.attributes["callee"], xs)


@graphs("stablehlo.composite")
def _(walk, op, xs):
    """Convert `chlo.top_k` to TensorFlow's, and expand any other composite operation."""
    said = op.attributes.get("composite_attributes", {})
    if op.attributes.get("name") == "chlo.top_k" and set(said) <= {"k", "largest"}:
        if said.get("largest", True) and (xs[0].dtype.is_floating or xs[0].dtype == tf.int32):
            return _greatest(xs[0], said["k"])
    return walk.call(op.attributes["decomposition"], xs)


def _greatest(x: Any, k: int) -> list:
    """Return (the k greatest elements of each row, their positions), in the order of all floats."""
    wide = tf.cast(x, tf.float32) if x.dtype.is_floating and x.dtype.size < 4 else x
    key = in_total_order(wide) if wide.dtype.is_floating else wide
    order = tf.math.top_k(key, k).indices
    return [tf.gather(x, order, batch_dims=x.shape.rank - 1), order]


# ---- branches ------------------------------------------------------------------------------


@graphs("stablehlo.case")
def _(walk, op, xs):
    """Convert a choice by index; an index out of range selects the last branch."""
    known, last = tf.get_static_value(xs[0]), len(op.regions) - 1
    if known is not None:
        return walk.block(op.regions[int(known) if 0 <= known <= last else last], [])
    branches = [lambda b=b: walk.block(b, []) for b in op.regions]
    if last == 1:  # More consumers of graphs support `cond` than `switch_case`.
        return _listed(tf.cond(tf.equal(xs[0], 0), *branches))
    # `switch_case` selects the last branch for an index out of range, too.
    return _listed(tf.switch_case(xs[0], branches))


@graphs("stablehlo.if")
def _(walk, op, xs):
    then, other = op.regions
    known = tf.get_static_value(xs[0])
    if known is not None:
        return walk.block(then if known else other, [])
    return _listed(tf.cond(xs[0], lambda: walk.block(then, []), lambda: walk.block(other, [])))


def _listed(found: Any) -> list:
    return list(found) if isinstance(found, list | tuple) else [found]


# ---- loops ---------------------------------------------------------------------------------


@graphs("stablehlo.while")
def _(walk, op, xs):
    test, body = op.regions
    moving = [i for i, (n, y) in enumerate(zip(body.arguments, body.returned)) if n != y]

    def whole(state: Sequence[Any]) -> list:
        found = list(xs)
        for i, x in zip(moving, state, strict=True):
            found[i] = x
        return found

    def turn(*state: Any) -> list:
        new = walk.block(body, whole(state))
        return [new[i] for i in moving]

    if not moving:
        raise walk.unsaid(f"{op.name} changes nothing, and ends at once or never")
    shapes = [tf.TensorShape(op.types[i].shape) for i in moving]
    found = tf.while_loop(
        lambda *state: walk.block(test, whole(state))[0], turn, [xs[i] for i in moving],
        shape_invariants=shapes,
    )  # fmt: skip
    return whole(_listed(found))


# ---- outside of StableHLO ------------------------------------------------------------------


@graphs("stablehlo.custom_call")
def _(walk, op, xs):
    name = op.attributes["call_target_name"]
    if name == ASSERTION:
        return _check(walk, op, xs)
    if name == ASKED:
        return tf.constant(0)
    if name == DYNAMIC_GENERATOR:
        raise walk.unsaid(f"{name}: {REFUSED['stablehlo.rng_bit_generator']}")
    raise walk.unsaid(f"it calls {name}, a function outside StableHLO")


def _check(walk: Any, op: Any, xs: Sequence[Any]) -> list:
    """Convert a size check: evaluate it now if the sizes are known, else when the graph runs.

    Raises ShapeError if it fails now.
    """
    text = str(op.attributes.get("error_message", "sizes do not fit"))
    text = re.sub(r"argument (\d+)", lambda m: walk.paths[int(m[1])], text)
    holds, *sizes = [tf.get_static_value(x) for x in xs]
    pieces: list[Any] = re.split(r"\{(\d+)\}", text)
    pieces[1::2] = [xs[1 + int(i)] if sizes[int(i)] is None else str(sizes[int(i)])
                    for i in pieces[1::2]]  # fmt: skip
    if holds is None:
        shown = [p for p in pieces if p.__class__ is not str or p]
        check = tf.debugging.Assert(xs[0], [f"{walk.name}:", *shown])
        walk.checks += [] if check is None else [check]
    elif not holds:
        raise ShapeError(
            f"{walk.name}: {''.join(map(str, pieces))}", fix="pass tensors whose sizes fit together"
        )
    return []


@graphs("sdy.sharding_constraint")
def _(walk: object, op: object, xs):
    """Drop a sharding constraint, which has no effect on one device."""
    return xs[0]


refuses("the middle of a block is no end", "stablehlo.return", "func.return")
refuses(
    "its generators have no words there: draw with keys of the default implementation",
    "stablehlo.rng_bit_generator",
)
refuses("it draws from a state that nobody sees", UNSEEN_STATE)
refuses("it is for several devices, and a graph is for one", *OF_SEVERAL_DEVICES)
refuses("it acts on the world", *ACTING)
