"""Random convolutions, and random ways to divide their operands over devices.

Invariant: what follows from a seed is one convolution; the other side is numpy, or a Python loop
over undivided examples.
"""

import random

import numpy as np

import plait
from plait import lax
from plait.ext.ops.convolution import ConvDims, conv_general
from plait.ext.values import as_value
from plait.sharding import NamedSharding
from plait.sharding import PartitionSpec as P
from plait.testing.references import reference

MESHES = [
    ((2,), ("a",)),
    ((3,), ("a",)),
    ((4,), ("a",)),
    ((6,), ("a",)),
    ((8,), ("a",)),
    ((2, 2), ("a", "b")),
    ((2, 3), ("a", "b")),
    ((2, 4), ("a", "b")),
    ((2, 2, 2), ("a", "b", "c")),
]
LAYOUTS = [
    lambda s: (f"N{s}C", f"{s}IO", f"N{s}C"),
    lambda s: (f"NC{s}", f"OI{s}", f"NC{s}"),
    lambda s: (f"N{s}C", f"{s}OI", f"NC{s}"),
    lambda s: (f"C{s}N", f"I{s}O", f"N{s}C"),
]
WAYS = ("operands", "operand by operand", "in_shardings", "explicit", "constraints")
KINDS = ("to the kernel", "to the input", "to both", "kernels", "twice", "of the mean")


def numbers(r, *shape):
    return np.random.default_rng(r.getrandbits(32)).standard_normal(shape).astype(np.float32)


def divided(r, mesh, shape, likely=0.6, even=True):
    """A sharding: each axis of the mesh divides an axis, one that it can if `even`, or none."""
    parts, rest = [[] for _ in shape], list(shape)
    for name, size in mesh.shape.items():
        fit = [i for i, n in enumerate(rest) if n % size == 0 or not even]
        if fit and r.random() < likely:
            i = r.choice(fit)
            parts[i].append(name)
            rest[i] = -(-rest[i] // size)
    return NamedSharding(mesh, P(*[tuple(p) or None for p in parts]))


# ---- one convolution, with every parameter --------------------------------------------------


def arguments(r):
    """(input, kernel, parameters): groups of features or of the batch, or none."""
    count = r.choice([1, 1, 2, 2, 3])
    features, batches = 1, 1
    kind = r.choice(["plain", "features", "batch"])
    if kind == "features":
        features = r.choice([2, 3, 4, 6, 8, 12])
    elif kind == "batch":
        batches = r.choice([2, 3, 4, 6, 8])
    c, o = r.choice([1, 1, 2, 3, 4, 8]), features * batches * r.choice([1, 1, 2, 3, 4])
    n = batches * r.choice([1, 2, 3, 4, 8])
    space = [r.choice([2, 4, 6] if count == 3 else [4, 6, 8, 12, 16]) for _ in range(count)]
    window = [r.choice([1, 2, 3, 3, 4, 8]) for _ in range(count)]
    few = lambda: tuple([r.choice([1, 1, 1, 2, 3]) for _ in range(count)])  # noqa: E731
    strides, lhs, rhs = few(), few(), few()
    pads = [_padding(r, *sizes) for sizes in zip(space, lhs, window, rhs)]
    dims = ConvDims(*[_axes(r, count, kernel) for kernel in (False, True, False)])
    x = _laid(r, dims.lhs_spec, (n, c * features, *space))
    y = _laid(r, dims.rhs_spec, (o, c, *window))
    return x, y, dict(
        window_strides=strides, padding=tuple(pads), lhs_dilation=lhs, rhs_dilation=rhs,
        dims=dims, feature_group_count=features, batch_group_count=batches,
        precision="default", out_dtype=np.dtype(np.float32),
    )  # fmt: skip


def _padding(r, n, step, window, apart):
    """A pair such that at least one place is left; it may cut off."""
    extent, reach = (n - 1) * step + 1, (window - 1) * apart + 1
    low, high = r.choice([(0, 0), (reach // 2, (reach - 1) // 2), (r.randint(-2, 3), -1), (-1, 1)])
    return low + max(reach - extent - low - high, 0), high


def _axes(r, count, kernel):
    space = range(1, count + 1)
    last = (count + 1, count, *range(count)) if kernel else (0, count + 1, *space)
    mixed = r.sample(range(count + 2), count + 2)
    return tuple(r.choice([tuple(range(count + 2)), last, mixed]))


def _laid(r, axes, sizes):
    shape = [0] * len(axes)
    for a, n in zip(axes, sizes):
        shape[a] = n
    return numbers(r, *shape)


def check_convolution(seed):
    """One convolution of divided operands, whose result may be told how to lie, against numpy."""
    r = random.Random(f"convolution {seed}")
    x, y, params = arguments(r)
    mesh = plait.make_mesh(*r.choice(MESHES))
    want = reference(conv_general).value(x, y, **params)
    f = lambda x, y: conv_general.bind(as_value(x), as_value(y), **params)  # noqa: E731
    if r.random() < 0.3:
        each = [divided(r, mesh, v.shape, even=False) for v in (x, y)]
        got = _called("constraints", f, (x, y), each)
    else:
        how = {"out_shardings": divided(r, mesh, want.shape)} if r.random() < 0.5 else {}
        got = plait.jit(f, **how)(*[plait.device_put(v, divided(r, mesh, v.shape)) for v in (x, y)])
    expect_close([got], [want], f"convolution {seed}")


def check_alone(seed):
    """One convolution on one device, against numpy."""
    x, y, params = arguments(random.Random(f"alone {seed}"))
    f = plait.jit(lambda x, y: conv_general.bind(as_value(x), as_value(y), **params))
    expect_close([f(x, y)], [reference(conv_general).value(x, y, **params)], f"alone {seed}")


# ---- convolutions of examples, mapped and differentiated -------------------------------------


def check_examples(seed, kind=None, way=None):
    """Map layers over examples that are divided over devices, and compare with a loop."""
    r = random.Random(f"examples {seed}")
    kind, way = kind or r.choice(KINDS), way or r.choice(WAYS)
    examples = r.choice([4, 6, 8])
    over = r.choice([n for n in (2, 3, 4, 6, 8) if examples % n == 0])
    convolve, w, x = _layer(r, examples)
    loss = lambda w, v: (convolve(w, v) ** 2).sum()  # noqa: E731
    if kind == "kernels":
        w = np.stack([w * (i + 1) for i in range(examples)])
    axes = (0 if kind == "kernels" else None), 0
    f = _of_one(kind, loss, convolve)
    mapped = plait.vmap(f, axes)
    if kind == "of the mean":
        mapped = plait.grad(lambda w, x: plait.vmap(loss, axes)(w, x).mean())
    one = plait.jit(f)
    rows = [plait.tree.leaves(one(w if axes[0] is None else w[i], x[i])) for i in range(examples)]
    want = [np.stack(column) for column in zip(*rows)]
    if kind == "of the mean":
        want = [v.mean(0) for v in want]
    types = plait.sharding.AxisType
    mesh = plait.make_mesh((over,), ("a",), (types.Explicit if way == "explicit" else types.Auto,))
    each = NamedSharding(mesh, P("a"))
    got = _called(
        way, mapped, (w, x), (NamedSharding(mesh, P()) if axes[0] is None else each, each)
    )
    expect_close(plait.tree.leaves(got), want, f"examples {seed}, {kind}, {way}")
    return got


def _layer(r, examples):
    """A layer, its kernel, and inputs."""
    count = r.choice([1, 2, 2, 3])
    space = [r.choice([3, 4] if count == 3 else [4, 5, 6, 8]) for _ in range(count)]
    groups = r.choice([1, 1, 2])
    sizes = {
        "N": r.choice([1, 1, 2]),
        "C": groups * r.choice([1, 2]),
        "O": groups * r.choice([1, 3]),
    }
    sizes["I"] = sizes["C"] // groups
    apart = [r.choice([1, 1, 2]) for _ in range(count)]
    window = [r.choice([1, 2, 3]) for _ in range(count)]
    window = [w if (w - 1) * d < n else 1 for w, d, n in zip(window, apart, space)]
    letters = "HWD"[:count]
    layout = r.choice(LAYOUTS)(letters)
    shape = lambda text, space: [{**sizes, **dict(zip(letters, space))}[c] for c in text]  # noqa: E731
    how = dict(
        window_strides=[r.choice([1, 1, 2, 3]) for _ in range(count)],
        padding=r.choice(["SAME", "VALID", [(r.randint(-1, 2), r.randint(0, 2)) for _ in space]]),
        lhs_dilation=[r.choice([1, 1, 1, 2]) for _ in range(count)], rhs_dilation=apart,
        dimension_numbers=layout, feature_group_count=groups,
    )  # fmt: skip
    convolve = lambda w, v: lax.conv_general_dilated(v, w, **how)  # noqa: E731
    x = numbers(r, examples, *shape(layout[0], space))
    return convolve, numbers(r, *shape(layout[1], window)), x


def _of_one(kind, loss, convolve):
    if kind == "kernels":
        return convolve
    if kind == "twice":
        push = lambda w, v: plait.jvp(lambda w: plait.grad(loss)(w, v), (w,), (w,))[1]  # noqa: E731
        return push
    return plait.grad(loss, {"to the input": 1, "to both": (0, 1)}.get(kind, 0))


def _called(way, f, args, shardings):
    """`f` of operands that lie so, in one of the ways to say it."""
    if way == "in_shardings":
        return plait.jit(f, in_shardings=shardings)(*args)
    if way == "constraints":
        told = lambda *vs: f(*map(plait.with_sharding_constraint, vs, shardings))  # noqa: E731
        return plait.jit(told)(*args)
    args = [plait.device_put(v, s) for v, s in zip(args, shardings)]
    return f(*args) if way == "operand by operand" else plait.jit(f)(*args)


def expect_close(got, want, what):
    assert len(got) == len(want), what
    for a, b in zip(map(np.asarray, got), map(np.asarray, want)):
        assert a.shape == b.shape, what
        scale = np.abs(b[np.isfinite(b)]).max(initial=0) if b.dtype != bool else 0
        assert np.allclose(a, b, rtol=1e-3, atol=1e-3 * (1 + scale), equal_nan=True), what
