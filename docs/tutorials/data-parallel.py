# %% [markdown]
# # Data parallel on eight devices
#
# You will divide arrays over a mesh of devices, look at pictures of where the pieces are, and
# train one model on eight devices at once. No accelerator is needed: a CPU can stand for eight
# devices.

# %%
import matplotlib.pyplot as plt
import numpy as np

import plait
import plait.numpy as pnp

plait.config.cpu_devices = 8  # before the first array is made
print(plait.devices()[:2], "...")

# %% [markdown]
# ## A mesh, and how an array lies on it
#
# A *mesh* is an array of devices whose axes have names. A partition spec `P("rows", "cols")`
# names, for each axis of an array, the mesh axis that divides it. An axis without a name is not
# divided, and a mesh axis that is not named holds copies.

# %%
mesh = plait.make_mesh((4, 2), ("rows", "cols"))
P = plait.P
x = pnp.arange(64.0).reshape(8, 8)
specs = [P("rows", "cols"), P("rows"), P(None, "cols"), P(("rows", "cols"))]
placed = [plait.device_put(x, plait.NamedSharding(mesh, s)) for s in specs]


def picture(ax, array, title):
    """Draw the pieces of an array, with the numbers of the devices that hold each."""
    rows, cols = array.shape
    held = {}
    for shard in array.addressable_shards:
        (top, bottom, _), (left, right, _) = map(slice.indices, shard.index, array.shape)
        held.setdefault((top, bottom, left, right), []).append(shard.device.id)
    for (top, bottom, left, right), ids in held.items():
        ax.fill_between([left, right], top, bottom, color=f"C{ids[0]}", alpha=0.5)
        middle = (left + right) / 2, (top + bottom) / 2
        ax.text(*middle, ",".join(map(str, ids)), ha="center", va="center")
    ax.set(xlim=(0, cols), ylim=(rows, 0), title=title, xticks=[], yticks=[])


figure, axes = plt.subplots(1, 4, figsize=(10, 2.7))
for ax, array, spec in zip(axes, placed, specs):
    picture(ax, array, str(spec).replace("PartitionSpec", "P"))

# %% [markdown]
# Each rectangle is a piece, and the numbers are the devices that have it. `P("rows")` leaves the
# second mesh axis out: every piece has two copies.
#
# ## `jit` divides the work
#
# A jitted function computes where its arguments are. The compiler divides the work and adds the
# communication it needs. The result shows how it is divided.

# %%
product = plait.jit(lambda a, b: a @ b)(placed[1], placed[2])
print(product.sharding)
assert np.array_equal(product, np.asarray(x) @ np.asarray(x))

figure, ax = plt.subplots(figsize=(2.6, 2.7))
picture(ax, product, "rows times columns")

# %% [markdown]
# ## Train on shares of a batch
#
# In *data parallel* training, every device holds all parameters and a share of each batch. So the
# parameters are replicated, `P()`, and the batch is divided along its first axis.

# %%
data = plait.make_mesh((8,), ("data",))
everywhere = plait.NamedSharding(data, P())
shares = plait.NamedSharding(data, P("data"))

rng = np.random.default_rng(0)
truth = rng.normal(size=(16,)).astype("float32")
inputs = rng.normal(size=(4096, 16)).astype("float32")
outputs = np.tanh(inputs @ truth) + 0.1 * rng.normal(size=4096).astype("float32")
outputs = outputs.astype("float32")


def loss(w, x, y):
    return ((pnp.tanh(x @ w) - y) ** 2).mean()


@plait.jit
def step(w, x, y):
    value, slope = plait.value_and_grad(loss)(w, x, y)
    return w - 0.5 * slope, value


def train(w, place_batch):
    losses = []
    for i in range(0, len(inputs), 128):
        batch = inputs[i : i + 128], outputs[i : i + 128]
        w, value = step(w, *map(place_batch, batch))
        losses.append(float(value))
    return w, losses


start = np.zeros(16, "float32")
one, of_one = train(start, lambda a: a)
placed = plait.device_put(start, everywhere)
eight, of_eight = train(placed, lambda a: plait.device_put(a, shares))
print("largest difference of a weight:", abs(np.asarray(eight) - np.asarray(one)).max())
assert np.allclose(eight, one, atol=1e-5)

plt.plot(of_one, label="one device")
plt.plot(of_eight, ":", linewidth=3, label="eight devices")
plt.xlabel("step"), plt.ylabel("loss")
plt.legend()
plt.show()

# %% [markdown]
# `step` is the same function for both: nothing in it speaks of devices.
#
# ## Say it yourself: `shard_map`
#
# In `shard_map` you write the program of one device, which sees its piece; collectives such as
# `pmean` speak of the mesh axes by name. Use it where you want to divide the work otherwise than
# the compiler does.


# %%
def shared_step(w, x, y):
    def shared_loss(w):
        return plait.lax.pmean(loss(w, x, y), "data")

    value, slope = plait.value_and_grad(shared_loss)(w)
    return w - 0.5 * slope, value


by_hand = plait.jit(
    plait.shard_map(
        shared_step,
        mesh=data,
        in_specs=(P(), P("data"), P("data")),
        out_specs=P(),
    )
)
w, value = by_hand(start, inputs[:128], outputs[:128])
assert np.allclose(w, step(start, inputs[:128], outputs[:128])[0], atol=1e-6)

# %% [markdown]
# ## Data between devices
#
# The compiled program shows its communication: here one sum over all devices, of the loss and the
# gradient.

# %%
compiled = by_hand.lower(start, inputs[:128], outputs[:128]).compile().as_text()
print(*[line.strip()[:110] for line in compiled.splitlines() if "all-reduce(" in line], sep="\n")

# %% [markdown]
# ## Next
#
# * [Meshes and named axes](../meshes.md): the mesh in context, `xmap`, `pmap`.
# * [Explicit shardings](../explicit-shardings.md): types that hold how arrays lie.
# * [Several processes](../processes.md), and [compiling for devices elsewhere](../topologies.md).
