"""The signatures of public functions name types, not `Any`.

Invariant: signatures are read from the running package, by the functions that users get.
"""

import inspect
from typing import Any

import plait

from .public_functions import OTHERS, SURFACES, functions

TREES = {
    "broadcast", "custom_linear_solve", "custom_root", "custom_vjp_primal_tree_values",
    "device_get", "eval_shape", "io_callback", "linear_call",
    "make_array_from_process_local_data", "map", "map_with_path", "pure_callback",
    "symbolic_args_specs", "transpose", "unflatten",
}  # fmt: skip
"""Functions whose result is a tree that no annotation describes."""
OF_OTHERS = {"key_value_get", "static"}
"""Functions whose result is whatever was stored, or stands for a field of any type."""


def is_any(annotation: object) -> bool:
    return annotation is Any or annotation is inspect.Parameter.empty


def test_functions_of_arrays_return_arrays():
    found = dict(functions(SURFACES))
    assert len(found) > 700
    assert not [name for name, f in found.items() if is_any(f.return_annotation)]
    arrays = [f for f in found.values() if f.return_annotation is plait.Array]
    assert len(arrays) > len(found) * 3 / 4


def test_other_functions_return_any_for_trees_only():
    every = dict(functions(OTHERS))
    found = {name.rpartition(".")[2] for name, f in every.items() if is_any(f.return_annotation)}
    assert found <= TREES | OF_OTHERS


def test_every_parameter_is_annotated():
    bare = [
        f"{name}({p.name})"
        for name, f in functions([*SURFACES, *OTHERS])
        for p in f.parameters.values()
        if p.annotation is inspect.Parameter.empty
    ]
    assert not bare


def test_few_parameters_are_of_any_type():
    kinds = [
        p.annotation
        for _, f in functions([*SURFACES, *OTHERS])
        for p in f.parameters.values()
        if p.name not in ("args", "kwargs")
    ]
    unknown = sum(map(is_any, kinds))
    assert unknown < 0.15 * len(kinds), f"{unknown} of {len(kinds)}"
