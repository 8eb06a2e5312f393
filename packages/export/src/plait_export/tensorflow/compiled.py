"""StableHLO that TensorFlow's compiler makes of a function, and the sizes of its results there.

TensorFlow leaves sizes open that its compiler derives, such as those of results of functions that
were exported with symbolic sizes.

Invariant: a function that the compiler refuses, or whose results have sizes that depend on values,
is an error that names the reason.
"""

import re
from collections.abc import Sequence
from typing import Any

from plait.ext.lower import lock, mlir

from .. import portable
from ..errors import NotReadable
from .library import tf


def stablehlo_of(name: str, function: Any, taken: Sequence[Any]) -> bytes:
    """Return the bytecode of a `tf.function` with `jit_compile=True`, for tensors of some types.

    Raises NotReadable if TensorFlow's compiler refuses it.
    """
    try:
        text = function.experimental_get_compiler_ir(*taken)(stage="stablehlo")
    except (ValueError, tf.errors.OpError) as e:
        raise unsaid(name, _why(str(e))) from None
    with lock:
        return mlir.bytecode(mlir.parse(text if isinstance(text, bytes) else text.encode()))


def result_shapes(name: str, code: bytes, outputs: Sequence[Any]) -> list[tuple[int, ...]]:
    """Return the shapes of the results of a module.  Raises NotReadable for sizes without bounds.

    Args:
      name: the name of the function, for the error.
      code: the bytecode of the module.
      outputs: the results in TensorFlow, whose shapes may be unknown.
    """
    if all(o.shape.is_fully_defined() for o in outputs):
        return [tuple(o.shape) for o in outputs]
    with lock:
        module = mlir.parse(code)  # its functions live as long as it does
        _, types = portable.types_of(portable.main_of(module))
        found = [mlir.bindings().ir.RankedTensorType(t) for t in types]
        known = [t.has_static_shape for t in found]
        shapes = [tuple(t.shape) for t in found]
    for n, (o, is_known) in enumerate(zip(outputs, known, strict=True)):
        if not is_known:
            raise NotReadable(
                f"result {n} of {name} has the shape {o.shape}: its sizes depend on values",
                fix="return arrays of known sizes, padded, and how much of them is meant",
            )
    return shapes


def unsaid(name: str, why: str) -> NotReadable:
    """Return the error for a function that TensorFlow does not express in StableHLO."""
    return NotReadable(
        f"{name} cannot be taken from TensorFlow as StableHLO: {why}",
        fix="call it as it is, with plait.export.tensorflow.call_tf",
    )


def _why(said: str) -> str:
    """Shorten an error of TensorFlow's compiler to its reason."""
    missing = re.findall(r"(\w+) \(No registered", said)
    if missing:
        return f"it has no {', '.join(dict.fromkeys(missing))}"
    return said.removeprefix("Failed getting HLO text: '").partition("\n")[0]
