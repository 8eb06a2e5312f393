"""The rows of the comparison: what is measured, and which ratio is the goal.

Invariant: a row's goal is jax's time over ours (or its bytes over ours).
"""

import importlib
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table.

    Attributes:
      label: what is done.
      names: the workloads, whose times are added; `start:` and `session:` name processes.
      goal: the ratio that is wanted; None where none is.
      quick: whether it is measured by `--quick`.
    """

    label: str
    names: tuple[str, ...]
    goal: float | None = None
    quick: bool = False


def _row(label: str, names: str, goal: float | None = None, *, quick: bool = False) -> Row:
    return Row(label, tuple(names.split()), goal, quick)


_SESSIONS = {
    "notebook": "a notebook of 30 small functions",
    "analysis": "an analysis, nothing compiled by hand",
    "ode_fit": "a fit of an ODE",
    "training": "a first training script",
    "transformer": "a transformer of 12 layers",
}

_operations = importlib.import_module("operations")
_GROWN = [name for names in _operations.GROWTH.values() for name in names.values()]


def _gradients(grown: bool) -> list[Row]:
    """Rows of the operations that torch has too, of one size or of several."""
    found = _operations.OPERATIONS.items()
    return [_row(o.label, name, o.goal) for name, o in found if (name in _GROWN) == grown]


GROUPS: dict[str, list[Row]] = {
    "Start": [
        _row("import", "start:import_only", 2.5, quick=True),
        _row("import + first operation", "start:first_eager_op", 3.0, quick=True),
    ],
    "Sessions, CPU time from the start of the process": [
        *[_row(text, f"session:{name}", 1.0) for name, text in _SESSIONS.items()],
        *[
            _row(f"{text}, second start", f"again:{name}", 2.0 if name == "notebook" else 1.0)
            for name, text in _SESSIONS.items()
        ],
        *[
            _row(f"{text}, fast tier", f"fast:{name}", 2.5 if name == "notebook" else 1.0)
            for name, text in _SESSIONS.items()
        ],
        _row("30 results of 64 MB, memory kept", "session:large", 1.0),
    ],
    "Peak memory": [
        *[_row(text, f"peak:{name}", 1.0) for name, text in _SESSIONS.items()],
        _row("steps on 256 MB, donated", "peak:donation", 1.0),
        _row("gradient of 32 layers, checkpointed", "peak:checkpointed", 1.0),
        _row("the same, scanned", "peak:checkpointed_scan", 1.0),
    ],
    "Operations": [
        _row("sin(x)", "eager_np_sin_2x2", 1.1, quick=True),
        _row("x + y", "eager_operator_add_2x2", 1.4, quick=True),
        _row("x + 1", "eager_operator_add_pyscalar", 1.7),
        _row("where", "eager_where", 2.5, quick=True),
        _row("x[3]", "eager_index_static", 5.0),
        _row("x.at[3].set", "eager_at_set", 15.0),
        _row("sum over an axis", "eager_sum_axis", 1.2, quick=True),
        _row("reshape", "eager_reshape", 3.0, quick=True),
        _row("matmul", "eager_matmul_2x2", 1.2, quick=True),
        _row("random.normal", "eager_random_normal", 2.0),
        _row("random.split", "eager_random_split", 4.0),
    ],
    "Transformations of operations": [
        _row("grad, small", "eager_grad_small", 15.0, quick=True),
        _row("value_and_grad, MLP", "eager_value_and_grad_mlp", 15.0, quick=True),
        _row("vmap(grad)", "eager_vmap_grad_small", 10.0),
        _row("grad(grad)", "eager_grad_grad_small", 10.0),
        _row("jvp", "eager_jvp_small", 4.0),
        _row("vmap", "eager_vmap_small", 5.0),
        _row("linearize", "eager_linearize_small", 8.0),
    ],
    "Calls of compiled functions": [
        _row("1 argument", "jit_dispatch_1_args", 1.0, quick=True),
        _row("10 arguments", "jit_dispatch_10_args", 1.1, quick=True),
        _row("100 arguments", "jit_dispatch_100_args", 1.4),
        _row("1000 arguments", "jit_dispatch_1000_args", 1.0),
        _row("a tree of 100", "jit_dispatch_pytree_in_100", 1.0),
        _row("trees in and out", "jit_dispatch_pytree_inout_100", 1.0),
        _row("keyword arguments", "jit_dispatch_kwargs", 1.0),
        _row("static arguments", "jit_dispatch_static_args", 1.0),
        _row("numpy arguments", "jit_dispatch_numpy_args", 1.0),
        _row("Python scalars", "jit_dispatch_pyscalar_args", 1.0),
        _row("donated", "jit_dispatch_donated", 1.0),
        _row("compiled object", "aot_compiled_call", 1.0, quick=True),
        _row("compiled object, 10 arguments", "aot_compiled_call_10", 1.0),
        _row("jit of the same function again", "rejit_same_function", 4.0),
        _row("an equal function defined again", "retrace_after_redefinition", 5.0),
    ],
    "Between numpy and the device": [
        _row("numpy -> device, small", "device_put_numpy_1", 4.0, quick=True),
        _row("numpy -> device, 4 MB", "device_put_numpy_4mb"),
        _row("device -> numpy", "device_to_numpy", 1.0, quick=True),
        _row("result -> numpy", "result_to_numpy", 1.0),
    ],
    "Tracing": [
        _row("jit_add_chain", "jit_add_chain_trace", 8.0, quick=True),
        _row("2000 operations (lax)", "trace_lax2000", 6.0),
        _row("2000 operations (numpy)", "trace_elementwise2000", 12.0, quick=True),
        _row("jvp of 2000", "trace_jvp_elem2000", 9.0),
        _row("vmap of 2000", "trace_vmap_elem2000", 12.0),
        _row("grad of 2000", "trace_grad_elem2000", 15.0, quick=True),
        _row("hessian of an MLP", "trace_hessian_mlp", 12.0),
        _row("a transformer step", "trace_tf12_step_unrolled", 10.0, quick=True),
        _row("the same, scanned", "trace_tf12_step_scanned", 6.0),
        _row("a convnet gradient", "trace_convnet_grad", 6.0),
    ],
    "Lowering": [
        _row("jit_add_chain, with its trace", "jit_add_chain_trace jit_add_chain_lower", 12.0),
        _row("a transformer step", "lower_tf12_step_unrolled", 6.0, quick=True),
        _row("grad of 2000", "lower_grad_elem2000", 6.0),
        _row("a convnet gradient", "lower_convnet_grad", 6.0),
    ],
    "Compiling": [
        _row("jit_add_chain, all of it", "jit_add_chain", 1.2),
        _row("an MLP gradient", "compile_mlp_grad", 1.0, quick=True),
        _row("a convnet gradient", "compile_convnet_grad", 1.0),
        _row("2000 operations", "compile_elementwise2000", 1.0),
        _row("a transformer step", "compile_tf12_step_unrolled", 1.0),
        _row("the same, layers rolled by reroll", "compile_tf12_step_rolled", 1.65),
        _row("an MLP gradient, fast tier", "compile_fast_mlp_grad", 1.8, quick=True),
        _row("a convnet gradient, fast tier", "compile_fast_convnet_grad", 2.0),
        _row("2000 operations, fast tier", "compile_fast_elementwise2000", 2.0),
        _row("a transformer step, fast tier", "compile_fast_tf12_step_unrolled", 2.0),
    ],
    "Running": [
        _row("a chain of matmuls", "run_heavy_matmul_chain", 0.97),
        _row("a convnet gradient", "run_heavy_convnet_grad", 0.97),
        _row("a transformer step, small", "run_tf12_step_unrolled_small", 0.97, quick=True),
        _row("while of 1000 turns", "run_while", 0.97),
        _row("gradient of a scan of 500", "run_scan_grad", 0.97),
        _row("the same, of a batch of 8", "run_scan_grad_batched", 0.97),
        _row("gradient of 500 scanned conds", "run_scan_cond_grad", 1.5),
        _row("that gradient's temporaries", "bytes_scan_cond_grad", 1.0),
        _row("temporaries of a convnet gradient", "bytes_convnet_grad", 1.0),
    ],
    "Gradients of operations": _gradients(grown=False),
    "Growth with size, gradients": _gradients(grown=True),
    "Sizes that differ, 13 % full": [
        _row("sums", "ragged_sum", 8.0),
        _row("softmax", "ragged_softmax", 10.0),
        _row("running sums", "ragged_cumsum", 30.0),
        _row("sorting", "ragged_sort", 10.0),
        _row("MLP and sum", "ragged_mlp", 9.0),
        _row("gradient of that", "ragged_mlp_grad", 7.0),
        _row("RNN", "ragged_rnn", 6.0),
        _row("gradient of that", "ragged_rnn_grad", 7.0),
        _row("attention", "ragged_attention", 12.0),
        _row("gradient of that", "ragged_attention_grad", 10.0),
        _row("dot_product_attention", "ragged_fused", 15.0),
    ],
    "The same, all full": [
        _row("sums", "ragged_sum_full", 1.0),
        _row("softmax", "ragged_softmax_full", 0.95),
        _row("running sums", "ragged_cumsum_full", 0.95),
        _row("sorting", "ragged_sort_full", 0.95),
        _row("MLP and sum", "ragged_mlp_full", 0.95),
        _row("gradient of that", "ragged_mlp_grad_full", 0.95),
        _row("RNN", "ragged_rnn_full", 0.95),
        _row("gradient of that", "ragged_rnn_grad_full", 0.95),
        _row("attention", "ragged_attention_full", 0.95),
        _row("gradient of that", "ragged_attention_grad_full", 0.95),
        _row("dot_product_attention", "ragged_fused_full", 0.95),
    ],
}
