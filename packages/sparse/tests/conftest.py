"""Random sparse arrays in every layout, with duplicates and with padding that holds nan.

Invariant: the dense array of a sample is made by numpy, entry by entry, and not by Plait.
"""

import numpy as np
import pytest

from plait import sparse


def entries(rng, shape, n_batch, n_dense, nse=6, dtype=np.float32, unique=False):
    """Return (data, indices, dense array); a third of the entries is padding."""
    end = len(shape) - n_dense
    batch, sizes, inner = shape[:n_batch], shape[n_batch:end], shape[end:]
    data = rng.normal(size=(*batch, nse, *inner))
    data = np.round(data * 4).astype(dtype)
    indices = np.zeros((*batch, nse, len(sizes)), np.int32)
    dense = np.zeros(shape, dtype)
    for at in np.ndindex(batch):
        many = int(np.prod(sizes))
        flat = rng.choice(many, nse, replace=not unique or many < nse)
        indices[at] = np.stack(np.unravel_index(flat, sizes), -1).reshape(nse, len(sizes))
        padding = rng.random(nse) < 0.3
        indices[at][padding] = sizes
        if data.dtype.kind == "f":
            data[at][padding] = np.nan
        for k in range(nse):
            if not padding[k]:
                dense[(*at, *indices[at][k])] += data[at][k]
    return data, indices, dense


def made(seed, shape, n_batch=0, n_dense=0, unique=False, **options):
    """Return a BCOO and its dense array."""
    rng = np.random.default_rng(seed)
    data, indices, dense = entries(rng, shape, n_batch, n_dense, unique=unique, **options)
    return sparse.BCOO((data, indices), shape=shape, unique_indices=unique), dense


@pytest.fixture
def sample():
    """Makes a random sparse array, and its dense array."""
    return made
