# %% [markdown]
# # First steps
#
# In ten minutes you will fit a curve to noisy data, with four functions of Plait: `jit`, `grad`,
# `vmap` and `plait.random`. Each cell below ran when this page was built.
#
# [Install Plait](../install.md) first; the plots need `matplotlib`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import plait
import plait.numpy as pnp

# %% [markdown]
# ## Arrays
#
# `plait.numpy` has numpy's functions, under numpy's names. Two things differ. Arrays are
# immutable: an update returns a new array. And without a dtype, numbers are `float32` or `int32`.

# %%
x = pnp.linspace(0.0, 1.0, 5)
y = x.at[0].set(10.0)
print(x, x.dtype)
print(y)

# %% [markdown]
# Every function takes numpy arrays and Python numbers, and `np.asarray(x)` or `float(x)` converts
# a result back.
#
# ## Data to fit
#
# Random numbers come from a *key*, which you pass along. The same key gives the same numbers, so
# a program repeats exactly; `split` makes new keys from one.

# %%
key = plait.random.key(0)
where, noise = plait.random.split(key)
xs = plait.random.uniform(where, (80,), minval=-3.0, maxval=3.0)
ys = pnp.sin(xs) + 0.15 * plait.random.normal(noise, (80,))
plt.plot(xs, ys, ".")
plt.show()

# %% [markdown]
# ## A model
#
# A model is a function of parameters. The parameters may be any tree of arrays: here a
# dictionary.


# %%
def predict(params, x):
    hidden = pnp.tanh(params["slope"] * x + params["shift"])
    return hidden @ params["out"]


def loss(params, xs, ys):
    predicted = plait.vmap(predict, in_axes=(None, 0))(params, xs)
    return pnp.mean((predicted - ys) ** 2)


kinds = plait.random.split(plait.random.key(1), 3)
params = {name: plait.random.normal(k, (16,)) for name, k in zip(["slope", "shift", "out"], kinds)}
print("loss before training:", loss(params, xs, ys))

# %% [markdown]
# `predict` takes one number `x`. `vmap` makes it take 80, without a loop: `in_axes=(None, 0)`
# says that all share the parameters, and that axis 0 of `xs` holds the examples.
#
# ## Gradients
#
# `grad(loss)` is a function too. It returns the derivative of the loss with respect to each
# parameter, in a tree of the same form.

# %%
slopes = plait.grad(loss)(params, xs, ys)
print({name: g.shape for name, g in slopes.items()})

# %% [markdown]
# ## Training
#
# `jit` compiles a function when it is first called, and runs the compiled program after that. The
# step below takes parameters and returns better ones: nothing is changed in place.

# %%
RATE, STEPS = 0.05, 2000


@plait.jit
def step(params):
    value, slopes = plait.value_and_grad(loss)(params, xs, ys)
    better = plait.tree.map(lambda p, g: p - RATE * g, params, slopes)
    return better, value


losses = []
for _ in range(STEPS):
    params, value = step(params)
    losses.append(value)
print("loss after training:", losses[-1])
assert losses[-1] < 0.05

# %%
grid = np.linspace(-3.5, 3.5, 200)
curve = plait.vmap(predict, in_axes=(None, 0))(params, grid)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.semilogy(losses)
left.set(xlabel="step", ylabel="loss")
right.plot(xs, ys, ".", alpha=0.5)
right.plot(grid, curve, label="fitted")
right.plot(grid, np.sin(grid), "--", label="truth")
right.legend()
plt.show()

# %% [markdown]
# ## The compiled program
#
# You can print what a transformation makes of a function. The lines are the operations of a
# *Program*; `f32[3]` is the type of a vector of three `float32`.
# [Reading a Program](../explanation/reading-programs.md) explains the rest.

# %%
print(plait.make_program(plait.grad(lambda x: pnp.sin(x) * x))(1.0))

# %% [markdown]
# ## Next
#
# * [Train a classifier](classifier.py) on images, in minibatches.
# * [How tracing works](../explanation/tracing.md): the one thing about `jit` that surprises people.
# * [Coming from PyTorch](../how-to/from-pytorch.md), [from JAX](../differences.md), [from
#   numpy](../how-to/from-numpy.md).
