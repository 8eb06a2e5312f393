"""Calls of libraries of linear algebra in artifacts: each is held against what the kernel takes."""

import re

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import PlaitError
from plait.ext.lower import STABLE, lock, mlir
from plait_export import ArtifactError, container, deserialize, export, symbolic_args_specs
from plait_export.library_calls import signatures
from plait_export.portable import artifact_of

linalg, solve = plait.numpy.linalg, lax.linalg.triangular_solve
N, M = 3, 5
SQUARE, TALL, WIDE = (N, N), (M, N), (N, M)
FUNCTIONS = {
    "cholesky": (linalg.cholesky, SQUARE),
    "lu": (lax.linalg.lu, TALL),
    "qr": (linalg.qr, TALL),
    "svd": (linalg.svd, TALL),
    "thin svd": (lambda x: linalg.svd(x, full_matrices=False), WIDE),
    "singular values": (lambda x: linalg.svd(x, compute_uv=False), TALL),
    "eigh": (linalg.eigh, SQUARE),
    "eig": (linalg.eig, SQUARE),
    "schur": (lax.linalg.schur, SQUARE),
    "hessenberg": (lax.linalg.hessenberg, SQUARE),
    "tridiagonal": (lax.linalg.tridiagonal, SQUARE),
    "from the left": (lambda x, y: solve(x, y, left_side=True), SQUARE, WIDE),
    "from the right": (lambda x, y: solve(x, y, left_side=False), SQUARE, TALL),
    "tridiagonal solve": (lax.linalg.tridiagonal_solve, (N,), (N,), (N,), (N, 2)),
}
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def exported(name: str, dtype, stacked: bool, platform: str):
    f, *shapes = FUNCTIONS[name]
    lead = (2,) if stacked else ()
    args = [np.zeros((*lead, *shape), dtype) for shape in shapes]
    types = symbolic_args_specs(tuple(args), "b, ...") if stacked else args
    try:
        return export(f, platforms=[platform])(*types)
    except PlaitError as e:
        assert re.search("library|is not known|of which nothing is promised|no form", e.what), e
        return None


@pytest.mark.sampled(16)
@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_written_here_is_read(name, platform):
    for dtype in DTYPES:
        for stacked in (False, True):
            made = exported(name, dtype, stacked, platform)
            if made is not None:
                again = deserialize(made.serialize())
                assert again.custom_calls == made.custom_calls
                if stacked and platform == "cpu":
                    again.specialize({"b": 2}, platform)


def test_every_kernel_has_a_signature():
    for target in STABLE:
        elements, ways = signatures(target)
        assert elements and ways, target


# ---- hostile modules -----------------------------------------------------------------------


def lines_of(name: str, dtype):
    """The calls of libraries, without what is said of layouts, aliases and divisions."""
    made = exported(name, dtype, False, "cpu")
    assert made is not None
    for line in re.findall(r"stablehlo\.custom_call @lapack.*", made.mlir_module()):
        target, config = (
            re.findall(r"@(\w+)", line)[0],
            re.search(r"backend_config = \{(.*?)\}", line),
        )
        said = f"{{api_version = 4 : i32, backend_config = {{{config[1] if config else ''}}}}}"
        yield f"stablehlo.custom_call @{target}() {said}{line[line.rindex(' : (') :]}"


def shown(kind: str) -> str:
    """A type of StableHLO's as manifests have it."""
    *sizes, element = kind.removeprefix("tensor<")[:-1].split("x")
    if "comple" in kind:  # whose name has an x
        sizes, element = (
            [n for n in sizes if n.isdigit()],
            {"<f32>": "c64", "<f64>": "c128"}[element],
        )
    return f"{element}[{','.join(sizes)}]"


def artifact_with(line: str, platform: str = "cpu") -> bytes:
    """An artifact that returns the first thing that it calls a library for."""
    taken = re.search(r" : \((.*?)\) -> \(?(.*?)\)?$", line)
    assert taken is not None
    (target,) = re.findall(r"@(\w+)", line)
    operands = taken[1].split(", ") if taken[1] else []
    made = "\n".join(
        f"%a{i} = stablehlo.constant dense<{'(1.0, 0.0)' if 'complex' in t else 1.0}> : {t}"
        for i, t in enumerate(operands)
    )
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    line = re.sub(r"\([^)]*\) \{", f"({names}) {{", line, count=1)
    count = len(taken[2].split(", "))
    first = taken[2].split(", ")[0]
    text = f"""module {{ func.func public @main(%x: tensor<2xf32>) -> {first} {{
        {made}
        %r{f":{count}" if count > 1 else ""} = {line}
        return %r{"#0" if count > 1 else ""} : {first} }} }}"""
    with lock:
        code = mlir.bytecode(mlir.parse(text.encode()))
    side = {"types": ["f32[2]"], "tree": {"tuple": [{"tuple": ["*"]}, {"dict": []}]}}
    manifest = {"format": 1, "min_reader": 1, "producer": "nobody", "requires": [], "name": "f",
                "platforms": [platform], "custom_calls": [target], "sizes": None, "inputs": side,
                "outputs": {"types": [shown(first)], "tree": "*"}}  # fmt: skip
    return container.pack(manifest, {"main.mlirbc": artifact_of(code, False)})


def used(artifact: bytes) -> bytes:
    """Its module, which is verified when it is first asked for."""
    return deserialize(artifact).mlir_module_serialized


OTHER = {"f32": "f64", "f64": "f32", "i32": "i64"}


def mutants(line: str):
    """The call with one thing changed: a size, an element type, what it is told, an operand."""
    types = line.rindex(" : (")
    for found in re.finditer(r"(?<=[<x])\d+(?=x)", line[types:]):
        at, end = types + found.start(), types + found.end()
        yield f"{line[:at]}{int(found[0]) + 50}{line[end:]}"
    for found in re.finditer(r"f32|f64|i32", line[types:]):
        at, end = types + found.start(), types + found.end()
        yield f"{line[:at]}{OTHER[found[0]]}{line[end:]}"
    for found in re.finditer(r"(?<!version = )(\d+) : (ui8|i32)(?=[,}])", line[:types]):
        yield f"{line[: found.start()]}{int(found[1]) + 60} : {found[2]}{line[found.end() :]}"
        yield f"{line[: found.start()]}{found[1]} : i64{line[found.end() :]}"
    joined = "" if "backend_config = {}" in line else ", "
    yield line.replace("backend_config = {", f"backend_config = {{more = true{joined}", 1)
    yield line.replace("backend_config = {", "has_side_effect = true, backend_config = {", 1)
    yield line.replace("backend_config = {", "strange = 1 : i32, backend_config = {", 1)
    yield line.replace("api_version = 4", "api_version = 1").replace("backend_config", "with")
    yield line.replace("(tensor", "(tensor<1xf32>, tensor", 1)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_of_other_sizes_or_letters_is_refused(name, dtype):
    for line in lines_of(name, dtype):
        used(artifact_with(line))  # the call itself is let through
        changed = [m for m in mutants(line) if m != line]
        assert len(changed) > 5
        for mutant in changed:
            with pytest.raises(ArtifactError, match="with what that does not take") as e:
                used(artifact_with(mutant))
            assert e.value.fix and "test_library_calls.py" in str(e.value), mutant


def test_more_reflectors_than_columns_are_refused():
    line = (
        "stablehlo.custom_call @lapack_sorgqr_ffi(%x, %y) {api_version = 4 : i32, "
        "backend_config = {}} : (tensor<5x3xf32>, tensor<COUNTxf32>) -> tensor<5x3xf32>"
    )
    used(artifact_with(line.replace("COUNT", "2")))
    for count in ("4", "50"):
        with pytest.raises(ArtifactError, match="lapack_sorgqr_ffi"):
            used(artifact_with(line.replace("COUNT", count)))


def test_rows_to_reduce_are_among_the_rows():
    (line,) = lines_of("hessenberg", np.float32)
    for low, high in ((0, 3), (3, 2), (1, 4), (-1, 3)):
        text = line.replace("high = 3", f"high = {high}").replace("low = 1", f"low = {low}")
        with pytest.raises(ArtifactError, match="lapack_sgehrd_ffi"):
            used(artifact_with(text))


def test_sizes_that_are_found_out_when_it_is_called():
    """What a module says of symbolic sizes is verified again when they are numbers."""
    made = exported("cholesky", np.float32, True, "cpu")
    assert made is not None
    text = made.mlir_module()
    (call,) = re.findall(r"%\S+ = stablehlo\.custom_call @lapack.*", text)
    shape, flags = re.findall(r"\((%\w+, %\w+, %\w+)\)", call)[0].split(", ")[1:]
    short = f"""%few = stablehlo.constant dense<1> : tensor<1xi32>
    {call.replace(f", {flags})", ", %few)")}"""
    text = text.replace(call, short)
    assert shape and text != made.mlir_module()
    with lock:
        code = mlir.bytecode(mlir.parse(text.encode()))
    saved = made.serialize()
    manifest, _ = container.unpack(saved, (9, 9, 9))
    manifest.pop("members")
    data = container.pack(manifest, {"main.mlirbc": artifact_of(code, True)})
    x = np.stack([np.eye(N, dtype=np.float32)] * 4)
    np.testing.assert_array_equal(deserialize(saved).call(x), x)
    with pytest.raises(ArtifactError, match="lapack_spotrf_ffi|cannot be made"):
        deserialize(data).call(x)
