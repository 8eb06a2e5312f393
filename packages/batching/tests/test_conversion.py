"""vmap of reading bits as another dtype, against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import numpy as np

from plait.lax import bitcast_convert_type


def test_every_axis(mapped):
    mapped(
        lambda x: [bitcast_convert_type(x, np.uint32), bitcast_convert_type(x, np.int8)],
        (2, 3),
        dtypes=np.float32,
    )
    mapped(lambda x: bitcast_convert_type(x, np.int64), (3, 2), dtypes=np.int32)
