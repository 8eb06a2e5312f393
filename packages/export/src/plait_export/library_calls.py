"""Verification of the calls of linear algebra libraries in modules that were read.

A kernel trusts the shapes and letters that it is passed: with wrong ones it reads and writes memory
out of bounds.  Untrusted modules are therefore verified before they are compiled: the number and
types of operands and results, and the kernel's attributes.  Signatures are those of jaxlib's
kernels; sizes are LAPACK's (https://www.netlib.org/lapack/explore-html/).

Invariant: a module that was read is compiled only after all its calls of kernels of `STABLE` have
been verified with sizes that are numbers.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from plait.ext.lower import STABLE, mlir

from .errors import ArtifactError

Size = int | None
"""The size of an axis; None if it is unknown until the module is specialised to sizes."""


class Kernel(NamedTuple):
    """One signature of a kernel.

    Attributes:
      takes, returns: types of operands and results, as `x[m,n]`: kind of elements, and sizes after
        the stack axes.  `x` is the element type of the matrix, `r` its real type, `c` its complex
        type, `i` int32; `k` is the lesser of m and n, and `n-1` is at least 0.
      told: names of its attributes, and the permitted texts of each; None for a number, which
        `holds` checks.
      holds: a further condition on sizes and attributes.
    """

    takes: str
    returns: str
    told: Mapping[str, tuple[str, ...] | None]
    holds: Callable[[Mapping[str, Any]], bool] = lambda known: True


def _letters(letters: str) -> tuple[str, ...]:
    return tuple([f"{ord(c)} : ui8" for c in letters])


_FLAG = ("true", "false")
_TRIANGLE = {"uplo": _letters("LU")}
_LOWER = {"lower": _FLAG}


def _reflects(known: Mapping[str, Any]) -> bool:
    """Check that there are at most as many reflectors as columns, and columns as rows."""
    m, n, j = (known.get(name) for name in "mnj")
    return (m is None or n is None or n <= m) and (n is None or j is None or j <= n)


def _within(known: Mapping[str, Any]) -> bool:
    n, (low, high) = known.get("n"), (_number(known[name]) for name in ("low", "high"))
    return 1 <= low <= high and (n is None or high <= n)


def _number(text: str) -> int:
    """Return the value of an i32 attribute, or -1 if the text is not one."""
    found = re.fullmatch(r"(\d+) : i32", text)
    return int(found[1]) if found else -1


_SVD = "x[m,n] r[k] x[m,m] x[n,n] i[]"
_SCHUR = {"mode": _letters("VN"), "sort": _letters("N")}
_EIG = {"compute_left": _letters("VN"), "compute_right": _letters("VN")}
_SOLVE = {"uplo": _letters("LU"), "trans_x": _letters("NTC"), "diag": _letters("NU")}
_TRIDIAGONAL = "x[n,n] r[n] r[n-1] x[n-1] i[]"

_LU = Kernel("x[m,n]", "x[m,n] i[k] i[]", {})
_QR = Kernel("x[m,n]", "x[m,n] x[k]", {})
_PRODUCT = Kernel("x[m,n] x[j]", "x[m,n]", {}, _reflects)

_OF_LAPACK: dict[str, tuple[Kernel, ...]] = {
    "potrf": (Kernel("x[n,n]", "x[n,n] i[]", _TRIANGLE),),
    "getrf": (_LU,),
    "geqrf": (_QR,),
    "orgqr": (_PRODUCT,),
    "ungqr": (_PRODUCT,),
    "gesdd": (
        Kernel("x[m,n]", _SVD, {"mode": _letters("AN")}),
        Kernel("x[m,n]", "x[m,n] r[k] x[m,k] x[k,n] i[]", {"mode": _letters("S")}),
    ),
    "syevd": (Kernel("x[n,n]", "x[n,n] r[n] i[]", {"mode": _letters("VN"), **_TRIANGLE}),),
    "geev": (Kernel("x[n,n]", "x[n] x[n] c[n,n] c[n,n] i[]", _EIG),),
    "gees": (Kernel("x[n,n]", "x[n,n] x[n,n] x[n] x[n] i[] i[]", _SCHUR),),
    "gehrd": (Kernel("x[n,n]", "x[n,n] x[n-1] i[]", {"low": None, "high": None}, _within),),
    "sytrd": (Kernel("x[n,n]", _TRIDIAGONAL, _TRIANGLE),),
    "trsm": (
        Kernel("x[m,m] x[m,n]", "x[m,n]", {"side": _letters("L"), **_SOLVE}),
        Kernel("x[n,n] x[m,n]", "x[m,n]", {"side": _letters("R"), **_SOLVE}),
    ),
    "gtsv": (Kernel("x[n] x[n] x[n] x[n,j]", "x[n] x[n] x[n] x[n,j] i[]", {}),),
}
_OF_COMPLEX = {
    "heevd": _OF_LAPACK["syevd"],
    "hetrd": _OF_LAPACK["sytrd"],
    "geev": (Kernel("x[n,n]", "x[n] x[n,n] x[n,n] i[]", _EIG),),
    "gees": (Kernel("x[n,n]", "x[n,n] x[n,n] x[n] i[] i[]", _SCHUR),),
}
_OF_SOLVERS = {
    "potrf": (Kernel("x[n,n]", "x[n,n] i[]", _LOWER),),
    "getrf": (_LU,),
    "geqrf": (_QR,),
    "orgqr": (_PRODUCT,),
    "syevd": (Kernel("x[n,n]", "x[n,n] r[n] i[]", {"algorithm": _letters("\0\1\2"), **_LOWER}),),
    "gesvdj": (
        Kernel("x[m,n]", _SVD, {"full_matrices": ("true",), "compute_uv": _FLAG}),
        Kernel("x[m,n]", "x[m,n] r[k] x[m,k] x[n,k] i[]",
               {"full_matrices": ("false",), "compute_uv": _FLAG}),
    ),
    "sytrd": (Kernel("x[n,n]", _TRIDIAGONAL, _LOWER),),
    "gtsv2": (Kernel("x[n] x[n] x[n] x[n,j]", "x[n,j]", {}),),
}  # fmt: skip
_OF_TPUS = {
    "Eigh": (Kernel("x[n,n]", "x[n,n] r[n]", {}),),
    "LuDecomposition": (Kernel("x[m,n]", "x[m,n] i[k] i[m]", {}),),
    "Qr": (_QR,),
    "ProductOfElementaryHouseholderReflectors": (_PRODUCT,),
}

_ELEMENTS = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}
_LAPACK = re.compile(r"lapack_([sdcz])([a-z]+)_ffi")
_SOLVER = re.compile(r"(?:cusolver|hipsolver|cusparse)_(\w+)_ffi")

_SAID = frozenset(
    {
        *("call_target_name", "api_version", "has_side_effect", "backend_config"),
        *("mhlo.backend_config", "mhlo.frontend_attributes", "operand_layouts", "result_layouts"),
        *("output_operand_aliases", "sdy.sharding_rule", "indices_of_shape_operands"),
        "called_computations",
    }
)
"""Permitted attributes of calls; the compiler may act on others in ways that are not checked."""


@cache
def signatures(target: str) -> tuple[tuple[str, ...], tuple[Kernel, ...]]:
    """Return (the element types that matrices may have, the signatures) of a kernel."""
    found = _LAPACK.fullmatch(target)
    if found:
        letter, routine = found.groups()
        ways = _OF_COMPLEX if letter in "cz" and routine in _OF_COMPLEX else _OF_LAPACK
        return (_ELEMENTS[letter],), ways[routine]
    found = _SOLVER.fullmatch(target)
    if found:
        return tuple(_ELEMENTS.values()), _OF_SOLVERS[found[1]]
    return (*_ELEMENTS.values(), "bf16", "f16"), _OF_TPUS[target]


# ---- against a module ----------------------------------------------------------------------


def check_library_calls(operations: Iterable[Any]) -> None:
    """Raise ArtifactError, naming the kernel, for a call that does not match its signatures.

    Args:
      operations: operations named stablehlo.custom_call; calls of functions outside the libraries
        are not checked.
    """
    for op in operations:
        target = op.attributes["call_target_name"].value
        if target in STABLE:
            why = _wrong_with(op, target)
            if why:
                raise ArtifactError(
                    f"the artifact is damaged: it calls {target} with what that does not take: "
                    f"{why}"
                )


def _wrong_with(op: Any, target: str) -> str:
    """Return the defect of a call, in words; an empty string if it has none."""
    unknown = sorted({*op.attributes} - _SAID)
    if unknown:
        return f"the attribute {unknown[0]}"
    if _flag(op, "has_side_effect") or len(_listed(op, "called_computations")):
        return "a side effect"
    told = _told(op) if target.endswith("_ffi") else {}
    if told is None:
        return "it is not called by the interface for such kernels"
    operands, results = [_typed(x.type) for x in op.operands], [_typed(x.type) for x in op.results]
    shapes = "indices_of_shape_operands" in op.attributes
    if shapes:
        given = operands[len(operands) - len(results) :]
        at = list(op.attributes["indices_of_shape_operands"])
        whole = list(range(len(operands) - len(results), len(operands)))
        if at != whole or any(not _is_shape_of(g, r) for g, r in zip(given, results)):
            return "its shape operands"
        operands = operands[: len(operands) - len(results)]
    if None in operands or None in results:
        return "values that are not arrays"
    elements, ways = signatures(target)
    found = [_mismatch(way, elements, operands, results, told) for way in ways]
    return "" if "" in found else found[0]


def _flag(op: Any, name: str) -> bool:
    return name in op.attributes and op.attributes[name].value


def _listed(op: Any, name: str) -> list:
    return list(op.attributes[name]) if name in op.attributes else []


def _told(op: Any) -> dict[str, str] | None:
    """Return the attributes of a kernel as texts; None if the call does not use the FFI.

    Modules in older versions of StableHLO hold them under another name.
    """
    version = op.attributes["api_version"].value if "api_version" in op.attributes else 1
    ours, older = ("backend_config" in op.attributes, "mhlo.backend_config" in op.attributes)
    if version != (1 if older else 4) or ours and older:
        return None
    if not ours and not older:
        return {}
    held = op.attributes["mhlo.backend_config" if older else "backend_config"]
    if not isinstance(held, mlir.bindings().ir.DictAttr):
        return None
    return {each.name: str(each.attr) for each in held}


class _Type(NamedTuple):
    element: str
    shape: tuple[Size, ...]


def _typed(kind: Any) -> _Type | None:
    if not isinstance(kind, mlir.bindings().ir.RankedTensorType):
        return None
    sizes = [None if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank)]
    return _Type(str(kind.element_type), tuple(sizes))


def _is_shape_of(given: _Type | None, of: _Type | None) -> bool:
    if given is None or of is None:
        return False
    return given.element in ("i32", "i64") and given.shape == (len(of.shape),)


def _mismatch(
    way: Kernel,
    elements: tuple[str, ...],
    operands: list,
    results: list,
    told: Mapping[str, str],
) -> str:
    """Return, in words, how a call differs from a signature; an empty string if it matches."""
    if told.keys() != way.told.keys():
        return f"it is told {sorted(told)}, and is to be told {sorted(way.told)}"
    for name, may_be in way.told.items():
        if may_be is not None and told[name] not in may_be:
            return f"{name} = {told[name]}"
    takes, returns = way.takes.split(), way.returns.split()
    if len(takes) != len(operands) or len(returns) != len(results):
        return f"{len(operands)} operands and {len(results)} results"
    sizes = _sizes_of(takes[0])
    first: _Type = operands[0]
    stacked = len(first.shape) - len(sizes)
    if stacked < 0 or first.element not in elements:
        return _shown(first)
    kinds = {"x": first.element, "i": "i32", **_related(first.element)}
    known: dict[str, Any] = {f"stack {i}": n for i, n in enumerate(first.shape[:stacked])}
    unsure: list[tuple[str, Size]] = []
    for text, each in zip(takes + returns, operands + results, strict=True):
        sizes = _sizes_of(text)
        if each.element != kinds[text[0]] or len(each.shape) != stacked + len(sizes):
            return f"{_shown(each)} for {text}"
        names = [*[f"stack {i}" for i in range(stacked)], *sizes]
        for name, n in zip(names, each.shape, strict=True):
            if name in ("k", "n-1"):
                unsure.append((name, n))
            elif n is not None and known.setdefault(name, n) not in (n, None):
                return f"{_shown(each)} for {text}"
            elif n is not None:
                known[name] = n
    for name, n in unsure:
        want = _derived(name, known)
        if None not in (want, n) and want != n:
            return f"a size of {n} for {name} of {known}"
    if not way.holds({**known, **told}):
        return f"sizes {known}, told {dict(told)}"
    return ""


def _sizes_of(text: str) -> list[str]:
    inside = text[2:-1]
    return inside.split(",") if inside else []


def _related(element: str) -> dict[str, str]:
    """Return the real and the complex element type of the same precision."""
    real = element.removeprefix("complex<").removesuffix(">")
    return {"r": real, "c": f"complex<{real}>"}


def _derived(name: str, known: Mapping[str, Any]) -> Size:
    m, n = known.get("m"), known.get("n")
    if name == "n-1":
        return None if n is None else max(n - 1, 0)
    return None if m is None or n is None else min(m, n)


def _shown(kind: _Type) -> str:
    return f"{kind.element}[{','.join('?' if n is None else str(n) for n in kind.shape)}]"
