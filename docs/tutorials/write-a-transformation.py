# %% [markdown]
# # Write a transformation
#
# You will add a transformation to Plait: `bounds(f)(low, high)`, which returns an interval that
# holds `f(x)` for every `x` between `low` and `high`. It takes about 50 lines, and then works
# under and over `jit`, `grad`, `vmap`, loops and branches, without a line about any of them.

# %%
import matplotlib.pyplot as plt
import numpy as np

import plait
import plait.numpy as pnp
from plait import ext
from plait.ext.ops.elementwise import mul, sub

# %% [markdown]
# ## The idea
#
# Every array function is a chain of *primitives*: `exp`, `add`, `dot_general`. A transformation
# gives each of them another meaning. Here a value becomes two values, its lower and its upper
# end, and a
# *rule* says what a primitive does to them. The rules are in a table.

# %%
bound_rules = ext.RuleTable(
    "tutorial_bounds", signature="(lows, highs, **params)", doc="(low, high)"
)

# %% [markdown]
# ## Rules
#
# A rule for a *trait* serves all primitives that have it. `exp`, `tanh`, `add` and `reduce_sum`
# are `Increasing`; `neg` is `Decreasing`; `reshape` and `transpose` are `Structural`. `prim.bind`
# applies a primitive.


# %%
@bound_rules.rule(ext.Increasing, ext.Structural)
def _(prim, lows, highs, **params):
    return prim.bind(*lows, **params), prim.bind(*highs, **params)


@bound_rules.rule(ext.Decreasing)
def _(prim, lows, highs, **params):
    return prim.bind(*highs, **params), prim.bind(*lows, **params)


@bound_rules.rule(sub)
def _(lows, highs):
    return sub.bind(lows[0], highs[1]), sub.bind(highs[0], lows[1])


@bound_rules.rule(mul)
def _(lows, highs):
    p, q, r, s = (mul.bind(x, y) for x in (lows[0], highs[0]) for y in (lows[1], highs[1]))
    low = pnp.minimum(pnp.minimum(p, q), pnp.minimum(r, s))
    return low, pnp.maximum(pnp.maximum(p, q), pnp.maximum(r, s))


# %% [markdown]
# ## The carrier
#
# A *carrier* takes lifted values through a function. It names the parts of a lifted value and
# their types, says what a plain value is (both ends are the value), and calls rules.
#
# The two sets state what becomes of functions with rules of their own. The bounds of a derivative
# rule are not the derivative of the bounds, so `custom_vjp` rules are lost, with a warning.


# %%
class Bounds(ext.Carrier):
    """Carries the two ends of an interval."""

    rules, does = bound_rules, "bounds"
    commutes, loses = frozenset(("mapping",)), frozenset(("derivative",))

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, old, new):
        return parts[0], parts[0]

    def run(self, prim, rule, args, params):
        ends = [self.to_form(a, "ends") for a in args]
        low, high = rule([e[0] for e in ends], [e[1] for e in ends], **params)
        return self.lift(low.aval, "ends", (low, high))


# %% [markdown]
# ## The function for users
#
# It opens the carrier over the current interpreter, lifts the arguments, runs the function, and
# takes the result apart.


# %%
def bounds(f):
    def bounded(low, high):
        low, high = ext.as_value(low), ext.as_value(high)
        with ext.opened(Bounds(ext.current(), of=f)) as b:
            out = ext.as_value(f(b.lift(low.aval, "ends", (low, high))))
        return tuple(map(ext.materialise_at_ground, b.to_form(out, "ends")))

    return bounded


# %% [markdown]
# ## Use it


# %%
def wave(x):
    return pnp.tanh(3 * x) * pnp.exp(-x) - x


low, high = bounds(wave)(0.0, 1.0)
print("between", low, "and", high)

# %% [markdown]
# Intervals are pessimistic where `x` occurs twice. They get better on smaller pieces, and `vmap`
# does many pieces at once. Nothing above mentions `vmap`.

# %%
grid = np.linspace(-1, 1.5, 400)
figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), sharey=True)
for ax, pieces in zip(axes, (8, 32, 128)):
    edges = np.linspace(-1, 1.5, pieces + 1)
    lows, highs = plait.jit(plait.vmap(bounds(wave)))(edges[:-1], edges[1:])
    ax.fill_between(edges, [*lows, lows[-1]], [*highs, highs[-1]], step="post", alpha=0.4)
    ax.plot(grid, wave(grid), "k", linewidth=1)
    ax.set_title(f"{pieces} pieces")
    inside = plait.vmap(wave)((edges[1:] + edges[:-1]) / 2)
    assert bool(((lows <= inside) & (inside <= highs)).all())

# %% [markdown]
# ## It composes
#
# The width of the interval can be differentiated, and loops and branches are carried through.
# Core does that by the description of each operation that holds programs.


# %%
def width(radius):
    low, high = bounds(wave)(0.5 - radius, 0.5 + radius)
    return high - low


print("slope of the width:", plait.grad(width)(0.1))
h = 1e-2
assert abs(plait.grad(width)(0.1) - (width(0.1 + h) - width(0.1 - h)) / (2 * h)) < 1e-2


def looped(x):
    return plait.lax.fori_loop(0, 3, lambda _, y: pnp.tanh(y) + 0.1 * x, x)


print(bounds(plait.jit(looped))(0.0, 1.0))

# %% [markdown]
# ## Missing rules are errors
#
# No rule exists for `sin` yet. The error names the table, the primitive, and what to write.

# %%
try:
    bounds(pnp.sin)(0.0, 1.0)
except plait.errors.MissingRule as error:
    print(error)

# %% [markdown]
# ## Next
#
# * [Writing a transformation](../writing-a-transformation.md): the guide, up to a distribution that
#   others install; `python -m plait new-transform NAME DIR` begins one.
# * `examples/interval` is this transformation in full, with `sin` and matrix products.
# * [Rule tables and plugins](../plugins.md), [context and not tags](../explanation/context.md).
