"""Arguments for each parameter of JAX's public functions, by its name.

Invariant: the same number gives the same call; this module imports neither Plait nor jax.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from .draw import SHAPES, Draw, Made

Parameters = list[inspect.Parameter]
Role = Callable[[Draw], Any]


def const(*of: Any) -> Role:
    """Return the role of a parameter that has a few values."""
    return lambda d: d.random.choice(of)


def role(names: str, made: Role) -> dict[str, Role]:
    """Return one role for several names."""
    return dict.fromkeys(names.split(), made)


ROLES: dict[str, Role] = {
    **role(
        """x y z a b x1 x2 m v w arr operand ary array A B C data val values in1 in2 lhs rhs u
        p q a1 a2 ar1 ar2 ar element test_elements xp fp c r d e lmbda h df dfnum dfden lam
        loc scale T Z E input obs code_book on_true on_false update updates filt choices
        prototype like_arr f logits coordinates theta phi kappa rho nan to_end to_begin
        prepend append seq_of_zeros concentration sigma mu min max fill_value initial
        init_value padding_value start stop step weights fweights aweights left right val
        vals cval hidden a_matrix obs lmbda taus dl du r_matrix w_vector c_matrix value
        query bias prob x0 base period nu kl""",
        Draw.operand,
    ),
    **role("axis", Draw.axis),
    **role(
        """axis1 axis2 axisa axisb axisc dimension reduction_dimension start_dimension
        stop_dimension time_axis freq_axis split_axis concat_axis in_axis out_axis
        batch_axis column_axis""",
        Draw.one_axis,
    ),
    **role(
        """axes source destination dimensions permutation broadcast_dimensions spatial_dims""",
        Draw.axes,
    ),
    **role(
        """dtype index_dtype new_dtype preferred_element_type out_dtype arg1 arg2 from_ to""",
        Draw.dtype_,
    ),
    **role(
        """shape new_sizes newshape new_shape reps out_shape dims shapes sizes slice_sizes""",
        Draw.shape_,
    ),
    **role("s fft_lengths strides", Draw.sizes),
    **role(
        """keepdims reverse endpoint retstep stable descending deg equal_nan density rowvar
        returned sparse include_initial unique_indices indices_are_sorted return_index
        return_inverse return_counts sorted assume_unique invert full full_matrices
        compute_uv hermitian lower symmetrize_input increasing is_stable eigvals_only
        pivoting tiled left_side transpose_a conjugate_a unit_diagonal approximate
        upper_triangular replace independent antialias exact repetition return_sign
        promote_integers strip_zeros trim_leading_zeros wrap_negative_indices
        assume_unique_indices return_indices check_finite overwrite_a overwrite_b calc_q
        permute_l turbo is_causal return_residual wrap copy symmetrize_output padded
        return_onesided input_onesided disp compute_expm numpy_resid
        compute_left_eigenvectors compute_right_eigenvectors sort_eigenvalues upper
        symmetric conjugate""",
        Draw.flag,
    ),
    **role("where condition mask pred which include", Draw.mask),
    **role(
        """indices ind index obj start_index start_indices limit_indices limit_index idxs
        sorter kth multi_index scatter_indices""",
        lambda d: d.integers(),
    ),
    **role(
        "segment_ids",
        lambda d: Made(
            d.choose("jnp", "np"),
            "int32",
            d.shape[:1],
            tuple(d.whole(-1, 4) for _ in range(d.shape[0] if d.shape else 1)),
        ),
    ),
    **role(
        "repeats shift",
        lambda d: d.choose(d.whole(0, 3), d.whole(0, 3), d.integers(0, 3), (1, 2), -1),
    ),
    **role(
        """n k num N M ddof correction num_segments num_classes minlength length size
        total_repeat_length offset decimals ndmin rank series_order n_max num_keys
        slice_size stride nperseg noverlap nfft type rotations count n_iter exponent_bits
        mantissa_bits ndim num_out max_iterations edge_order axis_size permutation_size""",
        lambda d: d.whole(-1, 4),
    ),
    **role("precision", const(None, "highest", "default", "bad")),
    **role(
        "mode",
        const(
            "fill",
            "clip",
            "drop",
            "wrap",
            "full",
            "same",
            "valid",
            "reflect",
            "nearest",
            "constant",
            "raise",
            "bad",
        ),
    ),
    **role(
        "method",
        const(
            "linear",
            "lower",
            "nearest",
            "midpoint",
            "scan",
            "sort",
            "compare_all",
            "auto",
            "higher",
            "bad",
            "cubic",
        ),
    ),
    **role("norm", const(None, "ortho", "forward", "backward", "bad")),
    **role("ord", const(None, 1, 2, -1, 0, "fro", "nuc", float("inf"), 3, 0.5, "bad")),
    **role("side", const("left", "right", "bad")),
    **role("indexing", const("ij", "xy", "bad")),
    **role(
        "kind", const(None, "stable", "quicksort", "lower", "symmetric", "bad", "real floating")
    ),
    **role("order", const(None, "C", "K", "F", 2, 1)),
    **role("UPLO", const("L", "U", None, "bad")),
    **role("trim", const("fb", "f", "b", "bad")),
    **role("bitorder", const("big", "little", "bad")),
    **role("casting", const("safe", "no", "same_kind", "unsafe", "bad")),
    **role("boundary", const("fill", "wrap", "bad")),
    **role("padding", const("SAME", "VALID", "bad", [(0, 1)], [(1, 1), (0, 0)])),
    **role("window", const("hann", "boxcar", "triang", "bad")),
    **role("detrend", const("constant", "linear", False, "bad")),
    **role(
        "scaling average nan_policy assume_a",
        const("density", "spectrum", "mean", "median", "propagate", "omit", "gen", "sym", "pos"),
    ),
    **role("trans", const(0, 1, 2, "N", "T", 3)),
    **role(
        """tol rtol atol rcond epsilon eps negative_slope fs dx d discont stddev factor nan
        posinf neginf alpha beta fillvalue recall_target""",
        lambda d: d.choose(0.5, 1.0, 1e-3, 2, 0, d.scalar()),
    ),
    **role("key", lambda d: Made("key", "", (), (d.whole(0, 99),))),
    **role("seed", lambda d: d.choose(d.whole(-3, 2**33), 0, 1, d.integers())),
    **role("minval maxval", lambda d: d.choose(d.whole(-3, 9), d.operand(), 0.5, 2.5)),
    **role("q", lambda d: d.choose(0.5, 0.25, 1.0, 0.0, 1.5, 50, d.array((2,), "float32"))),
    **role(
        "bins",
        lambda d: d.choose(
            d.whole(0, 5), [0.0, 1.0, 2.0], Made("np", "float32", (3,), (-1.0, 0.5, 2.0))
        ),
    ),
    **role("range", const(None, (0, 2), (1.0, 3.0), (2, 1), (1, 1))),
    **role("pad_width", const(1, (1, 2), ((1, 0),), ((0, 1), (2, 0)), ((1, 1),), -1, 0)),
    **role(
        "padding_config", const([(0, 1, 0)], [(1, -1, 0), (0, 1, 1)], [(0, 0, 1), (1, 2, 0)], [])
    ),
    **role("indices_or_sections", const(1, 2, 3, (1,), [1, 2], 0, (0, 5))),
    **role("unroll", const(1, 2, 128)),
    **role("rounding_method", const(0, 1)),
    **role("cov", lambda d: d.array((2, 2), "float32")),
    **role(
        """subset_by_index lapack_driver lwork algorithm implementation axis_name
        axis_index_groups""",
        const(None),
    ),
    **role(
        """arrays tup xi arrs operands arys choicelist condlist condlist funclist sample keys
        args cases""",
        Draw.several,
    ),
    **role(
        "subscripts", const("i,i", "ij,jk", "ij->ji", "ii", "i,j->ij", "...i,...i", "ij", "i->")
    ),
}

ROLES_OF: dict[str, dict[str, Role]] = {
    "einsum_path": {"subscripts": const("i,i", "ij,jk", "ij->ji")},
    "issubdtype": {"arg1": Draw.dtype_, "arg2": Draw.dtype_},
    "eigh_tridiagonal": {"d": Draw.floats, "e": Draw.floats},
    "tridiagonal_solve": {"d": Draw.floats},
    "zeta": {"q": Draw.operand},
    "kl_div": {"q": Draw.operand},
    "rel_entr": {"q": Draw.operand},
    "full": {"shape": Draw.sizes},
    "broadcast": {"sizes": Draw.sizes},
    "slice": {
        "start_indices": Draw.sizes,
        "limit_indices": Draw.sizes,
        "strides": const(None, (1,), (2, 1), (1, 2)),
    },
    "logsumexp": {"b": Draw.operand},
    "bessel_jn": {"v": lambda d: d.whole(0, 5), "n_iter": const(20, 50)},
    "comb": {"N": Draw.operand, "k": Draw.operand},
    "matrix_power": {"n": lambda d: d.whole(-3, 4)},
    "multigammaln": {"d": lambda d: d.whole(0, 4)},
    "fftfreq": {"d": const(1.0, 0.5, 2, 0)},
    "rfftfreq": {"d": const(1.0, 0.5, 2, 0)},
    "expn": {"n": lambda d: d.integers(0, 5)},
    "polygamma": {"n": lambda d: d.integers(0, 4)},
    "take_along_axis": {"axis": Draw.one_axis},
    "std": {"mean": const(None)},
    "clip": {"min": Draw.operand, "max": Draw.operand},
    "tile": {"reps": const(2, (2,), (1, 2), (0,), (2, 1, 2), -1)},
    "fold_in": {"data": lambda d: d.whole(0, 2**31)},
    "split": {"num": lambda d: d.choose(d.whole(0, 5), (2, 3))},
    "choice": {"a": lambda d: d.choose(d.whole(1, 6), d.operand()), "p": const(None)},
    "resize": {"method": const("linear", "nearest", "cubic", "lanczos3", "bad")},
    "arange": {
        n: (lambda d: d.choose(d.whole(-3, 6), d.whole(0, 6), 0.5, 2.5))
        for n in ("start", "stop", "step")
    },
    "polyfit": {"deg": lambda d: d.whole(0, 2)},
    "sort_key_val": {"keys": Draw.operand},
    "lexsort": {"keys": Draw.several},
    "dot_general": {
        "dimension_numbers": const(
            (((1,), (0,)), ((), ())),
            (((0,), (0,)), ((), ())),
            (((-1,), (-1,)), ((0,), (0,))),
            ((([], [])), ([], [])),
        )
    },
    "dct": {"type": const(2, 2, 1, 3, 4)},
    "idct": {"type": const(2, 2, 1, 3)},
    "dctn": {"type": const(2, 2, 1)},
    "idctn": {"type": const(2, 2, 1)},
    "eigh": {"type": const(1, 2)},
    "iota": {"dtype": Draw.dtype_, "size": lambda d: d.whole(-1, 5)},
    "reduce_precision": {"exponent_bits": const(5, 8, 0, 11), "mantissa_bits": const(10, 7, 0, 23)},
    "where": {"x": Draw.operand, "y": Draw.operand, "condition": Draw.mask},
    "select_n": {"which": Draw.mask, "cases": Draw.operand},
    "concatenate": {"axis": Draw.one_axis},
    "trapezoid": {"dx": const(1.0, 0.5)},
    "gradient": {"varargs": lambda d: d.choose(0.5, 2, d.operand())},
    "array": {
        "object": lambda d: d.choose(
            d.operand(), d.several(), [[1, 2], [3, 4]], [[1.5], [True]], [], [[]]
        )
    },
}
# Parameters of devices, files, algorithms of one platform, and of the library itself.
NEVER = """
out out_sharding device sharding accuracy debug optimize _dot_general file use_magma
enable_eigvec_derivs perturb_singular per_platform dynamic_shape select_callable blocksize _
prevent_mlir_dce version impl
"""


def call(path: str, parameters: Parameters, number: int) -> dict[str, Any] | None:
    """Return the call of this number, or None where a required parameter has no role.

    Each optional parameter has its turn: the call of number `i` gives the one of number `i`.
    """
    d = Draw(f"{path} {number}", path)
    own, never = ROLES_OF.get(d.name, {}), NEVER.split()
    optional = [p.name for p in parameters if p.default is not p.empty and p.name not in never]
    turn = optional[number % len(optional)] if optional and number else ""
    args: list[Any] = []
    named: dict[str, Any] = {}
    for p in parameters:
        made = own.get(p.name, ROLES.get(p.name))
        if p.kind is p.VAR_KEYWORD or p.name in never:
            continue
        required = p.default is p.empty
        if made is None:
            if required and p.kind is not p.VAR_POSITIONAL:
                return None
            continue
        if p.kind is p.VAR_POSITIONAL:
            few = 1 if p.name == "varargs" else d.choose(1, 2, 2, 3)
            if args and p.name == "args" and d.chance(0.9):  # of ufuncs, which take `out` there
                few = 0
            args += itertools.islice(_parts(d, p.name, made), few)
        elif required and p.kind is not p.KEYWORD_ONLY:
            args.append(made(d))
        elif required or p.name == turn or d.chance(0.15):
            named[p.name] = made(d)
    if d.chance(0.02):
        named["surplus"] = 1
    return {"path": path, "x64": d.chance(0.3), "args": args, "named": named}


def _parts(d: Draw, name: str, made: Role) -> Iterator[Any]:
    while True:
        if name in ("shapes",):
            yield d.choose(*SHAPES)
        elif made is Draw.several:
            yield d.operand()
        else:
            yield made(d)
