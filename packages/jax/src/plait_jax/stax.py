"""JAX's small neural networks (`jax.example_libraries.stax`), for libraries that build on them.

A layer is two functions: `init(key, input_shape)` returns (shape of the output, parameters), and
`apply(params, inputs, **options)` the output.  Convolutions, pools and batch normalisation are left
out.

Invariant: parameters are trees of arrays; a layer has no state.
"""

from collections.abc import Callable
from typing import Any

import plait.numpy as pnp
from plait import nn, random
from plait.nn import initializers

__all__ = [
    "Dense", "Dropout", "Elu", "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu",
    "Identity", "LeakyRelu", "LogSoftmax", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus",
    "Tanh", "elementwise", "parallel", "serial", "shape_dependent",
]  # fmt: skip

Layer = tuple[Callable[..., Any], Callable[..., Any]]


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """Return a layer that multiplies every row by a matrix and adds a vector."""
    first = W_init or initializers.glorot_normal()
    second = b_init or initializers.normal()

    def init(rng: Any, input_shape: Any) -> Any:
        k1, k2 = random.split(rng)
        shape = (*input_shape[:-1], out_dim)
        return shape, (first(k1, (input_shape[-1], out_dim)), second(k2, (out_dim,)))

    def apply(params: Any, inputs: Any, **options: object) -> Any:
        weights, bias = params
        return pnp.dot(inputs, weights) + bias

    return init, apply


def elementwise(fun: Callable[..., Any], **options: object) -> Layer:
    """Return a layer that applies a function to each element."""
    return (lambda rng, input_shape: (input_shape, ())), (
        lambda params, inputs, **_: fun(inputs, **options)
    )


Tanh = elementwise(pnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(pnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity = elementwise(lambda x: x)


def _flat(input_shape: Any) -> Any:
    size = 1
    for n in input_shape[1:]:
        size *= n
    return input_shape[0], size


Flatten = (
    lambda rng, input_shape: (_flat(input_shape), ()),
    lambda params, inputs, **_: pnp.reshape(inputs, (inputs.shape[0], -1)),
)


def FanOut(num: int) -> Layer:
    """Return a layer that repeats its input `num` times."""
    return (lambda rng, input_shape: ([input_shape] * num, ())), (
        lambda params, inputs, **_: [inputs] * num
    )


FanInSum = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **_: sum(inputs[1:], inputs[0]),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Return a layer that concatenates its inputs along an axis."""

    def init(rng: object, input_shape: Any) -> Any:
        at = axis % len(input_shape[0])
        whole = sum(shape[at] for shape in input_shape)
        return (*input_shape[0][:at], whole, *input_shape[0][at + 1 :]), ()

    return init, lambda params, inputs, **_: pnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return a layer that keeps each element with probability `rate` and divides it by `rate`.

    The key is `rng=`.
    """

    def apply(params: object, inputs: Any, **options: Any) -> Any:
        if mode != "train":
            return inputs
        if options.get("rng") is None:
            raise ValueError("Dropout needs a key: apply(params, inputs, rng=key)")
        keep = random.bernoulli(options["rng"], rate, inputs.shape)
        return pnp.where(keep, inputs / rate, 0)

    return (lambda rng, input_shape: (input_shape, ())), apply


def serial(*layers: Layer) -> Layer:
    """Return a layer that applies layers one after the other."""

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for one, _ in layers:
            rng, key = random.split(rng)
            input_shape, param = one(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, **options: object) -> Any:
        keys = _keys(options, len(layers))
        for (_, one), param, key in zip(layers, params, keys, strict=True):
            inputs = one(param, inputs, **{**options, "rng": key})
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Return a layer that applies each layer to its own input."""

    def init(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(layers))
        rows = zip(layers, keys, input_shape, strict=True)
        shapes, params = zip(*[one(key, shape) for (one, _), key, shape in rows], strict=True)
        return shapes, params

    def apply(params: Any, inputs: Any, **options: object) -> Any:
        keys = _keys(options, len(layers))
        rows = zip(layers, params, inputs, keys, strict=True)
        return [one(param, x, **{**options, "rng": key}) for (_, one), param, x, key in rows]

    return init, apply


def _keys(options: dict[str, Any], n: int) -> Any:
    """Return a key for each of `n` layers; None if no key was given."""
    rng = options.pop("rng", None)
    return random.split(rng, n) if rng is not None else (None,) * n


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Return a layer that is made when the shape of its input is known."""
    return (lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape)), (
        lambda params, inputs, **options: make_layer(inputs.shape)[1](params, inputs, **options)
    )
