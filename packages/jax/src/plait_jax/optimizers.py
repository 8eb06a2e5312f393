"""JAX's small optimisers (`jax.example_libraries.optimizers`), for libraries that build on them.

An optimiser is three functions: `init(params)`, `update(i, grads, state)`, `params(state)`.  Each
is defined below for one array; `optimizer` applies it to the leaves of a tree.

The rules are those of the papers: Adam and AdaMax (Kingma and Ba 2015), Adagrad (Duchi, Hazan and
Singer 2011), SM3 (Anil, Gupta, Koren and Singer 2019).  Nesterov's momentum has the form of
Sutskever et al. 2013, RMSProp that of Hinton's lectures.

Invariant: states are trees of arrays; `i` counts from 0.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import plait.numpy as pnp
from plait import tree_util

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum",
    "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay",
    "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """The three functions of an optimiser."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The state of an optimiser: a tuple of arrays for each leaf of the parameters.

    Attributes:
      packed_state: these tuples.
      tree_def: the structure of the parameters.
      subtree_defs: the structure of each tuple.
    """

    packed_state: tuple[Any, ...]
    tree_def: Any
    subtree_defs: tuple[Any, ...]


tree_util.register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)


class JoinPoint:
    """A leaf of a tree of states: what an optimiser keeps for one leaf of the parameters.

    Attributes:
      subtree: the tree that `init` returned for it, or a later one of the same structure.
    """

    __slots__ = ("subtree",)

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __repr__(self) -> str:
        return f"JoinPoint({self.subtree!r})"

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return a state as a tree like the parameters, whose leaves are JoinPoints; for files."""
    return tree_util.tree_unflatten(opt_state.tree_def, list(map(JoinPoint, _states(opt_state))))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the state of a tree of JoinPoints: the inverse of `unpack_optimizer_state`.

    Raises TypeError for other leaves.
    """
    points, tree = tree_util.tree_flatten(marked_pytree)
    other = [p for p in points if not isinstance(p, JoinPoint)]
    if other:
        raise TypeError(
            f"pack_optimizer_state was given a tree with the leaf {other[0]!r}: give it one whose "
            "leaves are JoinPoints, as unpack_optimizer_state returns"
        )
    return _packed([p.subtree for p in points], tree)


def _packed(states: list[Any], tree: object) -> OptimizerState:
    """Return the state of the trees of all leaves, and of the structure of the parameters."""
    flat = [tree_util.tree_flatten(s) for s in states]
    return OptimizerState(tuple([tuple(f[0]) for f in flat]), tree, tuple([f[1] for f in flat]))


def _states(state: OptimizerState) -> list[Any]:
    """Return the tree of each leaf."""
    pairs = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree_util.tree_unflatten(kind, leaves) for kind, leaves in pairs]


def optimizer(maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Turn an optimiser of single arrays into one of trees; a decorator.

    `maker(...)` returns `init(x)`, `update(i, g, state)` and `params(state)` for one array.
    """

    @wraps(maker)
    def make(*args: Any, **kwargs: object) -> Optimizer:
        init, update, params = maker(*args, **kwargs)

        def init_all(x: Any) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(x)
            return _packed(list(map(init, leaves)), tree)

        def update_all(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_util.tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    f"the optimiser was made for parameters like {state.tree_def}, and was given "
                    f"gradients like {tree}"
                )
            pairs = zip(leaves, _states(state), strict=True)
            new = _packed([update(i, g, s) for g, s in pairs], tree)
            if new.subtree_defs != state.subtree_defs:
                before, after = next(
                    (a, b) for a, b in zip(state.subtree_defs, new.subtree_defs) if a != b
                )
                raise TypeError(
                    f"the update of an optimiser returned a state like {after}, and was given one "
                    f"like {before}: return the same tree as `init`"
                )
            return new

        def params_all(state: OptimizerState) -> Any:
            return tree_util.tree_unflatten(state.tree_def, list(map(params, _states(state))))

        return Optimizer(init_all, update_all, params_all)

    return make


# ---- schedules -------------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """Return a schedule with the same step at all times."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Return a schedule that multiplies the step by `decay_rate` every `decay_steps`."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Return a schedule that divides the step by 1 + `decay_rate` * i / `decay_steps`.

    With `staircase` the quotient i / `decay_steps` is rounded down.
    """
    part = (lambda i: pnp.floor(i / decay_steps)) if staircase else (lambda i: i / decay_steps)
    return lambda i: step_size / (1 + decay_rate * part(i))


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """Return a schedule from one step to another that follows a power."""

    def schedule(i: Any) -> Any:
        left = (1 - pnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Return a schedule with step `values[k]` after the first `k` boundaries."""
    edges, steps = pnp.array(boundaries), pnp.array(values)
    if edges.ndim != 1 or steps.shape != (edges.size + 1,):
        raise ValueError(
            f"piecewise_constant: {steps.shape} values for {edges.shape} boundaries; there must be "
            "one more"
        )
    return lambda i: steps[pnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return a number as a constant schedule, and a function as it is."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if pnp.ndim(scalar_or_schedule):
        raise TypeError(f"a step is a number or a function, not {scalar_or_schedule!r}")
    return constant(scalar_or_schedule)


# ---- norms of gradients ----------------------------------------------------------------------


def l2_norm(tree: object) -> Any:
    """Return the Euclidean norm of all leaves together."""
    return pnp.sqrt(sum(pnp.vdot(x, x) for x in tree_util.tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Scale gradients down to a norm of `max_norm`, if theirs is greater."""
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(
        lambda g: pnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree
    )


# ---- optimisers ------------------------------------------------------------------------------


def _inverse_root(x: Any) -> Any:
    """Return 1 / sqrt(x), and 0 where x is 0."""
    return pnp.where(x > 0, 1 / pnp.sqrt(pnp.where(x > 0, x, 1)), 0)


@optimizer
def sgd(step_size: Any) -> Any:
    """Step against the gradient."""
    step = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - step(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Step along a velocity that accumulates gradients."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * v, v

    return (lambda x: (x, pnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Step along the velocity that a second, equal gradient would give."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, v = state
        v = mass * v + g
        return x - step(i) * (mass * v + g), v

    return (lambda x: (x, pnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Divide each coordinate by the root of its summed squares, with momentum."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, m = state
        squares = squares + g * g
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - step(i) * m, squares, m

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, (lambda s: s[0])


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Divide each coordinate by the root of its mean square."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean = state
        mean = mean * gamma + g * g * (1 - gamma)
        return x - step(i) * g / pnp.sqrt(mean + eps), mean

    return (lambda x: (x, pnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """Use RMSProp with momentum."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, m = state
        mean = mean * gamma + g * g * (1 - gamma)
        m = momentum * m + step(i) * g / pnp.sqrt(mean + eps)
        return x - m, mean, m

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, (lambda s: s[0])


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Use running means of gradients and of their squares, corrected for bias."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * pnp.square(g) + b2 * v
        mean = m / (1 - pnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - pnp.asarray(b2, m.dtype) ** (i + 1))
        return x - step(i) * mean / (pnp.sqrt(square) + eps), m, v

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, (lambda s: s[0])


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Use Adam with the greatest gradient in place of the root mean square."""
    step = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, u = state
        m = (1 - b1) * g + b1 * m
        u = pnp.maximum(b2 * u, pnp.abs(g))
        bias = 1 - pnp.asarray(b1, m.dtype) ** (i + 1)
        return x - (step(i) / bias) * m / (u + eps), m, u

    return (lambda x: (x, pnp.zeros_like(x), pnp.zeros_like(x))), update, (lambda s: s[0])


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """Use Adagrad with the memory of one number per row of each axis."""
    step = make_schedule(step_size)

    def along(v: Any, axis: int, ndim: int) -> Any:
        return pnp.reshape(v, [-1 if i == axis else 1 for i in range(ndim)])

    def init(x: Any) -> Any:
        return x, pnp.zeros_like(x), [pnp.zeros(n, x.dtype) for n in x.shape or (1,)]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, rows = state
        if not x.ndim:
            bound = rows[0][0] + pnp.square(g)
            m = (1 - momentum) * (g * _inverse_root(bound)) + momentum * m
            return x - step(i) * m, m, [bound[None]]
        bound = along(rows[0], 0, x.ndim)
        for axis in range(1, x.ndim):
            bound = pnp.minimum(bound, along(rows[axis], axis, x.ndim))
        bound = bound + pnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(bound)) + momentum * m
        others = [tuple(a for a in range(x.ndim) if a != axis) for axis in range(x.ndim)]
        return x - step(i) * m, m, [bound.max(axes) for axes in others]

    return init, update, (lambda state: state[0])
