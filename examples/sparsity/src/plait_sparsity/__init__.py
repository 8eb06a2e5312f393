"""Which results depend on which arguments, and Jacobians of sparse functions in few passes.

    y, depends = sparsity(f)(x)          # depends[i, j]: y[i] may vary with x[j]
    jacobian(f, depends)(x)              # one derivative for each group of columns

Two columns of a Jacobian that share no row are computed in one pass: a banded Jacobian of any size
takes as many passes as its band is wide (Curtis, Powell, Reid, 1974).

Invariant: a mask marks at least what a result depends on, for all values of the arguments that
take the same branches.
"""

import os

import numpy as np

import plait
from plait import ext
from plait import numpy as pnp
from plait.ext.ops import elementwise as el
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.sorting import sort_

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller

sparsity_rules = ext.RuleTable(
    "sparsity",
    signature="(operands, masks, **params)",
    doc="the mask of the result, whose last axis has the elements of the argument",
)


class Depends(ext.Carrier):
    """Carries a mask beside each value: the elements of the argument that each depends on."""

    rules, does, fields = sparsity_rules, "sparsity", ("count",)
    commutes = frozenset(("derivative", "mapping"))  # the values stay as they are

    def whole(self, aval):
        return "masked"

    def part_avals(self, aval, form):
        return aval, aval.with_shape((*aval.shape, self.count)).with_dtype(np.bool_)

    def coerce(self, aval, parts, f, g):
        return parts[0], pnp.zeros((*aval.shape, self.count), bool)

    def run(self, prim, rule, args, params):
        operands = [self.split(a)[1][0] for a in args]
        result = prim.bind(*operands, **params)
        if ext.Discrete in prim.traits:  # a comparison or an index has no derivative
            return result
        masks = rule(operands, [self.to_form(a, "masked")[1] for a in args], **params)
        if not prim.many:
            return self.marked(result, masks)
        return [self.marked(y, m) for y, m in zip(result, masks, strict=True)]

    def marked(self, result, mask):
        """Return a result with its mask, if it is a number with derivatives."""
        return self.lift(result.aval, "masked", (result, mask)) if result.aval.inexact else result


def union(masks):
    """The mask of what depends on all that these mark."""
    first, *others = masks
    for mask in others:
        first = first | mask
    return first


def each(f, masks):
    """`f` of masks, for each element of the argument."""
    return plait.vmap(f, -1, -1)(*masks)


@sparsity_rules.rule(ext.Elementwise)
def _(prim, operands, masks, /, **params):
    return [union(masks)] if prim.many else union(masks)


@sparsity_rules.rule(el.select)
def _(operands, masks):
    chosen = pnp.broadcast_to(operands[0][..., None], masks[1].shape)
    return el.select.bind(chosen, *masks[1:])


@sparsity_rules.rule(ext.Structural)
def _(prim, operands, masks, /, **params):
    return each(lambda *ms: prim.bind(*ms, **params), masks)


@sparsity_rules.rule(ext.Reduction)
def _(prim, operands, masks, /, *, axes, **params):
    return masks[0].any(axes)


@sparsity_rules.rule(ext.Cumulative)
def _(prim, operands, masks, axis, reverse):
    counts = pnp.flip(masks[0], axis) if reverse else masks[0]
    counts = pnp.cumsum(counts.astype(pnp.int32), axis)
    return pnp.flip(counts > 0, axis) if reverse else counts > 0


@sparsity_rules.rule(ext.Indexing)
def _(prim, operands, masks, /, **params):
    """Read and write masks in place of numbers; indices are used as they are."""

    def moved(*ms):
        inexact = [x.aval.inexact for x in operands]
        xs = [m.astype(x.dtype) if k else x for m, x, k in zip(ms, operands, inexact)]
        return prim.bind(*xs, **params) != 0

    return each(moved, masks)


@sparsity_rules.rule(sort_)
def _(operands, masks, /, **params):
    """Which element a result was depends on the values: the mask is that of all along the axis."""
    spread = [pnp.broadcast_to(m.any(params["axis"], keepdims=True), m.shape) for m in masks]
    return [union(spread)] * len(masks)


@sparsity_rules.rule(dot_general)
def _(operands, masks, /, **params):
    ones = [pnp.ones_like(x) for x in operands]

    def touched(*ms):
        a, b = (m.astype(x.dtype) for m, x in zip(ms, operands))
        found = dot_general.bind(a, ones[1], **params) + dot_general.bind(ones[0], b, **params)
        return found > 0

    return each(touched, masks)


def sparsity(f):
    """A function of an array that returns (its result, mask): the mask has the axes of the result,
    then those of the argument."""

    def masked(x):
        x = ext.as_value(x)
        count = x.size
        eye = pnp.eye(count, dtype=bool).reshape(*x.shape, count)
        with ext.opened(Depends(ext.current(), count, of=f)) as carrier:
            out = ext.as_value(f(carrier.lift(x.aval, "masked", (x, eye))))
            y, mask = map(ext.materialise_at_ground, carrier.to_form(out, "masked"))
        return y, mask.reshape(*y.shape, *x.shape)

    return masked


def colours(depends):
    """A number for each column: columns that share a row have different ones."""
    taken = np.zeros((0, depends.shape[0]), bool)  # by the rows that each colour fills
    found = []
    for column in depends.T:
        free = [k for k, rows in enumerate(taken) if not (rows & column).any()]
        taken = taken if free else np.vstack([taken, np.zeros_like(column)])
        found.append(free[0] if free else len(taken) - 1)
        taken[found[-1]] |= column
    return np.array(found, np.int32)


def jacobian(f, depends):
    """The Jacobian of a function of a vector, given the mask of what its results depend on.

    Args:
      f: a function from a vector to a vector.
      depends: an array of numpy's, as `sparsity` returns it.

    Returns:
      A function of `x` that returns the matrix, from one derivative for each of its colours.
    """
    depends = np.asarray(depends)
    colour = colours(depends)
    seeds = (colour == np.arange(colour.max(initial=-1) + 1)[:, None]).astype(np.float32)

    def of(x):
        x = pnp.asarray(x)
        passes = plait.vmap(lambda t: plait.jvp(f, (x,), (t,))[1])(pnp.asarray(seeds, x.dtype))
        return pnp.where(depends, passes[colour].T, 0)

    return of
