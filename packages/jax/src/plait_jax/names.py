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

from .backends import devices_by_flags
from .finder import VERSION
from .primitives import primitive_named
from .requests import placeholder
from .tracing import tracers_have_levels

__all__ = ["NAMES", "begin", "found", "lacks", "public"]


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
    """,
    "jax.version": "__version__=:finder.VERSION __version_info__=:inert.VERSION_INFO",
    "jax.api_util": """
        debug_info=:inert.debug_info flatten_fun=:flat_functions.flatten_fun
        flatten_fun_nokwargs=:flat_functions.flatten_fun_nokwargs
        safe_map=:flat_functions.safe_map
    """,
    "jax.core": """
        Atom=:jaxprs.Var AbstractValue=plait.ext.types.Aval ClosedJaxpr=:jaxprs.ClosedJaxpr
        Jaxpr=:jaxprs.Jaxpr JaxprEqn=:jaxprs.JaxprEqn Literal=:jaxprs.Literal
        Primitive=:primitives.Primitive ShapedArray=plait.ext.types.Aval Tracer=plait.ext.Tracer
        Var=:jaxprs.Var eval_jaxpr=:jaxprs.eval_jaxpr get_aval=plait.typeof
        get_opaque_trace_state=:tracing.get_opaque_trace_state jaxpr_as_fun=:jaxprs.jaxpr_as_fun
        jaxprs_in_params=:jaxprs.jaxprs_in_params mapped_aval=:tracing.mapped_aval
        subjaxprs=:jaxprs.subjaxprs trace_state_clean=:tracing.trace_state_clean
        unmapped_aval=:tracing.unmapped_aval valid_jaxtype=:tracing.valid_jaxtype
        pytype_aval_mappings=:inert.TYPES_OF_VALUES
        find_top_trace=:tracing.find_top_trace is_concrete=:tracing.is_concrete
    """,
    "jax.custom_derivatives": "zero_from_primal=:primitives.zero_from_primal",
    "jax.numpy": """
        finfo=:lenient.finfo ndim=:lenient.ndim shape=:lenient.shape size=:lenient.size
    """,
    "jax.dtypes": """
        TypePromotionError=plait.errors.TypeRule extended=plait.dtypes.opaque
        canonicalize_dtype=:lenient.canonicalize_dtype
    """,
    "jax.errors": """
        JAXIndexError=plait.errors.SubscriptError JAXTypeError=plait.errors.ConcretizationError
    """,
    "jax.experimental.layout": "Format=:layouts.Format Layout=:layouts.Layout",
    "jax.experimental.multihost_utils": "reached_preemption_sync_point=:inert.nothing",
    "jax.experimental.checkify": "JaxRuntimeError=plait.checks.CheckError",
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
    "jax.extend.source_info_util": "register_exclusion=:inert.register_exclusion",
    "jax.extend.linear_util": """
        WrappedFun=:flat_functions.WrappedFun wrap_init=:flat_functions.wrap_init
    """,
    "jax.interpreters.ad": """
        JVPTracer=:tracing.JVPTracer UndefinedPrimal=:primitives.UndefinedPrimal
        Zero=:primitives.Zero deflinear2=:primitives.deflinear2 defjvp=:primitives.defjvp
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
    "jax.interpreters.xla": """
        apply_primitive=:primitives.apply_primitive
        canonicalize_dtype_handlers=:inert.TYPES_OF_VALUES
        pytype_aval_mappings=:inert.TYPES_OF_VALUES
    """,
    "jax.lax": "scan=:inert.scan",
    "jax.monitoring": """
        clear_event_listeners=:inert.nothing record_event=:inert.nothing
        record_event_duration_secs=:inert.nothing record_event_time_span=:inert.nothing
        record_scalar=:inert.nothing register_event_duration_secs_listener=:inert.nothing
        register_event_listener=:inert.nothing register_event_time_span_listener=:inert.nothing
        register_scalar_listener=:inert.nothing unregister_event_duration_listener=:inert.nothing
        unregister_event_listener=:inert.nothing unregister_scalar_listener=:inert.nothing
    """,
    "jax.profiler": """
        StepTraceAnnotation=:inert.annotation TraceAnnotation=:inert.annotation
        annotate_function=:inert.unchanged
    """,
    "jax.random": "PRNGKey=:key_types.PRNGKey",
    "jax.ref": "AbstractRef=:references.AbstractRef",
    "jax.sharding": "make_single_device_sharding=plait.SingleDeviceSharding",
    "jax._src.checkify": """
        JaxException=plait.checks.CheckError OOBError=plait.checks.OutOfBoundsError
    """,
    "jax._src.dtypes": "finfo=:lenient.finfo",
    "jax._src.dispatch": "wait_for_tokens=plait.effects_barrier",
    "jax._src.distributed": "global_state=:inert.global_state",
    "jax._src.literals": "TypedNdArray=:inert.TypedNdArray",
    "jax._src.tree_util": "_registry=:trees.registered",
    "jax._src.xla_bridge": "_backends=:backends.BACKENDS",
    "jax._src.traceback_util": """
        _exclude_paths=:inert.EXCLUDED api_boundary=:inert.unchanged
        include_frame=:inert.include_frame register_exclusion=:inert.register_exclusion
    """,
}
"""Module -> names that live elsewhere, as `name=path`; a path after `:` is in this package."""

_WHOLE = {
    "jax.example_libraries.optimizers": "optimizers",
    "jax.example_libraries.stax": "stax",
}
"""Modules whose names are all in one module of this package."""

_SAME = {
    "jax.experimental.checkify": "jax.checks",
    "jax._src.checkify": "jax.experimental.checkify",
    "jax.extend.core": "jax.core",
    "jax._src.ad_util": "jax.interpreters.ad",
    "jax._src.core": "jax.core",
    "jax._src.flatten_util": "jax.flatten_util",
    "jax._src.linear_util": "jax.extend.linear_util",
    "jax._src.api_util": "jax.api_util",
    "jax._src.custom_derivatives": "jax.custom_derivatives",
    "jax._src.dtypes": "jax.dtypes",
    "jax._src.numpy": "jax.numpy",
    "jax._src.random": "jax.random",
    "jax._src.state": "jax.ref",
    "jax._src.state.types": "jax.ref",
    "jax._src.lax": "jax.lax",
    "jax._src.tree_util": "jax.tree_util",
}
"""Modules whose names are also looked up in another module of JAX."""

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

    JAX_ENABLE_X64 selects 64 bits, JAX_TRACEBACK_FILTERING the form of tracebacks, and XLA_FLAGS
    the number of CPU devices.  PLAIT_X64 and the like take precedence.
    """
    wide = os.environ.get("JAX_ENABLE_X64", "0").lower() in ("1", "true", "on", "yes", "y", "t")
    if not any(f"PLAIT_{name}" in os.environ for name in ("X64", "DEFAULT_FLOAT", "DEFAULT_INT")):
        plait.config.update("jax_enable_x64", wide)
    if "JAX_TRACEBACK_FILTERING" in os.environ and "PLAIT_TRACEBACK" not in os.environ:
        plait.config.update("jax_traceback_filtering", os.environ["JAX_TRACEBACK_FILTERING"])
    if "PLAIT_CPU_DEVICES" not in os.environ and not plait.config.is_frozen("cpu_devices"):
        plait.config.update("cpu_devices", devices_by_flags() or plait.config.cpu_devices)
    tracers_have_levels()


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
    if module in _SAME:
        return _look(_SAME[module], name)
    if module.startswith("jax._src"):
        return None, ""
    return _at("plait" + full[3:])


def _at(path: str) -> tuple[Any, str | None]:
    """Return the object at a path, in the form of `_look`."""
    here: Any = plait
    if path.startswith(":"):
        module, _, name = path[1:].partition(".")
        here = getattr(import_module(f"plait_jax.{module}"), name, _NOTHING)
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
