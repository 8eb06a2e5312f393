"""Operations and their gradients, as Plait and jax write them and as torch does.

Invariant: both forms compute the same from the same arrays; images have their channels last in
memory.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from workloads import WORKLOADS, wl

_SHAPES: dict[str, tuple[int, ...]] = {
    "x": (16, 128, 256),
    "w": (256, 512),
    "image": (16, 32, 32, 32),
    "kernel": (3, 3, 32, 64),
    "point": (1, 1, 32, 128),
    "depth": (3, 3, 1, 32),
    "heads": (8, 256, 8, 64),
    "table": (512, 10000),
    "matrices": (64, 128, 128),
}


class Operation(NamedTuple):
    """One operation, whose gradient by all its arrays is measured.

    Attributes:
      label: what it is called in the table.
      arrays: names of its arrays in `_SHAPES`.
      ours: makes the function from the namespace of Plait or jax.
      torch: makes the function from the module torch.
      goal: the ratio to jax that is wanted; None where none is.
    """

    label: str
    arrays: tuple[str, ...]
    ours: Callable[[Any], Callable]
    torch: Callable[[Any], Callable]
    goal: float | None = 1.0


def _ours(stride: int = 1, groups: int = 1) -> Callable:
    names = ("NHWC", "HWIO", "NHWC")
    return lambda lib: (
        lambda x, k: lib.lax.conv_general_dilated(
            x, k, (stride, stride), "SAME", dimension_numbers=names, feature_group_count=groups
        )
    )


def _torch(padding: int, groups: int = 1) -> Callable:
    return lambda t: lambda x, k: t.nn.functional.conv2d(x, k, padding=padding, groups=groups)


def _attention(t: Any) -> Callable:
    def f(x: Any) -> Any:
        x = x.transpose(1, 2)
        return t.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)

    return f


def _dominant(lib: Any, x: Any) -> Any:
    return x + 20 * lib.eye(x.shape[-1])


OPERATIONS = {
    "op_linear": Operation("a product with 3 axes", ("x", "w"), lambda lib: lambda x, w: x @ w,
                           lambda t: lambda x, w: x @ w, 1.6),
    "op_conv": Operation("a 3x3 convolution", ("image", "kernel"), _ours(), _torch(1), 2.0),
    "op_conv_point": Operation("a 1x1 convolution", ("image", "point"), _ours(), _torch(0), 4.0),
    "op_conv_depth": Operation("a depthwise convolution", ("image", "depth"), _ours(groups=32),
                               _torch(1, 32), 8.0),
    "op_attention": Operation(
        "causal attention", ("heads",),
        lambda lib: lambda x: lib.nn.dot_product_attention(x, x, x, is_causal=True),
        _attention, 2.5,
    ),
    "op_products": Operation("products of batches", ("matrices",), lambda lib: lambda a: a @ a @ a,
                             lambda t: lambda a: a @ a @ a, 1.6),
    "op_solve": Operation("solving batches", ("matrices",),
                          lambda lib: lambda a: lib.np.linalg.solve(_dominant(lib.np, a), a),
                          lambda t: lambda a: t.linalg.solve(_dominant(t, a), a)),
    "op_sort": Operation("sorting rows", ("x",), lambda lib: lambda x: lib.np.sort(x, -1),
                         lambda t: lambda x: t.sort(x, -1)[0], 6.0),
    "op_top_k": Operation("the 8 greatest of 10,000", ("table",),
                          lambda lib: lambda x: lib.lax.top_k(x, 8)[0],
                          lambda t: lambda x: t.topk(x, 8)[0]),
    "op_softmax": Operation("softmax", ("table",), lambda lib: lib.nn.softmax,
                            lambda t: lambda x: t.softmax(x, -1)),
    "op_gelu": Operation("gelu", ("x",), lambda lib: lib.nn.gelu,
                         lambda t: lambda x: t.nn.functional.gelu(x, approximate="tanh")),
    "op_cumsum": Operation("running sums", ("x",), lambda lib: lambda x: lib.np.cumsum(x, 1),
                           lambda t: lambda x: t.cumsum(x, 1)),
}  # fmt: skip

_SIZES = {
    "causal attention": (128, 256, 512, 1024, 2048),
    "product of squares": (64, 128, 256, 512, 1024),
    "sorting rows": (64, 256, 1024, 4096, 16384),
}
_GROWN = {
    "causal attention": (OPERATIONS["op_attention"], lambda n: (2048 // n, n, 8, 64)),
    "product of squares": (OPERATIONS["op_products"], lambda n: (n, n)),
    "sorting rows": (OPERATIONS["op_sort"], lambda n: ((1 << 20) // n, n)),
}
GROWTH: dict[str, dict[int, str]] = {
    label: {n: f"op_grown_{label.replace(' ', '_')}_{n}" for n in sizes}
    for label, sizes in _SIZES.items()
}
"""For each chart of growth: sizes, and the names of the operations on arrays of these sizes."""
for _label, _names in GROWTH.items():
    _one, _shape = _GROWN[_label]
    for _n, _name in _names.items():
        _SHAPES[_name] = _shape(_n)
        OPERATIONS[_name] = _one._replace(label=f"{_label}, {_n}", arrays=(_name,), goal=None)


def _arrays(o: Operation) -> list[np.ndarray]:
    found = []
    for name in o.arrays:
        rng = np.random.default_rng(len(found))
        scale = 0.1 if name in ("kernel", "point", "depth") else 1.0
        found.append((scale * rng.standard_normal(_SHAPES[name])).astype(np.float32))
    return found


def _register(name: str, o: Operation) -> None:
    @wl(name, "run")
    def _(lib: Any) -> Callable:
        f, xs = o.ours(lib), [lib.device_put(x) for x in _arrays(o)]
        loss = lambda *xs: lib.np.sum(f(*xs) ** 2)  # noqa: E731
        g = lib.jit(lib.grad(loss, argnums=tuple(range(len(xs)))))
        return lambda: lib.block_until_ready(g(*xs))


for _name, _operation in OPERATIONS.items():
    if _name not in WORKLOADS:
        _register(_name, _operation)


def of_torch(name: str) -> Callable:
    """Return the operation in torch, as a function without arguments."""
    torch = importlib.import_module("torch")
    o = OPERATIONS[name]
    f = o.torch(torch)
    xs = [_as_torch(torch, n, x).requires_grad_() for n, x in zip(o.arrays, _arrays(o))]
    return lambda: torch.autograd.grad((f(*xs) ** 2).sum(), xs)


def _as_torch(torch: Any, name: str, x: np.ndarray) -> Any:
    if name == "image":  # NHWC in memory, NCHW by name
        return torch.from_numpy(x).permute(0, 3, 1, 2)
    if name in ("kernel", "point", "depth"):
        return torch.from_numpy(np.ascontiguousarray(x.transpose(3, 2, 0, 1)))
    return torch.from_numpy(x)
