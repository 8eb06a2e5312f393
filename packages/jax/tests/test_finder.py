"""How `import jax` is answered, refused, and taken back.

Invariant: what is printed by a script that knows only jax is compared with numpy.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import plait
import plait_jax
from plait.errors import PlaitError

SCRIPT = """
    import sys
    import numpy as np
    import jax
    import jax.numpy as jnp
    from jax import lax, random
    from jax.scipy.special import logsumexp

    @jax.jit
    def f(x):
        return lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) + i, x)

    print([round(float(v), 4) for v in f(jnp.arange(3.0))], jnp.asarray(np.ones(2)).dtype)
    print(jax.__version__, sys.argv[1:], __name__, float(logsumexp(jnp.zeros(1))))
"""


def wanted():
    v = np.arange(3.0)
    for i in range(3):
        v = np.sin(v) + i
    return [round(float(x), 4) for x in v]


def test_a_script_by_the_module(run):
    first, second = run(SCRIPT, "-m", "plait_jax").splitlines()
    assert first == f"{wanted()} float32"
    assert second == "0.10.2 [] __main__ 0.0"


def test_a_script_by_a_call(run):
    code = "import plait_jax\nplait_jax.install()\n"
    lines = [line.removeprefix("    ") for line in SCRIPT.splitlines()]
    assert run(code + "\n".join(lines)).startswith(f"{wanted()} float32")


def test_a_script_by_the_environment(run):
    """The .pth file, as `site` reads it from a folder of packages."""
    folder = Path(__file__).parents[1]
    start = f"import site; site.addsitedir({str(folder)!r})\n"
    lines = [line.removeprefix("    ") for line in SCRIPT.splitlines()]
    code = start + "\n".join(lines)
    assert run(code, PLAIT_JAX="1").startswith(f"{wanted()} float32")
    probe = start + "import sys, plait_jax\nprint(plait_jax.installed(), 'plait' in sys.modules)"
    for value in ("0", "", "false", "OFF", "no"):
        assert run(probe, PLAIT_JAX=value) == "False False\n"
    assert run(probe, PLAIT_JAX="yes") == "True False\n"


def test_a_module_by_the_module(run, tmp_path):
    (tmp_path / "training.py").write_text("import jax, sys; print(jax.__name__, sys.argv[1:])")
    code = """
        import subprocess, sys
        ask = [sys.executable, "-m", "plait_jax", "-m", "training", "3"]
        print(subprocess.run(ask, capture_output=True, text=True, check=True).stdout)
    """
    assert run(code).startswith("jax ['3']")


def test_missing_names_are_told_in_the_end(run):
    code = """
        import subprocess, sys
        with open("s.py", "w") as f:
            f.write("from jax.experimental.pallas import BlockSpec")
        ask = [sys.executable, "-m", "plait_jax", "--report", "s.py"]
        print(subprocess.run(ask, capture_output=True, text=True, check=True).stderr)
        print(subprocess.run(ask[:3], capture_output=True, text=True).returncode)
    """
    told, status = run(code).strip().splitlines()[0], run(code).strip().splitlines()[-1]
    assert told.startswith("jax.experimental.pallas.BlockSpec  asked for at ")
    assert told.endswith("s.py:1")
    assert status == "2"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("value, dtype", [("1", "float64"), ("0", "float32")])
def test_bits_are_what_jax_is_told(run, value, dtype):
    code = "import jax.numpy as jnp; print(jnp.ones(2).dtype, jnp.asarray([1]).dtype)"
    env = {"JAX_ENABLE_X64": value}
    assert run(code, "-m", "plait_jax", **env) == f"{dtype} {dtype.replace('float', 'int')}\n"
    assert run(code, "-m", "plait_jax", **env, PLAIT_DEFAULT_FLOAT="float32").startswith("float32")


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "flags, own, count",
    [
        ("--xla_force_host_platform_device_count=3", {}, "3"),
        ("--xla_cpu_enable_fast_math=false --xla_force_host_platform_device_count=2", {}, "2"),
        ("--xla_force_host_platform_device_count=3", {"PLAIT_CPU_DEVICES": "2"}, "2"),
        ("--xla_cpu_enable_fast_math=false", {}, "1"),
    ],
)
def test_the_cpu_is_as_many_devices_as_flags_of_xla_say(run, flags, own, count):
    code = """
        import os
        os.environ["XLA_FLAGS"] = {flags!r}
        import jax
        from jax._src import xla_bridge
        before = xla_bridge._backends.get("cpu")
        print(len(jax.devices()), before, len(xla_bridge._backends["cpu"]))
    """
    told = run(code.replace("{flags!r}", repr(flags)), "-m", "plait_jax", **own)
    assert told == f"{count} None {count}\n"


def test_it_is_refused_beside_jax(monkeypatch):
    real = types.ModuleType("jax")
    real.__file__ = os.path.join("somewhere", "jax", "__init__.py")
    monkeypatch.setitem(sys.modules, "jax", real)
    before = list(sys.meta_path)
    with pytest.raises(PlaitError, match=r"somewhere.jax\)") as e:
        plait_jax.install()
    assert "before the first `import jax`" in e.value.fix
    assert sys.meta_path == before and not plait_jax.installed()


def test_it_is_taken_back(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "jax"]:
        monkeypatch.delitem(sys.modules, name)
    settings = ("x64", "default_float", "default_int", "numpy_scalars", "check_static_indices")
    before = {name: getattr(plait.config, name) for name in settings}
    count = len(sys.meta_path)
    plait_jax.install()
    plait_jax.install()
    assert len(sys.meta_path) == count + 1 and plait_jax.installed()
    importlib.import_module("jax.numpy")
    plait_jax.uninstall()
    for name, value in before.items():
        setattr(plait.config, name, value)
    assert len(sys.meta_path) == count
    assert not [n for n in sys.modules if n.partition(".")[0] == "jax"]


def test_names_are_plaits(jax):
    assert jax.jit is plait.jit and jax.numpy.sin is plait.numpy.sin
    assert jax.Array is plait.Array and jax.tree_util.tree_map is plait.tree_util.tree_map
    assert importlib.import_module("jax.scipy.special").erf is plait.scipy.special.erf
    assert {"jit", "numpy", "random"} <= {*dir(jax)} and "sin" in dir(jax.numpy)
    assert jax.version.__version_info__ == (0, 10, 2)
    last, _ = jax.lax.scan(lambda c, x: (c + x, None), 0.0, np.arange(4.0), _split_transpose=True)
    assert float(last) == 6.0
    with jax.named_scope("f"):
        jax.monitoring.record_event("/nobody/listens")


def test_modules_are_pickled_by_their_names(jax):
    """A process that has imported plait_jax alone finds them again."""
    ours = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "jax"]
    for module in [*ours, jax.numpy.linalg]:
        assert cloudpickle.loads(cloudpickle.dumps(module)) is module
    code = f"import pickle; print(pickle.loads({pickle.dumps(jax.nn)!r}).relu(-3.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "0.0", done.stderr


def test_the_metadata_is_answered(jax):
    assert importlib.metadata.version("jax") == "0.10.2"
    assert importlib.metadata.metadata("jax")["Name"] == "jax"
    assert importlib.metadata.version("plait-core") == plait.__version__
    assert "jax" in {d.metadata["Name"] for d in importlib.metadata.distributions()}


def test_what_is_no_name_of_jax_is_absent(jax):
    assert not hasattr(jax, "jiit") and not hasattr(jax.numpy, "sinn")
    assert importlib.util.find_spec("jax.numpie") is None
    with pytest.raises(ModuleNotFoundError, match="jax.numpie"):
        importlib.import_module("jax.numpie")
    with pytest.raises(AttributeError, match="'jax.numpy' of JAX 0.10.2 has no attribute 'sinn'"):
        jax.numpy.sinn  # noqa: B018


def test_every_name_that_there_is_comes_with_a_star(jax):
    """`from module import *` gives what other imports give, and asks for no missing name."""
    before = len(plait_jax.report().requests)
    for module in ("jax.numpy", "jax.lax", "jax.errors", "jax.scipy.special", "jax.tree_util"):
        names: dict = {}
        exec(f"from {module} import *", names)
        there = importlib.import_module(module)
        given = {n: v for n, v in names.items() if n != "__builtins__"}
        assert len(given) > 8
        assert {n for n in dir(there) if not n.startswith("_")} >= set(given)
        assert all(v is getattr(there, n) for n, v in given.items())
    assert names["tree_map"] is jax.tree_util.tree_map
    assert len(plait_jax.report().requests) == before
