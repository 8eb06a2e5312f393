"""Batching of Fourier transforms.

Invariant: the mapped axis comes first, where it is never transformed.
"""

from collections.abc import Sequence

from plait.ext.ops.fourier import fft_
from plait.ext.trace import Value

from ..interpreter import Batch, batching_rules


@batching_rules.rule(fft_)
def _(batch: Batch, xs: Sequence[Value], dims: list[int], /, **params):
    return fft_.bind(batch.front(xs[0], dims[0]), **params), 0
