"""Names of JAX that Plait lacks: importing them is no error, using them is a precise one.

Invariant: what is reported is compared with the lines of a file that the test writes.
"""

import importlib
import inspect

import numpy as np
import pytest

import plait
import plait_jax
from plait.errors import PlaitError

SPARSE = "jax.experimental.sparse"


@pytest.fixture
def sparse(jax):
    """A module of which Plait has nothing."""
    return importlib.import_module(SPARSE)


def test_a_missing_name_waits_until_it_is_used(sparse):
    kind = sparse.BCOO
    assert not isinstance(3, kind)
    assert kind | int and int | kind  # in annotations

    class Mine(kind):
        """A library's own class, which may need nothing of its base."""

        def doubled(self, x):
            return 2 * x

    assert Mine().doubled(3) == 6
    for use in (lambda: kind((1, 2)), lambda: kind.fromdense(3), lambda: Mine.fromdense(3)):
        with pytest.raises(plait_jax.MissingName, match=f"nothing for {SPARSE}.BCOO") as e:
            use()
        assert isinstance(e.value, AttributeError)
        assert "report()" in e.value.fix


def test_the_error_names_the_line_of_whoever_used_it(sparse):
    with pytest.raises(plait_jax.MissingName) as e:
        sparse.BCSR(3)
    line = inspect.currentframe().f_lineno - 1
    assert f"{__file__}:{line}" in str(e.value)


def test_dunders_are_absent(sparse):
    assert not hasattr(sparse.BCOO, "__array__")
    assert not hasattr(sparse, "__nothing__")


def test_the_report_of_this_process(sparse):
    count = len(plait_jax.report().requests)
    sparse.COO  # noqa: B018
    line = inspect.currentframe().f_lineno - 1
    mine = plait_jax.report().requests[count:]
    assert [(r.name, r.place, r.used) for r in mine] == [
        (f"{SPARSE}.COO", f"{__file__}:{line}", False)
    ]
    assert f"{SPARSE}.COO  asked for at {__file__}:{line}" in str(plait_jax.report())


def test_the_report_of_a_library(jax, tmp_path, monkeypatch):
    folder = tmp_path / "somelib"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import jax\n"
        "import jax.numpy as jnp\n"
        "from jax.experimental import sparse\n"
        "from jax.experimental.sparse import BCOO, no_such_thing\n"
        "def f(x):\n"
        "    return jnp.sin(x), jax.jit(x), sparse.CSR(x), jax.new_thing(x), jnp.sinn\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = plait_jax.report("somelib")
    assert found.names == [f"{SPARSE}.BCOO", f"{SPARSE}.CSR"]
    assert [r.place.rpartition(":")[2] for r in found.requests] == ["4", "6"]
    with pytest.raises(PlaitError, match="no library 'somelibs'"):
        plait_jax.report("somelibs")
    assert str(type(found)(())) == "no name of JAX was missing"


def test_asking_what_is_in_a_missing_name_is_an_error(sparse):
    """Python would ask a class for item 0, 1, 2, ... without end."""
    for use in (lambda: 3 in sparse.BCOO, lambda: list(sparse.BCOO),
                lambda: sparse.BCOO.__class__.__setitem__(sparse.BCOO, 0, 1)):  # fmt: skip
        with pytest.raises(plait_jax.MissingName):
            use()


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
    for use in (lambda: layout.Layout((0, 1)), lambda: layout.Format((0, 1), "here")):
        with pytest.raises(plait_jax.MissingName):
            use()


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
