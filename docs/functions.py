"""The page of all functions: what each is called elsewhere, and what differs there.

    python docs/functions.py            # print the page
    python docs/functions.py --write    # bring docs/functions.md up to date

Names and signatures are those of what is installed (all packages, numpy and scipy); what JAX has
is told by the tables here, which `nox -s coexistence` compares with JAX itself.

Invariant: nothing on the page is written by hand but the reasons in these tables.
"""

import inspect
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy
import scipy

import plait
from plait._plugins.metadata import HINTS, public_names

PAGE = Path(__file__).parent / "functions.md"

MODULES = """
. lax lax.linalg numpy numpy.linalg numpy.fft random nn nn.initializers scipy.special scipy.linalg
scipy.stats scipy.ndimage scipy.signal scipy.optimize scipy.sparse.linalg scipy.interpolate
scipy.integrate scipy.fft scipy.cluster.vq ops tree tree_util dtypes debug image flatten_util
"""
SOME = {"ops": "segment_max segment_min segment_prod segment_sum"}
"""What users call of a module that holds more."""

OURS = """
plait.Dim plait.Scope plait.PlaitError plait.checkpoint_scan plait.custom_ivjp plait.fwd_laplacian
plait.hvp plait.vhp plait.vtile plait.Pile plait.Capacities plait.mask plait.implicit_diff
plait.invertible plait.is_vmappable plait.xmap plait.reroll plait.show plait.debug.progress
plait.debug.checking_purity
plait.map_axes plait.is_jittable plait.register_jittable plait.unregister_jittable plait.is_adable
plait.register_adable plait.unregister_adable plait.saved_residuals
plait.lax.regularized_incomplete_beta plait.lax.select_and_scatter_add plait.numpy.UniqueAll
plait.numpy.UniqueCounts plait.numpy.UniqueInverse plait.numpy.canonicalize_dtype plait.numpy.fix
plait.numpy.linalg.*Result plait.scipy.stats.lognorm plait.scipy.fft.[!di]* plait.scipy.fft.i[!d]*
plait.tree.register plait.tree.register_dataclass plait.dtypes.ScalarType plait.dtypes.dtype
plait.dtypes.isdtype plait.dtypes.opaque plait.dtypes.promot* plait.dtypes.[cfiu]*[0-9]*
plait.dtypes.bool_
"""
"""Names that JAX does not have."""

ELSEWHERE = {
    "plait.CustomPrimal": "jax.custom_derivatives.CustomVJPPrimal",
    "plait.Mesh": "jax.sharding.Mesh",
    "plait.PartitionSpec": "jax.sharding.PartitionSpec",
    "plait.SingleDeviceSharding": "jax.sharding.SingleDeviceSharding",
    "plait.SymbolicZero": "jax.custom_derivatives.SymbolicZero",
    "plait.check_grads": "jax.test_util.check_grads",
    "plait.checkpoint_name": "jax.ad_checkpoint.checkpoint_name",
    "plait.custom_vmap": "jax.custom_batching.custom_vmap",
    "plait.sequential_vmap": "jax.custom_batching.sequential_vmap",
    "plait.register_vmappable": "jax.interpreters.batching.register_vmappable",
    "plait.unregister_vmappable": "jax.interpreters.batching.unregister_vmappable",
    "plait.debug.checking_leaks": "jax.checking_leaks",
    "plait.debug.infs": "jax.debug_infs",
    "plait.debug.nans": "jax.debug_nans",
    "plait.io_callback": "jax.experimental.io_callback",
    "plait.jet": "jax.experimental.jet.jet",
    "plait.make_program": "jax.make_jaxpr",
    "plait.print_saved_residuals": "jax.ad_checkpoint.print_saved_residuals",
    "plait.symbolic_dims": "jax.export.symbolic_shape",
    "plait.with_sharding_constraint": "jax.lax.with_sharding_constraint",
}
"""Names that JAX has in another module, or another name for."""

LEFT_OUT = {
    "*_p": "primitives are `plait.ext.Primitive`s, by their names in programs",
    "jax.lax.after_all jax.lax.create_token": "effects are ordered by `ordered=True`, not by hand",
    "jax.lax.psend jax.lax.precv": "collectives of several processes",
    "jax.lax.rng_uniform": "`plait.random`, and `lax.rng_bit_generator`",
    "jax.ref.AbstractRef": "a type whose dtype is `ref<...>`; by JAX's name in `plait_jax`",
    "jax.reshard jax.smap jax.auto_pcast jax.remove_size_one_mesh_axis_from_type": (
        "axes of meshes are `Auto`: `with_sharding_constraint` and `shard_map`"
    ),
    "jax.debug.*Effect": "effects are of operations: `plait.ext`",
    "jax.dtypes.TypePromotionError": "`plait.errors.TypeRule`",
    "jax.dtypes.extended": "`plait.dtypes.opaque`",
    "jax.numpy.*int1 jax.numpy.*int2 jax.numpy.float6_*": "XLA's CPU compiler has no such numbers",
    "jax.legacy_prng_key jax.enable_custom_prng jax.threefry_partitionable": (
        "keys are typed, `PRNGKey` gives words, and bits never depend on how arrays are divided"
    ),
    "jax.allow_f16_reductions jax.array_garbage_collection_guard jax.ad jax.ds jax.memory "
    "jax.jax2tf_associative_scan_reductions jax.make_user_context jax.no_execution jax.no_tracing "
    "jax.softmax_custom_jvp jax.thread_guard": "of JAX's own making",
    "jax.api_util jax.lib jax.version jax.interpreters": "`plait.ext`",
    "jax.monitoring": "`plait.events`",
}
"""Names of JAX that are not here, and why or what there is instead."""

ABSENT = {
    "out_sharding": "constrain the result: `with_sharding_constraint`",
    "reduce_axes": "derivatives inside `shard_map` are summed by the types of values",
    "spmd_axis_name": "sharding follows the mapped axis by itself",
    "sum_match": "of JAX's own making",
    "concrete": "`checkpoint` lets Python branch wherever it could without",
    "partitions": "entries are positional",
    "unreduced": "every array holds its values",
    "reduced": "every array holds its values",
    "manual_axis_type": "types do not vary over mesh axes",
    "is_ref": "arrays never change",
    "global_shape": "a `Shard` is made by `Array.addressable_shards` only",
    "sharding": "a `Shard` is made by `Array.addressable_shards` only; callbacks take it",
    "use_magma": "there is no MAGMA",
    "arr": "of `clip`: the first argument is positional",
    "align": "dtypes are numpy's",
    "copy": "dtypes are numpy's",
    "dtype": "dtypes are numpy's; functions that make arrays have it",
    "x": "operands of functions of two arrays are `x1` and `x2`, as numpy's",
    "y": "operands of functions of two arrays are `x1` and `x2`, as numpy's",
    "x1": "of ufuncs: operands are positional",
    "x2": "of ufuncs: operands are positional",
    "a": "of `dtypes.issubdtype`: `arg1`, as numpy's",
    "b": "of `dtypes.issubdtype`: `arg2`, as numpy's",
}
"""Parameters of JAX's functions that some functions here lack, and why."""


# ---- what there is ---------------------------------------------------------------------------


def module(short: str) -> Any:
    """A module of the list."""
    return plait if short == "." else import_module(f"plait.{short}")


def names(short: str) -> list[str]:
    """The public functions and classes of a module."""
    owner = module(short)
    if short in SOME:
        return SOME[short].split()
    given = set(getattr(owner, "__all__", None) or _defined(owner))
    if short == ".":
        given |= {n for n in HINTS if hasattr(plait, n)}
    given |= set(public_names(f"plait.{short}"))
    found = {n: getattr(owner, n) for n in given}
    return sorted([n for n, x in found.items() if callable(x) and _public(x)], key=str.lower)


def _defined(owner: Any) -> list[str]:
    own = owner.__name__
    return [
        n for n, x in vars(owner).items() if n[0] != "_" and getattr(x, "__module__", "") == own
    ]


def _public(x: Any) -> bool:
    made = str(getattr(x, "__module__", "plait"))
    return not inspect.ismodule(x) and made.split(".")[0] not in ("typing", "collections")


def full(short: str, name: str) -> str:
    """`plait.lax.add`, of `lax` and `add`."""
    return f"plait.{name}" if short == "." else f"plait.{short}.{name}"


def in_jax(path: str) -> str | None:
    """Where JAX has it; None if it does not."""
    if any(fnmatchcase(path, pattern) for pattern in OURS.split()):
        return None
    return ELSEWHERE.get(path, "jax." + path.removeprefix("plait."))


def counterpart(short: str, name: str) -> tuple[str, Any] | None:
    """The function of numpy or scipy of that name, and where it is."""
    top, _, rest = short.partition(".")
    if top not in ("numpy", "scipy"):
        return None
    try:
        owner = import_module(short)
    except ImportError:
        return None
    return (f"{short}.{name}", getattr(owner, name)) if hasattr(owner, name) else None


def parameters(f: Any) -> set[str] | None:
    """The names of the parameters; None if any are taken, or none are known."""
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in found):
        return None
    return {p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY)}


def differences(ours: Any, theirs: Any) -> str:
    """Parameters that only one of two functions has."""
    mine, others = parameters(ours), parameters(theirs)
    if mine is None or others is None or inspect.isclass(ours) or inspect.isclass(theirs):
        return ""
    said = [("no", others - mine), ("more:", mine - others)]
    return "; ".join(
        [f"{word} {', '.join(f'`{n}`' for n in sorted(some))}" for word, some in said if some]
    )


# ---- the page --------------------------------------------------------------------------------


def versions() -> str:
    """The libraries that the page compares with."""
    short = [".".join(m.__version__.split(".")[:2]) for m in (numpy, scipy)]
    return f"numpy {short[0]} and scipy {short[1]}"


def rows(short: str) -> Iterator[str]:
    """The table of a module."""
    yield "| function | numpy, scipy | JAX | parameters that differ from numpy's, scipy's |"
    yield "|---|---|---|---|"
    for name in names(short):
        path, there = full(short, name), counterpart(short, name)
        jax = in_jax(path)
        cells = [
            f"`{path}`",
            f"`{there[0]}`" if there else "",
            ""
            if jax is None
            else "same"
            if jax.removeprefix("jax.") == path.removeprefix("plait.")
            else f"`{jax}`",
            differences(getattr(module(short), name), there[1]) if there else "",
        ]
        yield "| " + " | ".join(cells) + " |"


def reasons() -> Iterator[str]:
    """The tables of what JAX has and Plait has not."""
    yield "## Names of JAX that are not here"
    yield ""
    yield "| name | why, or instead |"
    yield "|---|---|"
    for patterns, reason in LEFT_OUT.items():
        yield f"| {', '.join(f'`{p}`' for p in patterns.split())} | {reason} |"
    yield ""
    yield "## Parameters of JAX that some functions lack"
    yield ""
    yield "| parameter | why, or instead |"
    yield "|---|---|"
    for name, reason in ABSENT.items():
        yield f"| `{name}` | {reason} |"
    yield ""


def page() -> str:
    """The page."""
    lines = [
        "# Every function",
        "",
        "All public functions and classes, with their names elsewhere: `same` is the same",
        "name with `jax` for `plait`, and an empty cell means that there is none. What their",
        "results differ in is on [numpy's functions](numpy.md) and",
        "[differences from JAX](differences.md).",
        f"`python docs/functions.py --write` makes this page; it compares with {versions()}.",
        "",
    ]
    for short in MODULES.split():
        lines += [f"## {'plait' if short == '.' else 'plait.' + short}", "", *rows(short), ""]
    return "\n".join([*lines, *reasons()]).rstrip() + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
