"""Artifacts in a runtime of others: IREE compiles them to machine code, and for its own virtual
machine, and computes what numpy or Plait computes; and it compiles them to WebAssembly.

What is known by symbolic sizes is specialised, and linear algebra is written out: so readers of
StableHLO want it that have neither a pass for sizes nor LAPACK.

Invariant: values are compared with those of the function here, and of some with numpy's; what IREE
refuses, or computes otherwise, is named with the reason, and is an error when it does so no more.
"""

import numpy as np
import pytest

from plait import tree

from ..export.portable_programs import CASES, REFERENCES, artifacts, expected

compiler = pytest.importorskip("iree.compiler", reason="run by `nox -s iree`")
runtime = pytest.importorskip("iree.runtime", reason="run by `nox -s iree`")

BACKENDS = ("llvm-cpu", "vmvx")
OPTIONS = ["--iree-input-demote-f64-to-f32=false", "--iree-llvmcpu-target-cpu=generic"]

REFUSED = {
    ("fft", "vmvx"): r"buffer\.(store|load)' op .* must be .* but got 'complex<f32>'",
    ("bf16", "vmvx"): "failed to legalize .* bf16",
}
"""(function, backend): what IREE's compiler says of it; its virtual machine has no complex numbers
and no bfloat16."""

WRONG = {("int8", "vmvx")}
"""(function, backend) of which IREE's values are others: its virtual machine rounds to the nearest
integer where StableHLO's `convert` cuts off what is behind the point."""


# ---- there ---------------------------------------------------------------------------------


def computed(artifact: bytes, backend: str, args: list) -> list:
    """The results of a module's `main`, by IREE."""
    code = compiler.compile_str(
        artifact, input_type="stablehlo", target_backends=[backend], extra_args=OPTIONS
    )
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    module = runtime.VmModule.copy_buffer(context.instance, code)
    context.add_vm_module(module)
    found = context.modules[module.name]["main"](*args)
    return [x.to_host() for x in (found if isinstance(found, tuple | list) else [found])]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, backend):
    case = CASES[name]
    for exported, args in artifacts(case):
        flat = [np.asarray(x) for x in tree.leaves(args)]
        artifact = exported.mlir_module_serialized
        if (name, backend) in REFUSED:
            with pytest.raises(compiler.CompilerToolError, match=REFUSED[name, backend]):
                computed(artifact, backend, flat)
            continue
        found = computed(artifact, backend, flat)
        want = expected(case, args)
        if (name, backend) in WRONG:
            with pytest.raises(AssertionError, match="Not equal to tolerance"):
                same(found, want, case.tolerance)
        else:
            same(found, want, case.tolerance)


def same(found: list, want: list, tolerance: float) -> None:
    assert len(found) == len(want)
    for got, w in zip(found, want, strict=True):
        assert got.shape == w.shape and got.dtype == w.dtype
        np.testing.assert_allclose(got, w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", REFERENCES)
def test_values_of_numpy(name):
    for exported, args in artifacts(CASES[name]):
        found = computed(exported.mlir_module_serialized, "llvm-cpu", [*args])
        want = tree.leaves(REFERENCES[name](*args))
        for got, w in zip(found, want, strict=True):
            np.testing.assert_allclose(got, w, rtol=1e-5, atol=1e-5)


# ---- for browsers --------------------------------------------------------------------------

WEB = [
    "--iree-llvmcpu-target-triple=wasm32-unknown-emscripten",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-llvmcpu-target-cpu=generic",
]
UNLINKED = {"round": "roundf"}
"""What calls a function of C's library, which IREE does not link into WebAssembly."""

COPIES = ("conv_grad", "concatenate_poly")
"""What is copied, or computed by the compiler: there is nothing to run."""


@pytest.mark.parametrize("name", CASES)
def test_web_assembly(name):
    """It is compiled; nothing here runs it."""
    exported, _ = next(artifacts(CASES[name]))
    made = lambda: compiler.compile_str(  # noqa: E731
        exported.mlir_module_serialized, input_type="stablehlo", target_backends=["llvm-cpu"],
        extra_args=WEB,
    )  # fmt: skip
    if name in UNLINKED:
        with pytest.raises(compiler.CompilerToolError, match=f"symbol: {UNLINKED[name]}"):
            made()
    else:
        assert (b"\0asm" in made()) == (name not in COPIES)


def test_what_is_named_is_there():
    named = {name for name, _ in {*REFUSED, *WRONG}} | {*REFERENCES, *UNLINKED, *COPIES}
    assert named <= {*CASES}
