"""Devices, placement, transfers, arrays made of pieces."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding


def main():
    cpus = jax.devices("cpu")
    assert jax.device_count() == len(jax.devices()) == len(jax.local_devices())
    assert jax.local_device_count() == jax.device_count("cpu")
    assert jax.process_index() == 0 and jax.process_count() == 1
    assert jax.default_backend() == "cpu" and cpus[0].platform == "cpu"
    x = jax.device_put(np.arange(4.0, dtype=np.float32), cpus[1])
    assert x.devices() == {cpus[1]}
    mesh = Mesh(np.array(cpus[:2]), ("i",))
    split = NamedSharding(mesh, PartitionSpec("i"))
    y = jax.device_put(np.arange(4.0, dtype=np.float32), split)
    assert len(y.addressable_shards) == 2 and not y.is_fully_replicated
    made = jax.make_array_from_callback(
        (4,), split, lambda index: np.arange(4, dtype="float32")[index]
    )
    pieces = [jax.device_put(np.full(2, i, np.float32), d) for i, d in enumerate(cpus[:2])]
    joined = jax.make_array_from_single_device_arrays((4,), split, pieces)
    local = jax.make_array_from_process_local_data(split, np.ones((4,), np.float32))
    one = SingleDeviceSharding(cpus[0])
    jax.copy_to_host_async(y)
    assert isinstance(jax.device_get(y), np.ndarray)
    assert any(a is y for a in jax.live_arrays())
    assert isinstance(y, jax.Array)
    return (
        x + 1,
        (y * 2).sum(),
        made,
        joined,
        local,
        jax.device_put(y, one),
        [np.asarray(s.data) for s in y.addressable_shards],
        jax.jit(jnp.cumsum, out_shardings=split)(y),
    )
