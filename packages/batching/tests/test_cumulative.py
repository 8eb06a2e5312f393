"""vmap of running sums and recurrences against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import pytest

from plait.ext.ops.cumulative import recurrence
from plait.lax import cumlogsumexp, cummax, cummin, cumprod, cumsum


@pytest.mark.parametrize("axis, reverse", [(0, False), (1, True)])
def test_every_axis(mapped, axis, reverse):
    mapped(
        lambda x: [
            cumsum(x, axis, reverse=reverse),
            cumprod(x, axis, reverse=reverse),
            cummax(x, axis, reverse=reverse),
            cummin(x, axis, reverse=reverse),
            cumlogsumexp(x, axis, reverse=reverse),
        ],
        (3, 4),
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence(mapped, reverse):
    mapped(lambda a, u: recurrence(a, u, axis=1, reverse=reverse), (2, 3), (2, 3))
