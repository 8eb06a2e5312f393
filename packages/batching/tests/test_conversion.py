"""vmap of reading bits as another dtype, against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import numpy as np

from plait._ops.conversion import bitcast


def test_every_axis(mapped):
    mapped(lambda x: [bitcast(x, np.uint32), bitcast(x, np.int8)], (2, 3), dtypes=np.float32)
    mapped(lambda x: bitcast(x, np.int64), (3, 2), dtypes=np.int32)
