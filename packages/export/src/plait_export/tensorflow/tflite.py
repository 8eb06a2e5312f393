"""`to_tflite`: conversion of a function to a file for TensorFlow Lite, for phones and smaller
devices.

TensorFlow converts the result of `to_tf`.  For some programs its files silently compute something
else, so the results of each file are compared with those of the function.

Invariant: a file is returned only after it was run and compared.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import plait
from plait.ext.errors import ArgumentError, border
from plait.ext.tree import flatten

from ..errors import NotExportable
from ..writing import export
from .library import tensorflow, tf
from .operations import Graph, Module, Operation
from .saving import SIGNATURE, argument_names, result_names, served

_WAYS = {False: Module, True: Graph}


@border
def to_tflite(
    fun: Callable[..., Any],
    *args: object,
    enable_graph: bool | None = None,
    names: Sequence[str] | None = None,
    tolerance: float = 1e-4,
) -> bytes:
    """Convert a function of arrays to a file for TensorFlow Lite, for the shapes of the arguments.

    TensorFlow's converter gets the function as StableHLO, and if that fails as a graph of
    TensorFlow's operations.  The file is run on the arguments, and its results are compared.

    Args:
      fun: a function of trees of arrays.
      args: typical arguments.  They should distinguish the function from others, which zeros may
        not.
      enable_graph: True to try only the graph, False to try only StableHLO.
      names: names for the leaves of the arguments in the file; by default the parameter names.
      tolerance: the relative and the absolute tolerance for differences from the results of `fun`.

    Returns the bytes of a file with one signature, "serving_default".

    Raises NotExportable if no file computes the same as `fun`, with the converter's error, or the
    result that differs and its difference.  Raises ArgumentError for too few or too many names.

    >>> import numpy as np, plait
    >>> blob = plait.export.tensorflow.to_tflite(  # doctest: +SKIP
    ...     lambda x: plait.numpy.tanh(x @ x.T), np.ones((4, 3), np.float32))
    """
    tensorflow()
    if not args:
        raise ArgumentError(
            f"to_tflite({fun!r}) is given no arguments", fix="write to_tflite(f, x, ...)"
        )
    traceable = fun if hasattr(fun, "clear_cache") else plait.jit(fun)
    xs = [np.asarray(plait.numpy.asarray(x)) for x in flatten(args)[0]]
    want = [np.asarray(y) for y in flatten(traceable(*args))[0]]
    exported = export(traceable, libraries=False)(*args)
    ins, outs = argument_names(names, fun, exported, 0), result_names(exported)
    said = []
    for graph in _WAYS if enable_graph is None else [bool(enable_graph)]:
        way = "as a graph" if graph else "as StableHLO"
        operation = Operation(traceable, _WAYS[graph](exported), False)
        try:
            blob = _converted(served(operation, [], ins))
            found = _run(blob, dict(zip(ins, xs, strict=True)))
        except NotExportable as e:
            said.append(f"{way}: {e.what}")
        except Exception as e:  # The converter and the interpreter raise many types.
            said.append(f"{way}: {_telling(str(e))}")
        else:
            wrong = _difference([found[name] for name in outs], want, outs, tolerance)
            if wrong is None:
                return blob
            said.append(f"{way}: {wrong}")
    raise NotExportable(
        f"no file of TensorFlow Lite's computes {exported.fun_name}; {'; '.join(said)}",
        fix="leave out what it says, or do that outside; or run to_tf(f) by TensorFlow",
    )


def _converted(serve: Any) -> bytes:
    """Convert a `tf.function` to a file with TensorFlow's converter."""
    root = tf.Module()
    root.serve = serve
    with TemporaryDirectory() as folder:
        tf.saved_model.save(root, folder, signatures={SIGNATURE: serve})
        return tf.lite.TFLiteConverter.from_saved_model(folder, [SIGNATURE]).convert()


def _run(blob: bytes, args: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run a file and return its results by name."""
    with warnings.catch_warnings():
        # The interpreter warns that it will move to a distribution of its own.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=blob)
    return interpreter.get_signature_runner(SIGNATURE)(**args)


def _difference(
    found: Sequence[np.ndarray], want: Sequence[np.ndarray], names: Sequence[str], tolerance: float
) -> str | None:
    """Describe the first result that differs; None if none does."""
    for y, w, name in zip(found, want, names, strict=True):
        if y.shape != w.shape or y.dtype != w.dtype:
            return f"its {name} is {y.dtype}{[*y.shape]}, and not {w.dtype}{[*w.shape]}"
        kind = np.complex128 if w.dtype.kind == "c" else np.float64
        y, w = y.astype(kind), w.astype(kind)
        if not np.allclose(y, w, rtol=tolerance, atol=tolerance, equal_nan=True):
            with np.errstate(invalid="ignore"):
                most = np.abs(y - w).max()
            return f"its {name} differs by up to {most:.2g}, and {tolerance:g} is allowed"
    return None


def _telling(text: str) -> str:
    """Return the most informative line of an error: the first with "error:", or the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason is given"]
    return next((line for line in lines if "error:" in line), lines[0]).split("error: ")[-1]
