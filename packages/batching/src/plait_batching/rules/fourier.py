"""Batching of Fourier transforms.

Invariant: the mapped axis comes first, where it is never transformed.
"""

from plait.ext.ops.fourier import fft_

from ..interpreter import batching_rules


@batching_rules.rule(fft_)
def _(batch, xs, dims, **params):
    return fft_.bind(batch.front(xs[0], dims[0]), **params), 0
