"""The names of Plait's primitives and of their parameters in JAX's programs.

Invariant: names are exchanged only where the meaning is the same; primitives without a JAX name
keep Plait's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Spelling", "in_plait", "spelling"]

Params = dict[str, Any]


class Spelling(NamedTuple):
    """The JAX spelling of a primitive.

    Attributes:
      name: JAX's name.
      params: Plait's name -> JAX's name, of the parameters with different names.
      order: the operands in JAX's order, where it differs.
      out, back: further changes of parameters, towards JAX and back.
    """

    name: str
    params: dict[str, str] = {}
    order: tuple[int, ...] | None = None
    out: Callable[[Params], Params] = lambda params: params
    back: Callable[[Params], Params] = lambda params: params


def _dots_out(params: Params) -> Params:
    numbers = params.pop("contract"), params.pop("shared")
    return {"dimension_numbers": numbers, **params}


def _dots_back(params: Params) -> Params:
    contract, shared = params.pop("dimension_numbers")
    return {"contract": contract, "shared": shared, **params}


def _axis_out(params: Params) -> Params:
    return {"axes": (params.pop("axis"),), **params}


def _axis_back(params: Params) -> Params:
    return {"axis": params.pop("axes")[0], **params}


def _pads_out(params: Params) -> Params:
    rows = zip(params.pop("low"), params.pop("high"), params.pop("interior"), strict=True)
    return {"padding_config": tuple(rows), **params}


def _pads_back(params: Params) -> Params:
    low, high, interior = zip(*params.pop("padding_config"), strict=True)
    return {"low": low, "high": high, "interior": interior, **params}


_OF_JIT: Params = {
    "ctx_mesh": None,
    "compiler_options_kvs": (),
    "inline": False,
    "keep_unused": False,
}
"""Parameters of JAX's `jit` that no call of Plait has."""


def _call_out(params: Params) -> Params:
    program = params["program"]
    unknown, results = (None,) * len(program.inputs), (None,) * len(program.outputs)
    return {
        **params,
        **_OF_JIT,
        "name": program.name,
        "donated_invars": (False,) * len(program.inputs),
        "in_shardings": unknown,
        "out_shardings": results,
        "in_layouts": unknown,
        "out_layouts": results,
    }


_NEW_OF_CALLS = {*_OF_JIT, "name", "donated_invars", "in_shardings", "out_shardings", "in_layouts",
                 "out_layouts"}  # fmt: skip


def _call_back(params: Params) -> Params:
    return {k: v for k, v in params.items() if k not in _NEW_OF_CALLS}


def _mapped_out(params: Params) -> Params:
    return {"newly_manual_axes": frozenset(params.pop("axes")), **params}


def _mapped_back(params: Params) -> Params:
    axes = params.pop("newly_manual_axes")
    return {"axes": tuple(a for a in params["mesh"].axis_names if a in axes), **params}


_SPELLINGS = {
    "core.argmax": Spelling("argmax", out=_axis_out, back=_axis_back),
    "core.argmin": Spelling("argmin", out=_axis_out, back=_axis_back),
    "core.barrier": Spelling("optimization_barrier"),
    "core.bitcast": Spelling("bitcast_convert_type", {"dtype": "new_dtype"}),
    "core.broadcast_in_dim": Spelling("broadcast_in_dim", {"dims": "broadcast_dimensions"}),
    "core.call": Spelling("jit", {"program": "jaxpr"}, out=_call_out, back=_call_back),
    "core.conj": Spelling(
        "conj", back=lambda params: {k: v for k, v in params.items() if k != "input_dtype"}
    ),
    "core.concatenate": Spelling("concatenate", {"axis": "dimension"}),
    "core.conv_general": Spelling("conv_general_dilated", {"dims": "dimension_numbers"}),
    "core.convert": Spelling("convert_element_type", {"dtype": "new_dtype", "weak": "weak_type"}),
    "core.dot_general": Spelling("dot_general", out=_dots_out, back=_dots_back),
    "core.dynamic_slice": Spelling("dynamic_slice", {"sizes": "slice_sizes"}),
    "core.integer_pow": Spelling("integer_pow", {"exponent": "y"}),
    "core.iota": Spelling("iota", {"axis": "dimension"}),
    "core.maximum": Spelling("max"),
    "core.minimum": Spelling("min"),
    "core.pad": Spelling("pad", out=_pads_out, back=_pads_back),
    "core.reshape": Spelling("reshape", {"shape": "new_sizes"}),
    "core.rev": Spelling("rev", {"axes": "dimensions"}),
    "core.round_away": Spelling("round"),
    "core.scan": Spelling("scan", {"body": "jaxpr", "consts": "num_consts", "carry": "num_carry"}),
    "core.select": Spelling("select_n", order=(0, 2, 1)),
    "core.slice": Spelling("slice", {"starts": "start_indices", "limits": "limit_indices"}),
    "core.sort": Spelling("sort", {"axis": "dimension", "stable": "is_stable"}),
    "core.squeeze": Spelling("squeeze", {"axes": "dimensions"}),
    "core.stop": Spelling("stop_gradient"),
    "core.transpose": Spelling("transpose", {"perm": "permutation"}),
    "core.while": Spelling(
        "while",
        {
            "cond": "cond_jaxpr",
            "body": "body_jaxpr",
            "cond_consts": "cond_nconsts",
            "body_consts": "body_nconsts",
        },
    ),
    "autodiff.checkpoint": Spelling("remat2", {"program": "jaxpr", "again": "differentiated"}),
    "autodiff.custom_jvp_call": Spelling("custom_jvp_call", {"program": "call_jaxpr"}),
    "sharding.shard_map": Spelling(
        "shard_map", {"program": "jaxpr", "typed": "check_vma"}, out=_mapped_out, back=_mapped_back
    ),
    "autodiff.custom_vjp_call": Spelling("custom_vjp_call", {"program": "call_jaxpr"}),
}

_OURS = {row.name: name for name, row in _SPELLINGS.items()}
_OURS |= {
    "remat": "autodiff.checkpoint",
    "checkpoint": "autodiff.checkpoint",
    "closed_call": "core.call",
}


def spelling(name: str) -> Spelling:
    """Return the JAX spelling of Plait's primitive of this name.

    >>> spelling("core.maximum").name, spelling("core.sin").name
    ('max', 'sin')
    """
    return _SPELLINGS.get(name) or Spelling(name.rpartition(".")[2])


def in_plait(name: str) -> str:
    """Return the name of Plait's primitive for a JAX name; it may not exist.

    >>> in_plait("max"), in_plait("sin")
    ('core.maximum', 'core.sin')
    """
    return _OURS.get(name, f"core.{name}")
