"""Derivatives of functions of arrays at ties, singular matrices and infinities.

The values are those that JAX 0.10.2 gives, recorded, but for those that `DIFFERS` names, where they
are wrong or arbitrary; docs/edges.md has the table that users see.

Invariant: numpy evaluates the derivatives, so what is judged are the rules; what the compiler makes
of infinities is judged with the primitives.
"""

import numpy as np
import pytest

import plait
from plait import lax, nn
from plait import numpy as jnp

la = jnp.linalg
INF, NAN = float("inf"), float("nan")
A = np.float32
EYE, NOTHING = np.eye(2), np.zeros((2, 2))
grad = plait.grad

CASES = {
    "argmax ties": (lambda x: jnp.argmax(x) * 1.0, (A([1, 1]),), ([0.0, 0.0],)),
    "max nan again": (jnp.max, (A([1, NAN, 2]),), ([NAN, NAN, NAN],)),
    "max -inf": (jnp.max, (A([-INF, -INF]),), ([0.5, 0.5],)),
    "reduce max 2d": (lambda x: jnp.max(x, axis=0).sum(), (A([[1, 2], [1, 0]]),), ([[0.5, 1.0],
        [0.5, 0.0]],)),
    "amin inf": (jnp.min, (A([INF, INF]),), ([0.5, 0.5],)),
    "top_k ties": (lambda x: (lax.top_k(x, 2)[0] * A([1, 10])).sum(), (A([2, 2, 2]),), ([1.0, 10.0,
        0.0],)),
    "argsort": (lambda x: jnp.argsort(x).sum() * 1.0, (A([2, 2, 2]),), ([0.0, 0.0, 0.0],)),
    "cummin ties": (lambda x: lax.cummin(x).sum(), (A([1, 1, 0]),), ([1.5, 0.5, 1.0],)),
    "cummax all ties": (lambda x: lax.cummax(x).sum(), (A([1, 1, 1]),), ([1.83333, 0.83333,
        0.33333],)),
    "cummax rev": (lambda x: lax.cummax(x, reverse=True).sum(), (A([1, 1, 0]),), ([0.5, 1.5,
        1.0],)),
    "cumprod 2 zeros": (lambda x: jnp.cumprod(x).sum(), (A([0, 3, 0]),), ([4.0, 0.0, 0.0],)),
    "cumprod first 0": (lambda x: jnp.cumprod(x).sum(), (A([0, 3, 2]),), ([10.0, 0.0, 0.0],)),
    "prod 3 zeros": (jnp.prod, (A([0, 0, 0]),), ([0.0, 0.0, 0.0],)),
    "norm la 0": (la.norm, (A([0, 0]),), ([NAN, NAN],)),
    "norm 1 at 0": (lambda x: la.norm(x, 1), (A([0, 0]),), ([1.0, 1.0],)),
    "norm inf ties": (lambda x: la.norm(x, jnp.inf), (A([1, -1]),), ([0.5, -0.5],)),
    "norm 3 at 0": (lambda x: la.norm(x, 3), (A([0, 0]),), ([NAN, NAN],)),
    "norm nuc eq": (lambda x: la.norm(x, "nuc"), (EYE,), ([[1.0, 0.0], [0.0, 1.0]],)),
    "norm fro": (lambda x: la.norm(x), (NOTHING,), ([[NAN, NAN], [NAN, NAN]],)),
    "norm 2 eq": (lambda x: la.norm(x, 2), (EYE,), ([[0.5, 0.0], [0.0, 0.5]],)),
    "std const again": (jnp.std, (A([2, 2, 2]),), ([NAN, NAN, NAN],)),
    "std one": (jnp.std, (A([2]),), ([NAN],)),
    "var one": (jnp.var, (A([2]),), ([0.0],)),
    "std ddof": (lambda x: jnp.std(x, ddof=1), (A([2, 2]),), ([NAN, NAN],)),
    "eigh eq": (lambda x: la.eigh(x)[1].sum(), (EYE,), ([[NAN, NAN], [NAN, NAN]],)),
    "eigvalsh eq": (lambda x: (la.eigvalsh(x) * A([1, 2])).sum(), (EYE,), ([[1.0, 0.0], [0.0,
        2.0]],)),
    "eigvalsh eq sum": (lambda x: la.eigvalsh(x).sum(), (EYE,), ([[1.0, 0.0], [0.0, 1.0]],)),
    "svd eq": (lambda x: la.svd(x)[0].sum(), (EYE,), ([[NAN, NAN], [NAN, NAN]],)),
    "svd vals eq": (lambda x: (la.svd(x, compute_uv=False) * A([1, 2])).sum(), (EYE,), ([[1.0, 0.0],
        [0.0, 2.0]],)),
    "svd vals zero": (lambda x: la.svd(x, compute_uv=False).sum(), (NOTHING,), ([[1.0, 0.0], [0.0,
        1.0]],)),
    "det sing": (la.det, (A([[1, 2], [2, 4]]),), ([[4.0, -2.0], [-2.0, 1.0]],)),
    "det zero": (la.det, (NOTHING,), ([[0.0, -0.0], [-0.0, 0.0]],)),
    "det sing3": (la.det, (np.diag(A([1, 0, 2])),), ([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0,
        0.0]],)),
    "det sing4": (la.det, (np.diag(A([1, 0, 2, 3])),), ([[0.0, 0.0, 0.0, 0.0], [0.0, 6.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]],)),
    "cholesky semi": (lambda x: la.cholesky(x).sum(), (A([[1, 1], [1, 1]]),), ([[NAN, NAN], [NAN,
        NAN]],)),
    "pinv zero": (lambda x: la.pinv(x).sum(), (NOTHING,), ([[0.0, 0.0], [0.0, 0.0]],)),
    "logsumexp -inf 1": (nn.logsumexp, (A([-INF, 1]),), ([0.0, 1.0],)),
    "logsumexp inf inf": (nn.logsumexp, (A([INF, INF]),), ([NAN, NAN],)),
    "logsumexp all nan": (nn.logsumexp, (A([NAN, 1]),), ([NAN, NAN],)),
    "softmax inf": (lambda x: nn.softmax(x)[0], (A([INF, 1]),), ([NAN, NAN],)),
    "softmax -inf": (lambda x: nn.softmax(x)[0], (A([-INF, 1]),), ([0.0, 0.0],)),
    "softmax all -inf": (lambda x: nn.softmax(x)[0], (A([-INF, -INF]),), ([NAN, NAN],)),
    "softmax large": (lambda x: nn.softmax(x)[0], (A([1e4, 0]),), ([0.0, -0.0],)),
    "log_softmax -inf": (lambda x: nn.log_softmax(x)[1], (A([-INF, 1]),), ([0.0, 0.0],)),
    "log_softmax large": (lambda x: nn.log_softmax(x)[1], (A([1e4, 0]),), ([-1.0, 1.0],)),
    "scatter dup": (lambda x, u: (x.at[np.array([0, 0])].set(u) * A([3, 5])).sum(), (A([1, 2]),
        A([7, 8])), ([0.0, 5.0], [0.0, 3.0],)),
    "scatter mul dup": (lambda x, u: (x.at[np.array([0, 0])].mul(u) * A([3, 5])).sum(), (A([1, 2]),
        A([7, 8])), ([168.0, 5.0], [24.0, 21.0],)),
    "scatter mul zero": (lambda x, u: (x.at[np.array([0])].mul(u) * A([3, 5])).sum(), (A([0, 2]),
        A([0])), ([0.0, 5.0], [0.0],)),
    "scatter max tie": (lambda x, u: (x.at[np.array([0])].max(u) * A([3, 5])).sum(), (A([1, 2]),
        A([1])), ([1.5, 5.0], [1.5],)),
    "scatter max dup tie": (lambda x, u: (x.at[np.array([0, 0])].max(u) * A([3, 5])).sum(), (A([1,
        2]), A([7, 7])), ([0.0, 5.0], [1.5, 1.5],)),
    "scatter min tie": (lambda x, u: (x.at[np.array([0])].min(u) * A([3, 5])).sum(), (A([1, 2]),
        A([1])), ([1.5, 5.0], [1.5],)),
    "scatter add dup": (lambda x, u: (x.at[np.array([0, 0])].add(u) * A([3, 5])).sum(), (A([1, 2]),
        A([7, 8])), ([3.0, 5.0], [3.0, 3.0],)),
    "scatter out": (lambda x, u: (x.at[jnp.array([5])].set(u) * A([3, 5])).sum(), (A([1, 2]),
        A([7])), ([3.0, 5.0], [0.0],)),
    "gather out": (lambda x: jnp.take(x, np.array([5]), mode="fill").sum(), (A([1, 2]),), ([0.0,
        0.0],)),
    "gather neg": (lambda x: x[np.array([-1, -1])].sum(), (A([1, 2]),), ([0.0, 2.0],)),
    "median odd ties": (jnp.median, (A([1, 2, 2]),), ([0.0, 1.0, 0.0],)),
    "median all": (jnp.median, (A([2, 2, 2, 2]),), ([0.0, 0.5, 0.5, 0.0],)),
    "quantile ties": (lambda x: jnp.quantile(x, 0.3), (A([2, 2, 2, 5]),), ([0.1, 0.9, 0.0, 0.0],)),
    "quantile 0.5": (lambda x: jnp.quantile(x, 0.5), (A([1, 2, 4]),), ([0.0, 1.0, 0.0],)),
    "quantile q": (lambda q: jnp.quantile(A([1, 2, 4]), q), (A(0.5),), (0.0,)),
    "quantile q mid": (lambda q: jnp.quantile(A([1, 2, 4]), q), (A(0.25),), (2.0,)),
    "quantile 0": (lambda q: jnp.quantile(A([1, 2, 4]), q), (A(0.0),), (0.0,)),
    "quantile 1": (lambda q: jnp.quantile(A([1, 2, 4]), q), (A(1.0),), (0.0,)),
    "interp knot": (lambda x: jnp.interp(x, A([0, 1, 2]), A([0, 1, 4])), (1.0,), (3.0,)),
    "interp left": (lambda x: jnp.interp(x, A([0, 1, 2]), A([0, 1, 4])), (0.0,), (1.0,)),
    "interp right": (lambda x: jnp.interp(x, A([0, 1, 2]), A([0, 1, 4])), (2.0,), (3.0,)),
    "interp out": (lambda x: jnp.interp(x, A([0, 1, 2]), A([0, 1, 4])), (-1.0,), (0.0,)),
    "interp dup": (lambda x: jnp.interp(x, A([0, 1, 1, 2]), A([0, 1, 2, 4])), (1.0,), (2.0,)),
    "conv negative pad": (lambda x: (lax.conv_general_dilated(x.reshape(1, 1, 4), np.ones((1, 1, 2),
        np.float32), (1,), [(-1, 1)]) * A([1, 10, 100])).sum(), (A([1, 2, 3, 4]),), ([0.0, 1.0,
        11.0, 110.0],)),
    "glu": (lambda x: nn.glu(x).sum(), (A([0, INF]),), ([1.0, 0.0],)),
    "nanmean all": (jnp.nanmean, (A([NAN, NAN]),), ([0.0, 0.0],)),
    "nansum": (jnp.nansum, (A([NAN, 1]),), ([0.0, 1.0],)),
    "nanprod": (jnp.nanprod, (A([NAN, 2]),), ([0.0, 1.0],)),
    "nanstd": (jnp.nanstd, (A([NAN, 2]),), ([0.0, NAN],)),
    "nanmin ties": (jnp.nanmin, (A([NAN, 2, 2]),), ([0.0, 0.5, 0.5],)),
    "nanmedian": (jnp.nanmedian, (A([NAN, 2, 3]),), ([0.0, 0.5, 0.5],)),
    "percentile": (lambda x: jnp.percentile(x, 50), (A([1, 2, 3]),), ([0.0, 1.0, 0.0],)),
    "corrcoef": (lambda x: jnp.corrcoef(x)[0, 1], (A([[1, 1], [1, 2]]),), ([[NAN, NAN], [NAN,
        NAN]],)),
    "unwrap": (lambda x: jnp.unwrap(x).sum(), (A([0, np.pi]),), ([2.0, 0.0],)),
    "trapezoid": (lambda x: jnp.trapezoid(x), (A([0, 1]),), ([0.5, 0.5],)),
    "trapezoid of infinity": (
        lambda x: jnp.trapezoid(x, dx=2.0), (A([np.inf, 1, 2]),), ([1.0, 2.0, 1.0],)),
    "gradient": (lambda x: jnp.gradient(x)[0], (A([0, 1, 3]),), ([-1.0, 1.0, 0.0],)),
    "cumlogsumexp -inf": (lambda x: lax.cumlogsumexp(x).sum(), (A([-INF, -INF]),), ([0.0, 0.0],)),
    "cumlogsumexp inf": (lambda x: lax.cumlogsumexp(x)[1], (A([-INF, 1]),), ([0.0, 1.0],)),
    "sort nan": (lambda x: (jnp.sort(x) * A([1, 10, 100])).sum(), (A([NAN, 1, 0]),), ([100.0, 10.0,
        1.0],)),
    "sort zeros": (lambda x: (jnp.sort(x) * A([1, 10])).sum(), (A([0.0, -0.0]),), ([1.0, 10.0],)),
    "reduce_window max tie": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,),
        "VALID").sum(), (A([1, 1, 1]),), ([0.5, 1.0, 0.5],)),
    "maxpool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (3,), "VALID").sum(), (A([1,
        1, 1]),), ([0.25, 0.25, 0.5],)),
    "polyval": (lambda x: jnp.polyval(A([1, 0, 0]), x), (0.0,), (0.0,)),
    "cross0": (lambda x: la.norm(jnp.cross(x, x)), (A([1, 2, 3]),), ([NAN, NAN, NAN],)),
    "cond of identity": (lambda x: la.cond(x), (EYE,), ([[1.0, 0.0], [0.0, -1.0]],)),
    "matrix_power0": (lambda x: la.matrix_power(x, 0).sum(), (NOTHING,), ([[0.0, 0.0], [0.0,
        0.0]],)),
    "matrix_power -1": (lambda x: la.matrix_power(x, -1).sum(), (EYE,), ([[-1.0, -1.0], [-1.0,
        -1.0]],)),
    "expm 0": (lambda x: plait.scipy.linalg.expm(x).sum(), (NOTHING,), ([[1.0, 1.0], [1.0, 1.0]],)),
    "digitize": (lambda x: jnp.digitize(x, A([0, 1])) * 1.0, (1.0,), (0.0,)),
    "searchsorted": (lambda x: jnp.searchsorted(A([0, 1]), x) * 1.0, (1.0,), (0.0,)),
    "convolve": (lambda x: jnp.convolve(x, x)[0], (A([0, 1]),), ([0.0, 0.0],)),
    "average w 0": (lambda w: jnp.average(A([1, 2]), weights=w), (A([0, 0]),), ([NAN, NAN],)),
}  # fmt: skip
"""What is done, at which point, and the derivative by each argument."""

DIFFERS = {
    "cummax all ties": "cummax([1, 1, 1])",
    "det sing4": "det(diag([1, 0, 2, 3]))",
    "scatter mul dup": "x.at[[0, 0]].mul(u)",
    "scatter mul zero": "x.at[[0, 0]].mul(u)",
    "cumlogsumexp -inf": "cumlogsumexp([-inf, -inf])",
    "reduce_window max tie": "reduce_window(x, -inf, max, ...)",
    "maxpool": "reduce_window(x, -inf, max, ...)",
}  # fmt: skip
"""What the page says JAX gives."""


@pytest.mark.parametrize("name", CASES)
def test_derivative(name, expect_slopes):
    expect_slopes(*CASES[name])
