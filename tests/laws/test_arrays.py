"""Every law over operations that move, choose, sum and contract elements.

Invariant: no operand is near a tie.
"""

import numpy as np

from plait import lax
from plait._core.primitive import primitives
from plait._ops import families
from plait.ext.ops import cumulative, reduction, shape
from plait.ext.ops import reduction as argreduction
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.convolution import ConvDims, conv_general
from plait.ext.ops.fourier import fft_
from plait_autodiff.rematerialisation.policies import name_
from plait_autodiff.rematerialisation.residuals import move_

assert families
PRIM = primitives()


def spread(*sizes, seed=0):
    """Distinct numbers, none near another."""
    n = int(np.prod(sizes))
    rows = np.random.default_rng(seed).permutation(n) - n / 2 + 0.4
    return (rows / 2).reshape(sizes)


X, Y, S, V = spread(2, 3), spread(2, 3, seed=1), np.array(0.7), spread(3)
M = spread(3, 3)
Z = X + 1j * Y
ALONG = [(axis, reverse) for axis in (0, 1) for reverse in (False, True)]
NUMBERS = ("NCH", "OIH", "NCH")
WINDOW = {"select": "max", "window": (1, 2), "strides": (1, 1), "padding": ((0, 0), (1, 0))}


def conv(padding=((1, 0),), strides=(1,), left=(1,), right=(1,), groups=1, batches=1):
    return {
        "window_strides": strides, "padding": padding, "lhs_dilation": left,
        "rhs_dilation": right, "dims": ConvDims((0, 1, 2), (0, 1, 2), (0, 1, 2)),
        "feature_group_count": groups, "batch_group_count": batches, "precision": "default",
        "out_dtype": np.dtype(np.float64),
    }  # fmt: skip


def dot(contract, shared):
    return {"contract": contract, "shared": shared, "precision": "default",
            "out_dtype": np.dtype(np.float64)}  # fmt: skip


MOVED = {
    "core.transpose": (shape.transpose_, (X,), {"perm": (1, 0)}),
    "core.reshape": (shape.reshape_, (X,), {"shape": (3, 2)}),
    "core.squeeze": (shape.squeeze_, (X[:, None],), {"axes": (1,)}),
    "core.broadcast_in_dim": (shape.broadcast_in_dim, (X,), {"shape": (2, 4, 3), "dims": (0, 2)}),
    "core.rev": (shape.rev, (X,), {"axes": (1,)}),
    "core.slice": (shape.slice_, (X,), {"starts": (0, 0), "limits": (2, 3), "strides": (1, 2)}),
    "core.pad": (shape.pad_, (X, S), {"low": (1, -1), "high": (0, 2), "interior": (1, 0)}),
    "core.concatenate": (shape.concatenate_, (X, Y), {"axis": 1}),
    "core.convert": (shape.convert_, (X,), {"dtype": np.dtype(np.complex128), "weak": False}),
    "core.barrier": (shape.barrier, (X, S)),
    "autodiff.name": (name_, (X,), {"name": "x"}),
    "autodiff.move": (move_, (X,), {"memory": "device"}),
}
REDUCED = {
    **{p.name: (p, (X,), {"axes": (1,)}) for p in (reduction.reduce_sum, reduction.reduce_max,
                                                   reduction.reduce_min, reduction.reduce_prod)},
    "core.reduce_prod, one zero": (reduction.reduce_prod, (X * (X[0, 1] != X),), {"axes": (1,)}),
    "core.reduce_prod, zeros": (reduction.reduce_prod, (X * np.array([0, 0, 1]),), {"axes": (1,)}),
    "core.reduce_sum, complex": (reduction.reduce_sum, (Z,), {"axes": (0, 1)}),
    "core.reduce_prod, complex": (reduction.reduce_prod, (Z,), {"axes": (0, 1)}),
    **{f"{p.name}, {axis} {reverse}": (p, (X,), {"axis": axis, "reverse": reverse})
       for p in (cumulative.cumsum_, cumulative.cumprod_, cumulative.cummax_, cumulative.cummin_,
                 cumulative.cumlogsumexp_) for axis, reverse in ALONG[1::2]},
    "core.cumprod, zeros": (cumulative.cumprod_, (X * np.array([0, 1, 0]),),
                            {"axis": 1, "reverse": False}),
    **{f"core.recurrence, {axis} {reverse}": (cumulative.recurrence, (X, Y),
                                              {"axis": axis, "reverse": reverse})
       for axis, reverse in ALONG[::3]},
    "core.sort": (PRIM["core.sort"], (X, Y), {"axis": 1, "num_keys": 1, "stable": True}),
    "core.top_k": (PRIM["core.top_k"], (X,), {"k": 2}),
    "core.select_and_scatter_add": (PRIM["core.select_and_scatter_add"], (X, Y), WINDOW),
}  # fmt: skip
I, AT = np.int32(1), np.int32([[2], [0]])
INDEXED = {
    "core.dynamic_slice": (lambda x, i: PRIM["core.dynamic_slice"].bind(x, i, i, sizes=(1, 2)),
                           (M, I)),
    "core.dynamic_update_slice": (PRIM["core.dynamic_update_slice"], (M, X[:, :2], I, I)),
    "core.gather": (lambda x, i: lax.gather(x, i, lax.GatherDimensionNumbers((1,), (0,), (0,)),
                                            (1, 3)), (M, AT)),
    **{f"core.scatter{n}": (lambda x, i, u, f=f: f(
        x, i, u, lax.ScatterDimensionNumbers((1,), (0,), (0,)), unique_indices=True), (M, AT, X))
       for n, f in {"": lax.scatter, "_add": lax.scatter_add, "_mul": lax.scatter_mul,
                    "_max": lax.scatter_max, "_min": lax.scatter_min}.items()},
    "core.scatter_add, twice": (lambda x, i, u: lax.scatter_add(
        x, i, u, lax.ScatterDimensionNumbers((1,), (0,), (0,))), (M, 0 * AT, X)),
}  # fmt: skip
LINE, KERNEL = spread(2, 4, 3), spread(2, 2, 2, seed=1)
CONTRACTED = {
    "core.dot_general": (dot_general, (X, Y), dot(((1,), (1,)), ((), ()))),
    "core.dot_general, shared": (dot_general, (X, Y), dot(((), ()), ((1,), (1,)))),
    "core.conv_general": (conv_general, (LINE[:, :2], KERNEL), conv()),
    "core.conv_general, steps": (conv_general, (LINE[:, :2], KERNEL),
                                 conv(((-1, 3),), (2,), (2,), (2,))),
    "core.conv_general, groups": (conv_general, (LINE, KERNEL), conv(groups=2)),
    "core.conv_general, batches": (conv_general, (LINE[:, :2], KERNEL), conv(batches=2)),
    "core.fft": (fft_, (Z,), {"kind": "fft", "lengths": (3,)}),
    "core.fft, rfft": (fft_, (X,), {"kind": "rfft", "lengths": (3,)}),
    "core.fft, irfft": (fft_, (Z,), {"kind": "irfft", "lengths": (4,)}),
}  # fmt: skip
CASES = {**MOVED, **REDUCED, **INDEXED, **CONTRACTED}
K = np.int32([[5, 3, 1], [2, 7, 4]])
DISCRETE = {
    **{p.name: (p, (K > 3,), {"axes": (1,)}) for p in (
        reduction.reduce_and, reduction.reduce_or, reduction.reduce_xor)},
    **{p.name: (p, (X,), {"axis": 1, "index_dtype": np.dtype(np.int32)}) for p in (
        argreduction.argmax_, argreduction.argmin_)},
    **{p.name: (p, (X,), {"axes": (1,)}) for p in (argreduction.is_max, argreduction.is_min)},
    "core.argsort": (PRIM["core.argsort"], (X,), {"axis": 1, "stable": True, "descending": False,
                                              "index_dtype": np.dtype(np.int32)}),
    "core.bitcast": (PRIM["core.bitcast"], (K,), {"dtype": np.dtype(np.int16)}),
}  # fmt: skip


def test_derivatives(judge):
    judge.derivatives(CASES)


def test_mapping(judge):
    judge.mapping({**CASES, **DISCRETE})
