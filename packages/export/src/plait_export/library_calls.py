"""Calls of libraries of linear algebra: what each kernel takes and returns, held against modules.

A kernel believes the shapes and letters that it is given: one that is lied to reads and writes
memory that is not its own.  So what strangers wrote is verified here before it is compiled: number
and types of operands and results, and what the kernel is told.  Signatures are those by which
jaxlib's kernels are called; the sizes are LAPACK's (https://www.netlib.org/lapack/explore-html/).

Invariant: no module that was read is compiled with a call of a kernel of `STABLE` that this has not
let through with sizes that are numbers.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from plait.ext.lower import STABLE, mlir

from .errors import ArtifactError

Size = int | None
"""Of an axis; None if it is not known before the module is made for given sizes."""


class Kernel(NamedTuple):
    """One way in which a kernel is called.

    Attributes:
      takes, returns: types of operands and results, as `x[m,n]`: kind of elements, and sizes beside
        the axes that count matrices.  `x` is what the matrix has, `r` its real type, `c` its
        complex one, `i` int32; `k` is the lesser of m and n, and `n-1` at least 0.
      told: names of what it is told, and the texts that each may be; None for a number, which
        `holds` looks at.
      holds: a further condition on sizes and on what it is told.
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
    """No more reflectors than columns, and no more columns than rows."""
    m, n, j = (known.get(name) for name in "mnj")
    return (m is None or n is None or n <= m) and (n is None or j is None or j <= n)


def _within(known: Mapping[str, Any]) -> bool:
    n, (low, high) = known.get("n"), (_number(known[name]) for name in ("low", "high"))
    return 1 <= low <= high and (n is None or high <= n)


def _number(text: str) -> int:
    """What an i32 is, or -1 for what is none."""
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
"""What is said of calls; the compiler does by other attributes what nobody has thought of."""


@cache
def signatures(target: str) -> tuple[tuple[str, ...], tuple[Kernel, ...]]:
    """(the elements that matrices may have, the ways in which it is called) of a kernel."""
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
    """Raise ArtifactError, naming the kernel, for a call that is not as the kernel wants it.

    Args:
      operations: those named stablehlo.custom_call; of other functions than the libraries' nothing
        is said.
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
    """What is wrong with a call; empty if nothing is."""
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
        return "values that are no arrays"
    elements, ways = signatures(target)
    found = [_mismatch(way, elements, operands, results, told) for way in ways]
    return "" if "" in found else found[0]


def _flag(op: Any, name: str) -> bool:
    return name in op.attributes and op.attributes[name].value


def _listed(op: Any, name: str) -> list:
    return list(op.attributes[name]) if name in op.attributes else []


def _told(op: Any) -> dict[str, str] | None:
    """What a kernel of the newer interface is told, as texts; None if it is not called by it.

    Modules in older versions of StableHLO say it by an attribute of another name.
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
    """What does not fit one way of calling a kernel; empty if all does."""
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
    """The real and the complex type of as many bits."""
    real = element.removeprefix("complex<").removesuffix(">")
    return {"r": real, "c": f"complex<{real}>"}


def _derived(name: str, known: Mapping[str, Any]) -> Size:
    m, n = known.get("m"), known.get("n")
    if name == "n-1":
        return None if n is None else max(n - 1, 0)
    return None if m is None or n is None else min(m, n)


def _shown(kind: _Type) -> str:
    return f"{kind.element}[{','.join('?' if n is None else str(n) for n in kind.shape)}]"
