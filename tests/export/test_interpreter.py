"""Artifacts in the interpreter of StableHLO, which says what each operation means and compiles
nothing: another judge of what we write.

Invariant: values are compared with those of the function here, which XLA computes, and of some with
numpy's; what the interpreter has not is named, and is an error when it has it.
"""

import subprocess
import sys
from pathlib import Path

import jaxlib.version
import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from plait import tree

from .portable_programs import CASES, REFERENCES, artifacts, expected

PLAIN = {"f32": np.float32, "f64": np.float64, "i1": np.bool_, "i8": np.int8, "i32": np.int32,
         "i64": np.int64, "ui32": np.uint32, "ui8": np.uint8}  # fmt: skip


def interpreted(artifact: bytes, args: list) -> list[np.ndarray]:
    """The results of a module's `main`."""
    with ir.Context() as context, ir.Location.unknown():
        stablehlo.register_dialect(context)
        stablehlo.register_interpreter_dialect(context)
        module = stablehlo.deserialize_portable_artifact(context, artifact)
        main = ir.SymbolTable(module.operation)["main"]
        kinds = ir.FunctionType(main.type).inputs
        given = [ir.DenseElementsAttr.get(x, type=k) for x, k in zip(args, kinds, strict=True)]
        return [array_of(y) for y in stablehlo.eval_module(module, given)]


def array_of(y: ir.Attribute) -> np.ndarray:
    """An attribute as an array."""
    found = ir.DenseElementsAttr(y)
    kind = ir.RankedTensorType(found.type)
    return np.array(found).astype(PLAIN[str(kind.element_type)]).reshape(kind.shape)


ENDS = {"fft": "Semantics mismatch between provided type and complex value"}
"""What ends the process, and what is written then: before jaxlib 0.12, its `fft` computed in
numbers of its own."""
if jaxlib.version.__version_info__ >= (0, 12):
    ENDS = {}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [n for n in CASES if n not in ENDS])
def test_values(name):
    case = CASES[name]
    for exported, args in artifacts(case):
        flat = [np.asarray(x) for x in tree.leaves(args)]
        found = interpreted(exported.mlir_module_serialized, flat)
        for got, want in zip(found, expected(case, args), strict=True):
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=case.tolerance, atol=case.tolerance)


@pytest.mark.parametrize("name", [n for n in REFERENCES if n not in ENDS])
def test_values_of_numpy(name):
    for exported, args in artifacts(CASES[name]):
        found = interpreted(exported.mlir_module_serialized, [np.asarray(x) for x in args])
        for got, want in zip(found, tree.leaves(REFERENCES[name](*args)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


ALONE = """
from tests.export.portable_programs import CASES, artifacts
from tests.export.test_interpreter import interpreted
for exported, args in artifacts(CASES["{}"]):
    interpreted(exported.mlir_module_serialized, [*args])
"""


@pytest.mark.parametrize("name", ENDS)
def test_what_it_can_not(name):
    command = [sys.executable, "-c", ALONE.format(name)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode < 0 and ENDS[name] in done.stderr
