"""Methods, properties and protocols of arrays."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np


def main():
    x = jnp.arange(6.0).reshape(2, 3)
    assert x.shape == (2, 3) and x.ndim == 2 and x.size == 6 and x.nbytes == 24 and len(x) == 2
    assert isinstance(x, jax.Array) and not x.weak_type and jnp.asarray(1.0).weak_type in (0, 1)
    assert float(x[0, 1]) == 1.0 and bool(x[0, 1] == 1) and int(x[1, 1]) == 4
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and x[1, 2].item() == 5.0
    assert repr(jnp.arange(3)) == "Array([0, 1, 2], dtype=int32)" and f"{x[0, 1]:.1f}" == "1.0"
    assert np.asarray(x).dtype == np.float32 and [int(v) for v in jnp.arange(3)] == [0, 1, 2]
    assert jnp.from_dlpack(x).shape == (2, 3) and np.from_dlpack(x).shape == (2, 3)
    assert jax.eval_shape(lambda v: v * isinstance(v, (jax.Array, jnp.ndarray)), x).shape == (2, 3)
    host = np.full((2, 3), 2.0, np.float32)
    methods = [
        "sum",
        "mean",
        "std",
        "var",
        "prod",
        "max",
        "min",
        "argmax",
        "cumsum",
        "ravel",
        "transpose",
        "any",
        "all",
    ]
    return (
        {m: getattr(x, m)() for m in methods},
        (x.T @ x, x.mT, x.real, x.flatten(), x.round(), x.clip(1, 4), x.swapaxes(0, 1)),
        (x.repeat(2, axis=1), x.squeeze(), x.take(jnp.array([0, 5])), x.dot(x.T), x.sort(axis=0)),
        (host * x, x - host, host @ x.T, 2**x, 7 // (x + 1), -x, abs(x), x % 2, divmod(x, 2)),
        (x == 1, x != 1, x > 1, ~(x > 1), (x > 1) & (x < 4), (x > 1) | (x == 0)),
        np.sin(host) + jnp.sin(x),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        x.at[0, 0].set(9.0),
        x.astype(int),
        jnp.array(x, copy=True),
    )
