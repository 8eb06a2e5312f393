"""Names of JAX that Plait lacks: importing them is no error, using them is a precise one.

Invariant: what is reported is compared with the lines of a file that the test writes.
"""

import abc
import importlib
import importlib.util
import inspect

import numpy as np
import pytest

import plait
import plait_jax
from plait.errors import PlaitError

PALLAS = "jax.experimental.pallas"


@pytest.fixture
def pallas(jax):
    """A module of which Plait has nothing."""
    return importlib.import_module(PALLAS)


def test_a_missing_name_waits_until_it_is_used(pallas):
    kind = pallas.BlockSpec
    assert not isinstance(3, kind)
    assert kind | int and int | kind  # in annotations

    class Mine(kind):
        """A library's own class, which may need nothing of its base."""

        def doubled(self, x):
            return 2 * x

    assert Mine().doubled(3) == 6
    for use in (lambda: kind((1, 2)), lambda: kind.fromdense(3), lambda: Mine.fromdense(3)):
        with pytest.raises(plait_jax.MissingName, match=f"nothing for {PALLAS}.BlockSpec") as e:
            use()
        assert isinstance(e.value, AttributeError)
        assert "report()" in e.value.fix


def test_the_error_names_the_line_of_whoever_used_it(pallas):
    with pytest.raises(plait_jax.MissingName) as e:
        pallas.GridSpec(3)
    line = inspect.currentframe().f_lineno - 1
    assert f"{__file__}:{line}" in str(e.value)


def test_dunders_are_absent(pallas):
    assert not hasattr(pallas.BlockSpec, "__array__")
    assert not hasattr(pallas, "__nothing__")


def test_the_report_of_this_process(pallas):
    count = len(plait_jax.report().requests)
    pallas.MemoryRef  # noqa: B018
    line = inspect.currentframe().f_lineno - 1
    mine = plait_jax.report().requests[count:]
    assert [(r.name, r.place, r.used) for r in mine] == [
        (f"{PALLAS}.MemoryRef", f"{__file__}:{line}", False)
    ]
    assert f"{PALLAS}.MemoryRef  asked for at {__file__}:{line}" in str(plait_jax.report())


def test_the_report_of_a_library(jax, tmp_path, monkeypatch):
    folder = tmp_path / "somelib"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import jax\n"
        "import jax.numpy as jnp\n"
        "from jax.experimental import pallas\n"
        "from jax.experimental.pallas import BlockSpec, no_such_thing\n"
        "def f(x):\n"
        "    return jnp.sin(x), jax.jit(x), pallas.Squeezed(x), jax.new_thing(x), jnp.sinn\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = plait_jax.report("somelib")
    assert found.names == [f"{PALLAS}.BlockSpec", f"{PALLAS}.Squeezed"]
    assert [r.place.rpartition(":")[2] for r in found.requests] == ["4", "6"]
    with pytest.raises(PlaitError, match="no library 'somelibs'"):
        plait_jax.report("somelibs")
    assert str(type(found)(())) == "no name of JAX was missing"


def test_asking_what_is_in_a_missing_name_is_an_error(pallas):
    """Python would ask a class for item 0, 1, 2, ... without end."""
    for use in (
        lambda: 3 in pallas.BlockSpec,
        lambda: list(pallas.BlockSpec),
        lambda: len(pallas.BlockSpec),
    ):
        with pytest.raises(plait_jax.MissingName):
            use()


COMPUTED = {
    "called with numbers": lambda x: x(2.0),
    "called with a function and an array": lambda x: x(abs, np.ones(2)),
    "called with an array by its name": lambda x: x(a=np.ones(2)),
    "called with a tracer": lambda x: plait.jit(lambda v: x(v))(1.0),
    "an attribute": lambda x: x.some_function(1.0),
    "a decorated function": lambda x: x(abs)(1.0),
    "a decorator with options": lambda x: x(grid=(2,))(abs)(1.0),
    "a sum": lambda x: x + 1,
    "a product from the right": lambda x: np.float32(2) * x,
    "a matrix product": lambda x: x @ x,
    "a block": lambda x: x.__class__.__enter__(x),
    "a number": float,
}


@pytest.mark.parametrize("name", ["jax.experimental.pallas.pallas_call", f"{PALLAS}.BlockSpec"])
@pytest.mark.parametrize("how", COMPUTED)
def test_computing_with_a_missing_name_is_an_error_in_three_parts(jax, name, how):
    module, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(module), last)
    with pytest.raises(plait_jax.MissingName, match=f"nothing for {name}") as e:
        COMPUTED[how](thing)
    assert __file__ in str(e.value) and "report()" in e.value.fix
    assert name in " ".join(plait_jax.report().names)


def test_a_library_is_imported_whose_definitions_use_missing_names(jax):
    """Each statement stands in some library at the top of a module."""
    pl = importlib.import_module("jax.experimental.pallas")
    tpu = importlib.import_module("jax.experimental.pallas.tpu")
    pxla = importlib.import_module("jax.interpreters.pxla")
    roofline = importlib.import_module("jax.experimental.roofline")

    class Block(pl.BlockSpec, abc.ABC):
        """A library's own class of a missing one, with another base."""

        def double(self, x: pl.Buffered | None) -> "tpu.SMEM":
            return 2 * x

    assert Block().double(2) == 4 and isinstance(Block(), pl.BlockSpec)
    assert not isinstance(3, pl.BlockSpec) and pl.BlockSpec is pl.BlockSpec

    @pl.pallas_call
    def first(x):
        """The first."""

    @pl.kernel(out_shape=Block, interpret=True)
    def second(x):
        """The second."""

    assert (first.__name__, second.__doc__) == ("first", "The second.")
    first.defvjp(abs, abs)
    pxla.global_result_handlers[abs] = lambda x: x

    @roofline.register_roofline
    def third(x):
        return x + 1

    @roofline.register_roofline(abs, "of this kind")
    def fourth(x):
        return x + 2

    assert (third(1), fourth(1)) == (2, 3)
    jax.tree_util.register_pytree_node(pl.BlockSpec, lambda x: ((), None), lambda a, c: None)
    options = tpu.CompilerParams(dimension_semantics=("parallel",))
    assert options is tpu.CompilerParams and tpu.MemorySpace.VMEM is tpu.MemorySpace.VMEM


def test_private_modules_have_what_their_public_ones_have(jax):
    inner = importlib.import_module("jax._src.lax.control_flow")
    assert inner.scan is jax.lax.scan
    assert importlib.import_module("jax._src.pjit").jit_p.name == "jit"
    assert importlib.import_module("jax._src.scipy.special").gammaln is jax.scipy.special.gammaln
    if importlib.util.find_spec("plait_sharding") is not None:
        assert importlib.import_module("jax._src.mesh").Mesh is jax.sharding.Mesh
    assert importlib.import_module("jax._src.api").jit is jax.jit
    util = importlib.import_module("jax._src.numpy.util")
    for args, want in (((1, 2.0), "complex64"), ((np.float64(1), np.arange(2)), "complex64")):
        assert [str(x.dtype) for x in util.promote_dtypes_complex(*args)] == [want] * 2
    assert [str(x.dtype) for x in util.promote_dtypes_inexact(np.arange(2), True)] == [
        "float32"
    ] * 2
    assert [str(x.dtype) for x in util.promote_dtypes(np.int8(1), np.int32(2))] == ["int32"] * 2
    with pytest.raises(plait.errors.NotAnArrayError, match="argument 1 of f"):
        util.check_arraylike("f", 1.0, [2.0])


def test_names_that_jax_deprecates_answer(jax):
    core = importlib.import_module("jax.core")
    assert core.concrete_or_error(int, np.float32(3)) == 3
    assert core.concrete_or_error(None, "as it is") == "as it is"

    def shape(x):
        return jax.numpy.zeros(core.concrete_or_error(int, x))

    with pytest.raises(plait.errors.ConcretizationError):
        jax.jit(shape)(3)
    closed = jax.make_jaxpr(lambda x: jax.numpy.sin(x) * 2)(1.0)
    assert core.check_jaxpr(closed.jaxpr) is None
    broken = closed.jaxpr.replace(eqns=closed.jaxpr.eqns[1:])
    with pytest.raises(core.JaxprTypeError, match="equation 0"):
        core.check_jaxpr(broken)
    eqn = closed.jaxpr.eqns[0]
    made = core.new_jaxpr_eqn(eqn.invars, [core.gensym()(eqn.outvars[0].aval)], eqn.primitive, {},
                              core.no_effects)  # fmt: skip
    assert made.primitive is jax.lax.sin_p and not isinstance(made.outvars[0], core.DropVar)
    assert core.is_constant_shape((2, np.int64(3))) and not core.is_constant_shape(("b",))
    assert core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == jax.float0
    assert jax.numpy.__array_api_version__ >= "2024.12"
    info = jax.numpy.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == np.float32


def test_functions_are_wrapped_by_generators(jax):
    lu = importlib.import_module("jax.extend.linear_util")

    @lu.transformation
    def shifted(by, *args):
        out = yield [a + by for a in args], {}
        yield out * 2

    @lu.transformation_with_aux
    def counted(*args):
        out = yield args, {}
        yield out, len(args)

    @lu.transformation2
    def negated(fun, *args):
        return -fun(*args)

    f = lu.wrap_init(lambda x, y: x * y)
    assert shifted(f, 1).call_wrapped(2, 3) == 3 * 4 * 2
    wrapped, count = counted(negated(f))
    with pytest.raises(lu.StoreException):
        count()
    assert wrapped.call_wrapped(2, 3) == -6 and count() == 2
    util = importlib.import_module("jax._src.util")
    assert util.split_list([1, 2, 3], [1]) == [[1], [2, 3]]
    flags, items = [True, False, True], [1, 2, 3]
    no, yes = util.partition_list(flags, items)
    assert (no, yes) == ([2], [1, 3]) and util.merge_lists(flags, no, yes) == items
    assert util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
    assert util.unzip3([(1, 2, 3)]) == ((1,), (2,), (3,))
    with pytest.raises(ValueError):
        util.safe_zip([1], [1, 2])


def test_definitions_of_several_arrays_go_through_and_their_use_is_an_error(jax):
    hijax = importlib.import_module("jax.experimental.hijax")

    class Pair(hijax.HiPrimitive):
        def impl(self, x):
            return x

    class Type(hijax.MutableHiType):
        size = hijax.aval_property(fget=lambda t: 2)
        first = hijax.aval_method(lambda t: 1)

    hijax.register_hitype(int, lambda x: None)
    hijax.control_flow_allowed_effects.add_type(KeyError)
    assert hijax.control_flow_allowed_effects.contains(KeyError())
    for use in (lambda: Pair("pair").bind(1.0), lambda: Type()):
        with pytest.raises(plait_jax.MissingName, match="hijax"):
            use()


def test_trees_are_known_by_their_classes(jax):
    registry = importlib.import_module("jax._src.tree_util")._registry
    assert dict in registry and tuple in registry and type(None) in registry
    assert int not in registry and 3 not in registry

    class Mine:
        """A tree of no children."""

    assert Mine not in registry
    importlib.import_module("jax").tree_util.register_static(Mine)
    assert Mine in registry


def test_checkify_has_jaxs_names(jax):
    checkify = importlib.import_module("jax.experimental.checkify")

    def f(x):
        checkify.check(x > 0, "x is {x}", x=x)
        return x

    error, y = jax.jit(checkify.checkify(f, errors=checkify.all_checks))(-1.0)
    assert error.get() == "x is -1.0" and float(y) == -1.0
    with pytest.raises(checkify.JaxRuntimeError, match="x is -1.0"):
        error.throw()


def test_a_format_is_its_sharding(jax):
    layout = importlib.import_module("jax.experimental.layout")
    assert layout.Format(None, "here") == "here"
    assert layout.Format(layout.Layout((1, 0)), "here") == "here"


def test_what_libraries_ask_of_none(jax):
    jnp = jax.numpy
    assert (jnp.shape(None), jnp.ndim(None), jnp.size(None)) == ((), 0, 1)
    assert (jnp.shape([[1, 2]]), jnp.ndim([1]), jnp.size([[1, 2]], 1)) == ((1, 2), 1, 2)
    with pytest.raises(TypeError):
        jnp.sin(None)


def test_a_dtype_that_no_array_has_is_compared(jax):
    assert jax.dtypes.canonicalize_dtype(object) == np.dtype(object)
    assert jax.dtypes.canonicalize_dtype("float64") == np.dtype("float32")
    kind = jax.dtypes.prng_key
    assert jax.dtypes.canonicalize_dtype(kind, allow_extended_dtype=True) is kind
    assert issubclass(kind, np.generic) and jax.dtypes.issubdtype(kind, np.generic)
    assert jax.numpy.issubdtype(jax.random.key(0).dtype, kind)
    assert not jax.numpy.issubdtype(np.float32, kind)
    for bad in (lambda: jax.numpy.zeros(2, kind), lambda: jax.numpy.zeros(2, object)):
        with pytest.raises(TypeError):
            bad()


def test_keys_are_opaque_where_that_is_chosen(jax):
    def opaque(key):
        return jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)

    @jax.enable_custom_prng()
    def made():
        return jax.random.PRNGKey(3)

    assert opaque(made()) and not opaque(jax.random.PRNGKey(3))
    assert np.asarray(jax.random.key_data(made())).tolist() == [0, 3]
    with jax.enable_custom_prng(False):
        assert np.asarray(jax.random.PRNGKey(3)).tolist() == [0, 3]
        assert opaque(jax.random.key(3))


def test_settings_are_plaits_and_flags_are_left_to_absl(jax):
    assert jax.config.parse_flags_with_absl() is None and jax.config.config_with_absl() is None
    assert jax.config.x64_enabled is jax.config.jax_enable_x64 is False
    with jax.enable_x64(True):
        assert jax.config.x64_enabled and {"x64_enabled", "read"} <= set(dir(jax.config))
    before = plait.config.default_matmul_precision
    try:
        jax.config.update("jax_default_matmul_precision", "highest")
        assert plait.config.default_matmul_precision == "highest"
        assert jax.config.jax_default_matmul_precision == "highest"
        assert jax.config.read("jax_default_matmul_precision") == "highest"
    finally:
        plait.config.default_matmul_precision = before
    assert jax.config.x64 == plait.config.x64 and "x64" in dir(jax.config)
    with jax.config(x64=True):
        assert plait.config.x64
    with pytest.raises(AttributeError, match="no setting"):
        jax.config.no_such_setting
