"""Programs of quimb, its tensors being jax arrays.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
import quimb.tensor as qtn
from autoray import do

rng = np.random.default_rng(0)
A, B = (jnp.asarray(rng.normal(size=s).astype("float32")) for s in ((2, 3, 4), (4, 3, 2)))


def readme():
    tn = qtn.Tensor(A, inds="abc") & qtn.Tensor(B, inds="cbd")
    return (tn ^ all).transpose("a", "d").data


def norms_and_splits():
    t = qtn.Tensor(A, inds="abc")
    parts = t.split(["a"], absorb="both", cutoff=0.0)
    return t.norm(), (parts ^ all).transpose("a", "b", "c").data


def matrix_product_states():
    mps = qtn.MPS_rand_state(5, bond_dim=3, seed=1, dtype="float32")
    mps.apply_to_arrays(jnp.asarray)
    return mps.H @ mps, mps.overlap(mps)


def derivatives():
    f = lambda a: (
        (qtn.Tensor(a, inds="abc") & qtn.Tensor(B, inds="cbd"))
        .contract(output_inds="ad")
        .data.sum()
    )
    return jax.grad(f)(A), jax.jit(f)(A)


def dispatch():
    return do("tensordot", A, B, 1), do("linalg.svd", A[0])[1], do("einsum", "abc,cbd->ad", A, B)
