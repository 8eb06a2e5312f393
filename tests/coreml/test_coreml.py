"""Artifacts as programs of Core ML: converted, which is all that can be done beside a Mac.

`nox -s coreml` runs this with an environment that has the converter and no Plait.

Invariant: what the converter refuses is named with what it says, and is an error when it does so no
more; numbers are not compared, since nothing here runs what is converted.
"""

import json
import os
import subprocess

import pytest

from ..export.portable_programs import CASES, artifacts

READER = os.environ.get("PLAIT_TEST_READER")
pytestmark = pytest.mark.skipif(READER is None, reason="run by `nox -s coreml`")

REFUSED = {
    "bf16": "Unsupported type bf16",
    "f64": "Unsupported type f64",
    "fft": "Unsupported type complex<f32>",
    "int8": "got tensor[4,3,int8]",
    **dict.fromkeys(("lstm", "lstm_poly", "lstm_grad"), "LogisticOp"),
    "maxpool_grad": "Interior padding is not supported",
    "random": "uint32",
    "random_poly": "uint32",
    "round": "RoundNearestEvenOp",
    "scan_poly": "is not equal to block input",
    **dict.fromkeys(("sort", "sort_poly"), "BitcastConvertOp"),
    "topk": "`index_vector_dim` is only supported to be the last dimension",
}
"""What the converter says of them."""

CONVERT = """
import json, sys
import coremltools as ct
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from stablehlo_coreml.converter import convert

said = {}
for path in sys.argv[1:]:
    try:
        with ir.Context() as context, open(path, "rb") as file:
            module = stablehlo.deserialize_portable_artifact(context, file.read())
            program = convert(module, minimum_deployment_target=ct.target.iOS18)
        ct.convert(program, source="milinternal", minimum_deployment_target=ct.target.iOS18,
                   skip_model_load=True)
        said[path] = ""
    except Exception as e:
        said[path] = str(e)
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the converter says of each program; nothing of those that it converts."""
    folder, paths = tmp_path_factory.mktemp("artifacts"), {}
    for name, case in CASES.items():
        exported, _ = next(artifacts(case))
        path = folder / f"{name}.mlirbc"
        path.write_bytes(exported.mlir_module_serialized)
        paths[str(path)] = name
    done = subprocess.run([READER, "-c", CONVERT, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {paths[path]: text for path, text in found.items()}


@pytest.mark.parametrize("name", CASES)
def test_conversion(said, name):
    if name in REFUSED:
        assert REFUSED[name] in said[name]
    else:
        assert said[name] == ""
