"""Reading contractions, convolutions, Fourier transforms and factorisations.

Invariant: the requested precision is kept; an algorithm that Plait does not have is refused.
"""

import re
from typing import Any

import plait
from plait.ext import ops
from plait.ext.ops import fourier
from plait.ext.ops import shape as shapes
from plait.ext.ops.convolution import ConvDims
from plait.ext.trace import Value

from ..errors import NotReadable
from .table import enum, reads
from .walking import Walk, takes_known

_PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")


def precision_of(op: Any) -> str:
    """Return the higher one of the precisions of both operands."""
    said = [enum(p) for p in op.attributes.get("precision_config", ())]
    return max(said, key=_PRECISIONS.index, default="DEFAULT").lower()


def numbers(attribute: str, key: str) -> tuple[int, ...]:
    """Return a named list of axes from the text of a StableHLO attribute."""
    found = re.search(rf"\b{key} = \[([\d, ]*)\]", str(attribute))
    return tuple([int(n) for n in found[1].split(",")]) if found and found[1] else ()


def number(attribute: str, key: str, default: int = 0) -> int:
    """Return a named number from the text of a StableHLO attribute."""
    found = re.search(rf"\b{key} = (-?\d+)", str(attribute))
    return int(found[1]) if found else default


@reads("stablehlo.dot_general")
def _(walk: Walk, op, xs: list[Value]):
    if "algorithm" in op.attributes:
        raise NotReadable(f"{op.name} asks for the algorithm {op.attributes['algorithm']}")
    axes = op.attributes["dot_dimension_numbers"]
    summed, together = (
        tuple([numbers(axes, f"{side}_{kind}_dimensions") for side in ("lhs", "rhs")])
        for kind in ("contracting", "batching")
    )
    x, y = xs
    return plait.lax.dot_general(x, y, (summed, together), precision_of(op), op.types[0].dtype)


@reads("stablehlo.dot")
def _(walk: object, op, xs):
    """Read a product of matrices and vectors, which other exporters write."""
    x, y = xs
    summed = ((x.aval.ndim - 1,), (0,))
    return plait.lax.dot_general(x, y, (summed, ((), ())), precision_of(op), op.types[0].dtype)


# ---- convolutions --------------------------------------------------------------------------


@reads("stablehlo.convolution")
def _(walk: object, op, xs):
    pairs = op.attributes.get("padding")
    return _convolved(op, xs, None if pairs is None else pairs.tolist())


@reads("stablehlo.dynamic_conv")
@takes_known
def _(walk, op, xs):
    flat = getattr(xs[2], "items", None)
    if flat is None:
        raise NotReadable("the padding of dynamic_conv is computed of values")
    return _convolved(op, [walk.value(x) for x in xs[:2]], list(zip(flat[::2], flat[1::2])))


def _convolved(op: Any, xs: Any, padding: Any) -> Any:
    x, kernel = xs
    at, n = op.attributes, x.aval.ndim - 2
    specs = re.search(r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]", at["dimension_numbers"])
    assert specs is not None
    ones = (1,) * n
    if any(at.get("window_reversal", ())):
        axes = [i for i, w in enumerate(specs[2].split(", ")) if w.isdigit()
                and at["window_reversal"][int(w)]]  # fmt: skip
        kernel = shapes.rev.bind(kernel, axes=tuple(axes))
    return plait.lax.conv_general_dilated(
        x, kernel, at.get("window_strides", ones), padding or ((0, 0),) * n,
        at.get("lhs_dilation", ones), at.get("rhs_dilation", ones),
        ConvDims(
            lhs_spec=_axes(specs[1], "bf"), rhs_spec=_axes(specs[2], "oi"),
            out_spec=_axes(specs[3], "bf"),
        ),
        at.get("feature_group_count", 1), at.get("batch_group_count", 1), precision_of(op),
        op.types[0].dtype,
    )  # fmt: skip


def _axes(text: str, first: str) -> tuple[int, ...]:
    """Return the axes in the order of `first`, then the spatial axes in their order."""
    words = text.split(", ")
    return tuple([words.index(w) for w in (*first, *map(str, range(len(words) - 2)))])


# ---- transforms and factorisations ---------------------------------------------------------


@reads("stablehlo.fft")
def _(walk: object, op, xs):
    at = op.attributes
    return fourier.fft_.bind(xs[0], kind=enum(at["fft_type"]).lower(), lengths=at["fft_length"])


@reads("stablehlo.cholesky")
def _(walk: object, op, xs):
    """Read a factorisation that ignores the other triangle."""
    x = xs[0]
    if op.attributes.get("lower", False):
        return ops.linalg.cholesky_.bind(x)
    return ops.linalg.adjoint(ops.linalg.cholesky_.bind(ops.linalg.adjoint(x)))


@reads("stablehlo.triangular_solve")
def _(walk: object, op, xs):
    at = op.attributes
    how = enum(at["transpose_a"])
    return ops.linalg.triangular_solve_.bind(
        *xs, left_side=at["left_side"], lower=at["lower"], unit_diagonal=at["unit_diagonal"],
        transpose_a=how in ("TRANSPOSE", "ADJOINT"), conjugate_a=how == "ADJOINT",
    )  # fmt: skip
