"""The code base of an engineer: a language model with flax.nnx and optax, its checkpoints with
orbax, a recurrent network, custom derivatives, data parallel, and the small things in between.

Invariant: each returns numbers; nothing in it names the library that runs it.
"""

import dataclasses
import os
import tempfile
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from jax import lax, random, shard_map, tree_util
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class _Config:
    vocab: int = 65
    d: int = 32
    heads: int = 4
    layers: int = 2
    seq: int = 32
    batch: int = 8
    lr: float = 3e-3
    steps: int = 12


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _clipped(x, bound):
    return x


_clipped.defvjp(lambda x, bound: (x, None), lambda bound, _, ct: (jnp.clip(ct, -bound, bound),))


@jax.custom_jvp
def _softplus(x):
    return jnp.logaddexp(x, 0.0)


@_softplus.defjvp
def _softplus_jvp(primals, tangents):
    return _softplus(*primals), jax.nn.sigmoid(primals[0]) * tangents[0]


class _Block(nnx.Module):
    def __init__(self, cfg, *, rngs):
        self.ln1 = nnx.LayerNorm(cfg.d, rngs=rngs)
        self.attn = nnx.MultiHeadAttention(
            num_heads=cfg.heads, in_features=cfg.d, decode=False, rngs=rngs
        )
        self.ln2 = nnx.LayerNorm(cfg.d, rngs=rngs)
        self.up = nnx.Linear(cfg.d, 4 * cfg.d, rngs=rngs)
        self.down = nnx.Linear(4 * cfg.d, cfg.d, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attn(self.ln1(x), mask=mask)
        return x + self.drop(self.down(jax.nn.gelu(self.up(self.ln2(x)))))


class _Model(nnx.Module):
    def __init__(self, cfg, *, rngs):
        self.emb = nnx.Embed(cfg.vocab, cfg.d, rngs=rngs)
        self.pos = nnx.Param(0.02 * random.normal(rngs.params(), (cfg.seq, cfg.d)))
        self.blocks = nnx.List([_Block(cfg, rngs=rngs) for _ in range(cfg.layers)])
        self.norm = nnx.RMSNorm(cfg.d, rngs=rngs)
        self.head = nnx.Linear(cfg.d, cfg.vocab, use_bias=False, rngs=rngs)

    def __call__(self, tokens):
        x = self.emb(tokens) + self.pos[...]
        mask = nnx.make_causal_mask(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return _clipped(self.head(self.norm(x)), 1.0)


def _loss(model, batch):
    logits = model(batch["x"])
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"])
    return losses.mean(), {"acc": (logits.argmax(-1) == batch["y"]).mean()}


@nnx.jit
def _train_step(model, opt, metrics, batch):
    (loss, aux), grads = nnx.value_and_grad(_loss, has_aux=True)(model, batch)
    opt.update(model, grads)
    metrics.update(loss=loss, acc=aux["acc"])
    return loss


def _batches(cfg):
    rng = np.random.default_rng(0)
    for _ in range(cfg.steps):
        first = rng.integers(0, cfg.vocab, (cfg.batch, 1))
        tokens = (first + np.arange(cfg.seq + 1)) % cfg.vocab
        yield {"x": tokens[:, :-1].astype(np.int32), "y": tokens[:, 1:].astype(np.int32)}


def whole():
    """Train, save, restore, then everything else, as the script's main does."""
    model, losses, metrics = _trained(_Config())
    return losses, metrics, _saved(model), recurrent(), divided(), small_things()


def _trained(cfg):
    model = _Model(cfg, rngs=nnx.Rngs(0, dropout=1))
    schedule = optax.warmup_cosine_decay_schedule(0.0, cfg.lr, 3, cfg.steps)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=0.01))
    opt = nnx.Optimizer(model, tx, wrt=nnx.Param)
    metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), acc=nnx.metrics.Average("acc"))
    losses = [float(_train_step(model, opt, metrics, batch)) for batch in _batches(cfg)]
    return model, losses, [float(v) for _, v in sorted(metrics.compute().items())]


def _saved(model):
    """Return whether a checkpoint gives the model back, and a checkpoint that is managed."""
    with tempfile.TemporaryDirectory() as folder:
        _, state = nnx.split(model)
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(os.path.join(folder, "model"), state)
            checkpointer.wait_until_finished()
            abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
            back = checkpointer.restore(os.path.join(folder, "model"), abstract)
        equal = [
            bool(jnp.all(a == b))
            for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(back))
            if not jnp.issubdtype(a.dtype, jax.dtypes.prng_key)
        ]
        options = ocp.CheckpointManagerOptions(max_to_keep=2)
        manager = ocp.CheckpointManager(os.path.join(folder, "managed"), options=options)
        for step in range(3):
            manager.save(step, args=ocp.args.StandardSave({"w": jnp.arange(4.0) * step}))
        manager.wait_until_finished()
        there = ocp.args.StandardRestore({"w": jnp.zeros(4)})
        return float(all(equal)), manager.latest_step(), manager.restore(2, args=there)["w"]


@tree_util.register_dataclass
@dataclasses.dataclass
class _GRU:
    wz: jax.Array
    wr: jax.Array
    wh: jax.Array

    @classmethod
    def create(cls, key, n, h):
        glorot = jax.nn.initializers.glorot_uniform()
        return cls(*[glorot(k, (n + h, h), jnp.float32) for k in random.split(key, 3)])


class _Carry(NamedTuple):
    h: jax.Array
    t: jax.Array


def _gru(p, xs):
    def step(c, x):
        both = jnp.concatenate([x, c.h])
        z, r = jax.nn.sigmoid(both @ p.wz), jax.nn.sigmoid(both @ p.wr)
        n = jnp.tanh(jnp.concatenate([x, r * c.h]) @ p.wh)
        h = (1 - z) * n + z * c.h
        return _Carry(h, c.t + 1), h

    c, hs = lax.scan(step, _Carry(jnp.zeros(p.wh.shape[1]), jnp.int32(0)), xs)
    return hs, c.t


def recurrent():
    """A network by scan, mapped over examples, with and without recomputation."""
    k1, k2 = random.split(random.PRNGKey(0))
    p, xs = _GRU.create(k1, 3, 5), random.normal(k2, (7, 11, 3))

    def loss(p, xs):
        hs, t = jax.vmap(_gru, in_axes=(None, 0))(p, xs)
        return _softplus(hs).sum() / t[0]

    value, g = jax.jit(jax.value_and_grad(loss))(p, xs)
    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    again = jax.grad(jax.checkpoint(loss, policy=policy))(p, xs)
    return value, optax.global_norm(g), g.wz, again.wh


def divided():
    """Data parallel by shard_map, a constraint, and a donated argument."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    w, x = jnp.ones((4, 2)), random.normal(random.key(3), (16, 4))
    y = random.normal(random.key(4), (16, 2))

    @partial(shard_map, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()))
    def step(w, x, y):
        mean = lambda w: lax.pmean(jnp.mean((x @ w - y) ** 2), "data")
        return jax.value_and_grad(mean)(w)

    loss, g = jax.jit(step)(w, x, y)
    rows = NamedSharding(mesh, P("data", None))
    doubled = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, rows), donate_argnums=0)(
        jax.device_put(x, NamedSharding(mesh, P("data")))
    )
    return loss, g, doubled.sum()


def small_things():
    """Loops, branches, second derivatives, callbacks, trees, costs."""
    turned = lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 1.5), (0, 1.0))
    chosen = lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3.0)
    hessian = jax.hessian(lambda x: (x**3).sum())(jnp.arange(3.0)).diagonal()
    there = jax.pure_callback(
        lambda x: np.sin(x), jax.ShapeDtypeStruct((3,), jnp.float32), jnp.arange(3.0)
    )
    flat, _ = jax.flatten_util.ravel_pytree({"a": jnp.ones(2), "b": jnp.zeros((2, 2))})
    paths = [tree_util.keystr(k) for k, _ in tree_util.tree_leaves_with_path({"a": [1, 2]})]
    compiled = jax.jit(lambda x: x @ x).lower(jnp.ones((8, 8))).compile()
    with jax.profiler.TraceAnnotation("annotated"), jax.ensure_compile_time_eval():
        total = jnp.arange(3).sum()
    return turned, chosen, hessian, there, flat, paths, compiled(jnp.ones((8, 8))).sum(), total
