"""Programs of orbax-checkpoint: the README's, trees of all kinds, steps, parts.

Invariant: each returns numbers.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp


def _tree():
    return {
        "w": jnp.arange(6.0).reshape(2, 3),
        "n": {"b": jnp.ones(3, jnp.bfloat16), "step": jnp.array(7)},
    }


def _leaves(tree):
    return [np.asarray(x).astype("float64") for x in jax.tree_util.tree_leaves(tree)]


def _folder():
    return Path(tempfile.mkdtemp())


def readme():
    path = _folder() / "checkpoint"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, _tree())
        checkpointer.wait_until_finished()
        return _leaves(checkpointer.restore(path))


def into_a_template():
    path = _folder() / "checkpoint"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, _tree())
        checkpointer.wait_until_finished()
        like = jax.tree.map(ocp.utils.to_shape_dtype_struct, _tree())
        back = checkpointer.restore(path, like)
    return _leaves(back), back["n"]["b"].dtype.name, isinstance(back["w"], jax.Array)


def another_dtype():
    path = _folder() / "checkpoint"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, {"w": jnp.arange(3.0) / 3})
        checkpointer.wait_until_finished()
        back = checkpointer.restore(path, {"w": jax.ShapeDtypeStruct((3,), jnp.float16)})
    return _leaves(back), back["w"].dtype.name


def steps():
    options = ocp.CheckpointManagerOptions(max_to_keep=2, create=True)
    with ocp.CheckpointManager(_folder(), options=options) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.StandardSave({"x": jnp.ones(2) * step}))
        manager.wait_until_finished()
        back = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore())
        return manager.all_steps(), _leaves(back)


def best():
    options = ocp.CheckpointManagerOptions(
        max_to_keep=1, best_fn=lambda m: m["loss"], best_mode="min"
    )
    with ocp.CheckpointManager(_folder(), options=options) as manager:
        for step, loss in enumerate([3.0, 1.0, 2.0]):
            state = ocp.args.StandardSave({"x": jnp.ones(2) * step})
            manager.save(step, args=state, metrics={"loss": loss})
        manager.wait_until_finished()
        return manager.best_step(), manager.all_steps()


def several_items():
    with ocp.CheckpointManager(_folder()) as manager:
        args = ocp.args.Composite(
            state=ocp.args.StandardSave(_tree()), extra=ocp.args.JsonSave({"epoch": 3})
        )
        manager.save(0, args=args)
        manager.wait_until_finished()
        back = manager.restore(
            0,
            args=ocp.args.Composite(
                state=ocp.args.StandardRestore(_tree()), extra=ocp.args.JsonRestore()
            ),
        )
    return _leaves(back["state"]), back["extra"]["epoch"]


def of_trees():
    path = _folder() / "checkpoint"
    checkpointer = ocp.PyTreeCheckpointer()
    checkpointer.save(path, {"a": np.arange(3), "b": [1, 2.5], "c": jnp.ones(2)})
    return _leaves(checkpointer.restore(path))


def of_training():
    import optax

    tx = optax.adam(0.1)
    params = {"w": jnp.ones(3)}
    state = tx.init(params)
    step = jax.jit(lambda p, s: tx.update(jax.grad(lambda p: (p["w"] ** 3).sum())(p), s, p))
    for _ in range(2):
        updates, state = step(params, state)
        params = optax.apply_updates(params, updates)
    path = _folder() / "checkpoint"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, {"params": params, "state": state})
        checkpointer.wait_until_finished()
        back = checkpointer.restore(path, {"params": params, "state": state})
    updates, _ = step(back["params"], back["state"])
    return _leaves(back), _leaves(updates)


def of_nnx():
    from flax import nnx

    path = _folder() / "checkpoint"
    model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    graphdef, state = nnx.split(model)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, state)
        checkpointer.wait_until_finished()
        empty = nnx.eval_shape(lambda: nnx.Linear(3, 2, rngs=nnx.Rngs(1)))
        back = checkpointer.restore(path, nnx.split(empty)[1])
    return nnx.merge(graphdef, back)(jnp.ones((1, 3)))


def keys():
    path = _folder() / "checkpoint"
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, {"key": jax.random.key(5)})
        checkpointer.wait_until_finished()
        back = checkpointer.restore(path, {"key": jax.random.key(0)})
    return jax.random.key_data(back["key"])
