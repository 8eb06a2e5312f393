"""The table that maps names of JAX to objects of Plait.

A name is looked up in the table, then at the same path in Plait.  `names.txt` lists the names of
the supported version of JAX; `tests/libraries/names_of_jax.py` makes it.

Invariant: the table holds paths only; nothing is defined here.
"""

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import plait
from plait.errors import MissingPlugin, PluginError

from .finder import VERSION
from .members import add_jaxs_members
from .platforms import devices_by_flags
from .primitives import primitive_named
from .requests import placeholder
from .settings import SETTINGS, adopt_environment, block_of

__all__ = ["NAMES", "begin", "exported", "found", "lacks", "public"]


def _read() -> dict[str, frozenset[str]]:
    """Return the modules of JAX, each with its names."""
    text = (Path(__file__).parent / "names.txt").read_text(encoding="utf-8")
    rows = [line.split(" ") for line in text.splitlines()]
    return {row[0]: frozenset(row[1:]) for row in rows}


NAMES = _read()

_ELSEWHERE = {
    "jax": """
        __version__=:finder.VERSION __version_info__=:inert.VERSION_INFO
        config=:settings.CONFIG
        enable_custom_prng=:key_types.enable_custom_prng make_jaxpr=:jaxprs.make_jaxpr
        checkpoint=:lenient.checkpoint grad=:lenient.grad
        linear_transpose=:lenient.linear_transpose memory=:memory_spaces.MEMORY
        pmap=:lenient.pmap
        remat=:lenient.checkpoint
        reshard=plait.sharding.reshard smap=:single_axis.smap
        typeof=:lenient.typeof
        value_and_grad=:lenient.value_and_grad vjp=:lenient.vjp vmap=:lenient.vmap
    """,
    "jax.version": "__version__=:finder.VERSION __version_info__=:inert.VERSION_INFO",
    "jax.api_util": """
        debug_info=:inert.debug_info flatten_axes=:signatures.flatten_axes
        flatten_fun=:flat_functions.flatten_fun
        flatten_fun_nokwargs=:flat_functions.flatten_fun_nokwargs
        infer_argnums_and_argnames=:signatures.infer_argnums_and_argnames
        safe_map=:flat_functions.safe_map shaped_abstractify=plait.typeof
    """,
    "jax.core": """
        Atom=:jaxprs.Var AbstractValue=plait.ext.types.Aval ClosedJaxpr=:jaxprs.ClosedJaxpr
        Jaxpr=:jaxprs.Jaxpr JaxprEqn=:jaxprs.JaxprEqn Literal=:jaxprs.Literal
        Primitive=:primitives.Primitive ShapedArray=plait.ext.types.Aval Tracer=plait.ext.Tracer
        Var=:jaxprs.Var eval_jaxpr=:jaxprs.eval_jaxpr get_aval=plait.typeof
        get_opaque_trace_state=:tracing.get_opaque_trace_state jaxpr_as_fun=:jaxprs.jaxpr_as_fun
        jaxprs_in_params=:jaxprs.jaxprs_in_params mapped_aval=:tracing.mapped_aval
        subjaxprs=:jaxprs.subjaxprs trace_state_clean=:tracing.trace_state_clean
        unsafe_get_axis_names_DO_NOT_USE=:tracing.axis_names
        unmapped_aval=:tracing.unmapped_aval valid_jaxtype=:tracing.valid_jaxtype
        pytype_aval_mappings=:inert.TYPES_OF_VALUES
        find_top_trace=:tracing.find_top_trace is_concrete=:tracing.is_concrete
        DebugInfo=:jaxprs.DebugInfo DropVar=:core_names.DropVar Effect=:core_names.Effect
        Effects=:core_names.Effects
        JaxprTypeError=:core_names.JaxprTypeError call=:core_names.call
        check_jaxpr=:core_names.check_jaxpr concrete_or_error=:core_names.concrete_or_error
        gensym=:core_names.gensym is_constant_dim=:core_names.is_constant_dim
        is_constant_shape=:core_names.is_constant_shape
        new_jaxpr_eqn=:core_names.new_jaxpr_eqn no_effects=:core_names.no_effects
        primal_dtype_to_tangent_dtype=:core_names.primal_dtype_to_tangent_dtype
    """,
    "jax.custom_derivatives": "zero_from_primal=:primitives.zero_from_primal",
    "jax.numpy": """
        __array_api_version__=plait.numpy.__array_api_version__
        __array_namespace_info__=plait.numpy.__array_namespace_info__
        finfo=:lenient.finfo ndim=:lenient.ndim shape=:lenient.shape size=:lenient.size
        amax=:reducers.amax amin=:reducers.amin max=:reducers.max min=:reducers.min
        nanmax=:reducers.nanmax nanmin=:reducers.nanmin nanprod=:reducers.nanprod
        nansum=:reducers.nansum prod=:reducers.prod sum=:reducers.sum
    """,
    "jax.numpy.linalg": "eigh=:eigenvalues.eigh",
    "jax.scipy.linalg": "eigh=:eigenvalues.eigh_of_scipy",
    "jax.dtypes": """
        TypePromotionError=plait.errors.TypeRule extended=plait.dtypes.opaque
        canonicalize_dtype=:lenient.canonicalize_dtype
    """,
    "jax.errors": """
        JAXIndexError=plait.errors.SubscriptError JAXTypeError=plait.errors.ConcretizationError
    """,
    "jax.flatten_util": "ravel_pytree=:lenient.ravel_pytree",
    "jax.experimental.compilation_cache.compilation_cache": """
        reset_cache=:inert.nothing set_cache_dir=:settings.set_cache_dir
    """,
    "jax.experimental.layout": """
        Format=:layouts.Format Layout=:layouts.Layout
        with_layout_constraint=:layouts.with_layout_constraint
    """,
    "jax.experimental.ode": "odeint=:ode.odeint",
    "jax.experimental.pjit": "pjit=:jitted.pjit",
    "jax.experimental.sparse.linalg": "lobpcg_standard=:lobpcg.lobpcg_standard",
    "jax.experimental.multihost_utils": "reached_preemption_sync_point=:inert.nothing",
    "jax.experimental.checkify": """
        JaxRuntimeError=plait.checks.CheckError checkify=:checking.checkify
        debug_check=:checking.debug_check
    """,
    "jax.experimental.scheduling_groups": """
        scheduling_group=:inert.scheduling_group xla_metadata_call=:inert.unchanged
    """,
    "jax.experimental.xla_metadata": "set_xla_metadata=:inert.set_xla_metadata",
    "jax.experimental.hijax": """
        AbstractValue=plait.ext.types.Aval ShapedArray=plait.ext.types.Aval
        Zero=:primitives.Zero instantiate_zeros=:primitives.instantiate_zeros
        is_undefined_primal=:primitives.is_undefined_primal
        AvalMutableQDD=:hijax.AvalMutableQDD AvalQDD=:hijax.AvalQDD
        HiPrimitive=:hijax.HiPrimitive HiType=:hijax.HiType MutableHiType=:hijax.MutableHiType
        aval_method=:hijax.aval_method aval_property=:hijax.aval_property
        control_flow_allowed_effects=:hijax.control_flow_allowed_effects
        register_hitype=:hijax.register_hitype
    """,
    "jax.extend.backend": "backends=:platforms.backends get_backend=:platforms.get_backend",
    "jax.extend.source_info_util": """
        NameStack=:source_info.NameStack SourceInfo=:source_info.SourceInfo
        current=:source_info.current current_name_stack=:source_info.current_name_stack
        extend_name_stack=:source_info.extend_name_stack
        new_name_stack=:source_info.new_name_stack new_source_info=:source_info.new_source_info
        register_exclusion=:inert.register_exclusion summarize=:source_info.summarize
        user_context=:source_info.user_context user_frame=:source_info.user_frame
    """,
    "jax.extend.linear_util": """
        StoreException=:flat_functions.StoreException
        WrappedFun=:flat_functions.WrappedFun
        transformation=:flat_functions.transformation
        transformation2=:flat_functions.transformation2
        transformation_with_aux=:flat_functions.transformation_with_aux
        wrap_init=:flat_functions.wrap_init
    """,
    "jax.interpreters.ad": """
        JVPTracer=:tracing.JVPTracer UndefinedPrimal=:primitives.UndefinedPrimal
        Zero=:primitives.Zero deflinear=:primitives.deflinear deflinear2=:primitives.deflinear2
        defjvp=:primitives.defjvp
        instantiate_zeros=:primitives.instantiate_zeros
        is_undefined_primal=:primitives.is_undefined_primal
        primitive_jvps=:primitives.primitive_jvps
        primitive_transposes=:primitives.primitive_transposes
    """,
    "jax.interpreters.batching": """
        axis_primitive_batchers=:primitives.axis_primitive_batchers
        defvectorized=:primitives.defvectorized
        fancy_primitive_batchers=:primitives.fancy_primitive_batchers
        moveaxis=plait.numpy.moveaxis not_mapped=:primitives.not_mapped
        primitive_batchers=:primitives.primitive_batchers
    """,
    "jax.interpreters.mlir": """
        LoweringRuleContext=:lowering.LoweringRuleContext aval_to_ir_type=:lowering.aval_to_ir_type
        lower_fun=:lowering.lower_fun register_lowering=:lowering.register_lowering
    """,
    "jax.interpreters.partial_eval": """
        PartialVal=:partial_values.PartialVal
        trace_to_jaxpr_nounits=:partial_values.trace_to_jaxpr_nounits
    """,
    "jax.interpreters.pxla": "thread_resources=:resources.THREAD_RESOURCES",
    "jax.interpreters.xla": """
        apply_primitive=:primitives.apply_primitive
        canonicalize_dtype_handlers=:inert.TYPES_OF_VALUES
        pytype_aval_mappings=:inert.TYPES_OF_VALUES
    """,
    "jax.lax": "after_all=:tokens.after_all create_token=:tokens.create_token scan=:inert.scan",
    "jax.monitoring": """
        clear_event_listeners=:inert.nothing record_event=:inert.nothing
        record_event_duration_secs=:inert.nothing record_event_time_span=:inert.nothing
        record_scalar=:inert.nothing register_event_duration_secs_listener=:inert.nothing
        register_event_listener=:inert.nothing register_event_time_span_listener=:inert.nothing
        register_scalar_listener=:inert.nothing unregister_event_duration_listener=:inert.nothing
        unregister_event_listener=:inert.nothing unregister_scalar_listener=:inert.nothing
    """,
    "jax.random": "PRNGKey=:key_types.PRNGKey uniform=:lenient.uniform",
    "jax.ref": "AbstractRef=:references.AbstractRef",
    "jax.sharding": "make_single_device_sharding=plait.SingleDeviceSharding",
    "jax.test_util": """
        check_grads=:gradient_checking.check_grads check_jvp=:gradient_checking.check_jvp
        check_vjp=:gradient_checking.check_vjp
    """,
    "jax._src.checkify": """
        JaxException=plait.checks.CheckError OOBError=plait.checks.OutOfBoundsError
    """,
    "jax._src.api": "_dtype=:signatures.dtype_of",
    "jax._src.dtypes": "finfo=:lenient.finfo to_complex_dtype=:signatures.to_complex_dtype",
    "jax._src.dispatch": "wait_for_tokens=plait.effects_barrier",
    "jax._src.distributed": "global_state=:connections.global_state",
    "jax._src.lib.xla_client": "XlaRuntimeError=plait.errors.RuntimeFailure",
    "jax._src.literals": "TypedNdArray=:inert.TypedNdArray",
    "jax._src.mesh": "thread_resources=:resources.THREAD_RESOURCES",
    "jax._src.numpy.util": """
        check_arraylike=:promotion.check_arraylike promote_dtypes=:promotion.promote_dtypes
        promote_dtypes_complex=:promotion.promote_dtypes_complex
        promote_dtypes_inexact=:promotion.promote_dtypes_inexact
    """,
    "jax._src.util": """
        merge_lists=:core_names.merge_lists partition_list=:core_names.partition_list
        safe_map=:flat_functions.safe_map safe_zip=:core_names.safe_zip
        split_list=:core_names.split_list unzip2=:core_names.unzip2 unzip3=:core_names.unzip3
    """,
    "jax._src.tree_util": "_registry=:trees.registered",
    "jax._src.xla_bridge": "_backends=:platforms.BACKENDS get_backend=:platforms.get_backend",
    "jax._src.traceback_util": """
        _exclude_paths=:inert.EXCLUDED api_boundary=:inert.unchanged
        include_frame=:inert.include_frame register_exclusion=:inert.register_exclusion
    """,
}
"""Module -> names that live elsewhere, as `name=path`; a path after `:` is in this package."""

_WHOLE = {
    "jax.example_libraries.optimizers": "optimizers",
    "jax.example_libraries.stax": "stax",
    "jax.experimental.serialize_executable": "serialized",
}
"""Modules whose names are all in one module of this package."""

_HOMES = {
    "jax.experimental.sparse": "plait.sparse",
    "jax.experimental.sparse.linalg": "plait.sparse.linalg",
}
"""Modules whose names are all in one module of Plait, at another path."""

_SAME = {
    "jax.experimental.sparse.ad": "jax.experimental.sparse",
    "jax.experimental.sparse.api": "jax.experimental.sparse",
    "jax.experimental.sparse.bcoo": "jax.experimental.sparse",
    "jax.experimental.sparse.bcsr": "jax.experimental.sparse",
    "jax.experimental.sparse.coo": "jax.experimental.sparse",
    "jax.experimental.sparse.csr": "jax.experimental.sparse",
    "jax.experimental.sparse.random": "jax.experimental.sparse",
    "jax.experimental.sparse.transform": "jax.experimental.sparse",
    "jax.experimental.checkify": "jax.checks",
    "jax._src.checkify": "jax.experimental.checkify",
    "jax.extend.core": "jax.core",
    "jax._src.ad_util": "jax.interpreters.ad",
    "jax._src.debugging": "jax.debug",
    "jax._src.effects": "jax.core",
    "jax._src.hijax": "jax.experimental.hijax",
    "jax._src.linear_util": "jax.extend.linear_util",
    "jax._src.mesh": "jax.sharding",
    "jax._src.partition_spec": "jax.sharding",
    "jax._src.pjit": "jax.experimental.pjit",
    "jax._src.sharding": "jax.sharding",
    "jax._src.source_info_util": "jax.extend.source_info_util",
    "jax._src.state": "jax.ref",
    "jax._src.state.types": "jax.ref",
}
"""Modules whose names are also looked up in another module of JAX.

Names of any other private module are looked up in the nearest public one: those of
`jax._src.numpy.util` in `jax.numpy`.
"""

_ABSENT = frozenset(("jax._src.literals.TypedInt", "jax._src.literals.LiteralArray"))
"""Names that libraries probe and can do without; no placeholder stands for them."""

TABLE = {
    f"{module}.{name}": path
    for module, rows in _ELSEWHERE.items()
    for name, _, path in [row.partition("=") for row in rows.split()]
}


_NOTHING = object()


def begin() -> None:
    """Apply JAX's defaults when jax is first imported.

    JAX_ENABLE_X64 selects 64 bits and XLA_FLAGS the number of CPU devices.  Every other setting can
    be given as a variable, too.  PLAIT_X64 and the like take precedence.
    """
    wide = os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true", "on", "yes", "y", "t")
    if not any(f"PLAIT_{name}" in os.environ for name in ("X64", "DEFAULT_FLOAT", "DEFAULT_INT")):
        plait.config.update("jax_enable_x64", wide)
    if "PLAIT_NUMPY_SCALARS" not in os.environ:
        plait.config.update("numpy_scalars", "strong")
    if "PLAIT_CHECK_STATIC_INDICES" not in os.environ:
        plait.config.update("check_static_indices", False)
    adopt_environment()
    counted = "PLAIT_CPU_DEVICES" in os.environ or "JAX_NUM_CPU_DEVICES" in os.environ
    if not counted and not plait.config.is_frozen("cpu_devices"):
        plait.config.update("cpu_devices", devices_by_flags() or plait.config.cpu_devices)
    add_jaxs_members()


def public(module: str) -> frozenset[str]:
    """Return the names of a module of JAX."""
    return frozenset(name for name in NAMES.get(module, ()) if not name.startswith("_"))


def found(module: str, name: str) -> Any:
    """Return the object for a name of a module; for one that Plait lacks, a placeholder.

    Raises AttributeError if JAX has no such name in that module.
    """
    full = f"{module}.{name}"
    thing, why = _look(module, name)
    if why is None:
        return thing
    if (name in NAMES.get(module, ()) and full not in _ABSENT) or why:
        return placeholder(full, why)
    raise AttributeError(f"module {module!r} of JAX {VERSION} has no attribute {name!r}")


def exported(module: str) -> list[str]:
    """Return the public names of a module of JAX that `from module import *` gives.

    Missing names are left out: they would be recorded as requests.
    """
    return [name for name in sorted(public(module)) if _look(module, name)[1] is None]


def lacks(full: str) -> bool:
    """Return whether a dotted name exists in JAX and is missing in Plait."""
    module, _, rest = full, "", ""
    while module not in NAMES and module:
        module, _, last = module.rpartition(".")
        rest = f"{last}.{rest}" if rest else last
    if not module or not rest:
        return False
    name = rest.partition(".")[0]
    return name in NAMES[module] and _look(module, name)[1] is not None


def _look(module: str, name: str) -> tuple[Any, str | None]:
    """Return (object, None), or (None, why it is missing)."""
    full = f"{module}.{name}"
    if full in TABLE:
        return _at(TABLE[full])
    if full in NAMES:
        return import_module(full), None
    if name.startswith("__"):
        return None, ""
    if module in _WHOLE:
        return _at(f":{_WHOLE[module]}.{name}")
    if name.endswith("_p"):
        primitive = primitive_named(name[:-2])
        return primitive, None if primitive is not None else ""
    if module in _HOMES:
        return _at(f"{_HOMES[module]}.{name}")
    if module in _SAME:
        return _look(_SAME[module], name)
    if module.startswith("jax._src."):
        home = _public_home(module)
        known = name in NAMES[home] or f"{home}.{name}" in TABLE
        return _look(home, name) if known else (None, "")
    if module == "jax._src":
        return None, ""
    found = _at("plait" + full[3:])
    if found[1] is not None and module == "jax" and f"jax_{name}" in SETTINGS:
        return block_of(f"jax_{name}"), None
    return found


def _public_home(module: str) -> str:
    """Return the nearest public module for a private one.

    >>> _public_home("jax._src.lax.control_flow"), _public_home("jax._src.api")
    ('jax.lax', 'jax')
    """
    path = "jax" + module.removeprefix("jax._src")
    while path not in NAMES:
        path = path.rpartition(".")[0]
    return path


def _at(path: str) -> tuple[Any, str | None]:
    """Return the object at a path, in the form of `_look`."""
    here: Any = plait
    if path.startswith(":"):
        module, _, name = path[1:].partition(".")
        try:
            here = getattr(import_module(f"plait_jax.{module}"), name, _NOTHING)
        except MissingPlugin as e:
            return None, e.what
        return (None, "") if here is _NOTHING else (here, None)
    for part in path.split(".")[1:]:
        try:
            try:
                here = getattr(here, part)
            except AttributeError:
                if not isinstance(here, ModuleType):
                    raise
                here = import_module(f"{here.__name__}.{part}")
        except (AttributeError, ImportError) as e:
            if isinstance(e, MissingPlugin | PluginError) and "not installed" in e.what:
                return None, e.what
            return None, ""
    return here, None
