"""What a script's user sees of an error: the lines of his own code, and the message.

Invariant: each case is a script of its own file, run to its end by Python itself; what is expected
is which lines of it the printed traceback shows.
"""

import os
import re
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

import plait

_FRAME = re.compile(r'^\s*File "(.*)", line (\d+)', re.M)
_HEAD = "import numpy as np, plait, plait.numpy as jnp\nfrom plait import lax\n"
_SEVERAL = """
import contextlib, io, os, pathlib, runpy, sys, traceback
for path in sys.argv[1:]:
    path = pathlib.Path(path)
    hook, sys.excepthook = sys.excepthook, sys.__excepthook__
    sys.excepthook = hook
    said = io.StringIO()
    try:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    except BaseException as error:
        # this very frame is no line of the script's: what is printed begins below it
        error.__traceback__ = error.__traceback__.tb_next
        with contextlib.redirect_stderr(said):
            sys.excepthook(type(error), error, error.__traceback__)
    path.with_suffix(".err").write_text(said.getvalue())
"""

# Each case is a script.  Lines that the traceback is to show end in `#!`; the last is shown last.
SCRIPTS = {
    "if": """
def f(x):
    if x > 0:  #!
        return x
    return -x
plait.jit(f)(1.0)  #!
""",
    "while": """
def f(x):
    while x < 3:  #!
        x = x + 1
    return x
plait.jit(f)(1.0)  #!
""",
    "numpy of a tracer": """
def f(x):
    return np.sin(x)  #!
plait.grad(f)(1.0)  #!
""",
    "an element of numpy's": """
def f(x):
    a = np.zeros(3)
    a[0] = x  #!
    return a
plait.jit(f)(1.0)  #!
""",
    "float": """
def f(x):
    return float(x)  #!
plait.vmap(f)(jnp.ones(2))  #!
""",
    "nested": """
def inner(y):
    return y + jnp.ones(4)  #!
def outer(x):
    return plait.jit(inner)(x)  #!
plait.jit(plait.vmap(outer))(jnp.ones((2, 3)))  #!
""",
    "shapes": "jnp.ones(3) + jnp.ones(4)  #!\n",
    "reflected": "np.ones(3) @ jnp.ones(4)  #!\n",
    "negative of a key": "-plait.random.key(0)  #!\n",
    "numpy function": "jnp.dot(jnp.ones(3), jnp.ones(4))  #!\n",
    "thin function": "jnp.sin('a')  #!\n",
    "keyword": "jnp.zeros(3, foo=1)  #!\n",
    "method": "jnp.ones(3).reshape(2, 2)  #!\n",
    "index": "jnp.ones(3)['a']  #!\n",
    "truth": "bool(jnp.ones(3))  #!\n",
    "length": "len(jnp.ones(()))  #!\n",
    "iteration": "list(jnp.ones(()))  #!\n",
    "lax": "lax.dynamic_slice(jnp.ones(3), (0, 0), (1,))  #!\n",
    "lax keyword": "lax.add(1.0, 2.0, foo=1)  #!\n",
    "random": "plait.random.normal(3, (2,))  #!\n",
    "nn": "plait.nn.softmax(jnp.ones(3), axis=4)  #!\n",
    "linalg": "jnp.linalg.solve(jnp.ones(3), jnp.ones(4))  #!\n",
    "argument": "plait.jit(lambda x: x)('a')  #!\n",
    "static argument": "plait.jit(lambda x, y: x, static_argnums=1)(1, [2])  #!\n",
    "decoration": "plait.jit(3)  #!\n",
    "result": "plait.jit(lambda x: 'a')(1.0)  #!\n",
    "lowering": "plait.jit(lambda x: x).lower('a')  #!\n",
    "vector gradient": "plait.grad(lambda x: x)(jnp.ones(3))  #!\n",
    "map axes": "plait.vmap(lambda x: x, in_axes=2)(jnp.ones(3))  #!\n",
    "branches": "lax.cond(True, lambda x: x, lambda x: (x, x), 1.0)  #!\n",
    "tree": "plait.tree.map(lambda x, y: x, [1], [1, 2])  #!\n",
    "deleted": "x = jnp.ones(3)\nx.delete()\nx + 1  #!\n",
    "setting": "plait.config.default_float = 'f'  #!\n",
    "name": "plait.no_such_name  #!\n",
    "mesh": "plait.shard_map(lambda x: x, mesh=1, in_specs=1, out_specs=1)(1.0)  #!\n",
    "export": "plait.export.export(lambda x: x)('a')  #!\n",
    "escaped": """
kept = []
plait.jit(lambda x: kept.append(x))(1.0)
kept[0] + 1  #!
""",
    "key used as number": "plait.random.key(0) + 1  #!\n",
    "in a library": """
import functools
def f(x):
    return functools.reduce(lambda a, b: a[b], [x, 'k'])  #!
plait.jit(f)(1.0)  #!
""",
}

# Functions of the user's that are called by transformations and control flow: what they raise.
CALLERS = {
    "jit": "plait.jit(bad)(1.0)",
    "jit of a dictionary": "plait.jit(bad)({'a': 1.0})",
    "static": "plait.jit(lambda x, n: bad(x), static_argnums=1)(1.0, 2)",
    "grad": "plait.grad(bad)(1.0)",
    "grad of jit": "plait.grad(plait.jit(bad))(1.0)",
    "value_and_grad": "plait.value_and_grad(bad)(1.0)",
    "jvp": "plait.jvp(bad, (1.0,), (1.0,))",
    "vjp": "plait.vjp(bad, 1.0)",
    "linearize": "plait.linearize(bad, 1.0)",
    "linear_transpose": "plait.linear_transpose(bad, 1.0)",
    "jacfwd": "plait.jacfwd(bad)(1.0)",
    "jacrev": "plait.jacrev(bad)(1.0)",
    "hessian": "plait.hessian(bad)(1.0)",
    "hvp": "plait.hvp(bad, (1.0,), (1.0,))",
    "jet": "plait.jet(bad, (1.0,), ((1.0,),))",
    "checkpoint": "plait.checkpoint(bad)(1.0)",
    "vmap": "plait.vmap(bad)(jnp.ones(2))",
    "pmap": "plait.pmap(bad)(jnp.ones((1, 2)))",
    "shard_map": "plait.shard_map(bad, mesh=plait.make_mesh((1,), ('x',)), in_specs=plait.P(), "
    "out_specs=plait.P())(1.0)",
    "eval_shape": "plait.eval_shape(bad, 1.0)",
    "make_jaxpr": "plait.make_jaxpr(bad)(1.0)",
    "lower": "plait.jit(bad).lower(1.0)",
    "export": "plait.export.export(bad)(1.0)",
    "cond": "lax.cond(True, bad, lambda x: x, 1.0)",
    "switch": "lax.switch(0, [bad, bad], 1.0)",
    "while_loop": "lax.while_loop(lambda x: x < 3, bad, 1.0)",
    "fori_loop": "lax.fori_loop(0, 3, lambda i, x: bad(x), 1.0)",
    "scan": "lax.scan(lambda c, x: bad(c), 1.0, None, length=2)",
    "map": "lax.map(bad, jnp.ones(2))",
    "associative_scan": "lax.associative_scan(lambda a, b: bad(a), jnp.ones(4))",
    "callback": "plait.pure_callback(bad, jnp.ones(()), 1.0)",
    "callback in jit": "plait.jit(lambda x: plait.pure_callback(bad, x, x))(1.0)",
    "vectorize": "jnp.vectorize(bad)(jnp.ones(2))",
    "tree.map": "plait.tree.map(bad, [1.0])",
    "custom_jvp": "f = plait.custom_jvp(bad); f.defjvp(lambda p, t: (p[0], t[0])); f(1.0)",
    "custom_vjp": "f = plait.custom_vjp(abs); f.defvjp(bad, lambda r, g: g); plait.grad(f)(1.0)",
    "custom_vmap": "f = plait.custom_batching.custom_vmap(lambda x: x); "
    "f.def_vmap(lambda n, mapped, x: bad(x)); plait.vmap(f)(jnp.ones(2))",
    "custom_root": "lax.custom_root(bad, 1.0, lambda f, x: f(x), lambda f, x: x)",
    "partial": "import functools; plait.jit(functools.partial(bad))(1.0)",
    "many levels": "plait.jit(plait.vmap(plait.grad(plait.jit(bad))))(jnp.ones(2))",
}
for _name, _call in CALLERS.items():
    SCRIPTS[f"user, {_name}"] = f"""
class Mine(Exception):
    pass
def bad(x):
    raise Mine("said by the user")  #!
{_call}  #!
"""
SCRIPTS["user, rule"] = """
@plait.custom_jvp
def f(x):
    return x
@f.defjvp
def rule(primals, tangents):
    raise ValueError("said by the user")  #!
plait.jit(plait.grad(f))(1.0)  #!
"""
SCRIPTS["user, backward"] = """
@plait.custom_vjp
def f(x):
    return x
def backward(kept, g):
    raise ValueError("said by the user")  #!
f.defvjp(lambda x: (x, None), backward)
out, pull = plait.vjp(f, 1.0)
pull(1.0)  #!
"""
SCRIPTS["after one of the user's"] = """
def f(x):
    try:
        return {}['first']  #!
    except KeyError:
        raise ValueError("second")  #!
plait.jit(f)(1.0)  #!
"""
SCRIPTS["in the user's handler"] = """
try:
    {}['first']  #!
except KeyError:
    plait.jit(lambda x: x + jnp.ones(4))(jnp.ones(3))  #!
"""
SCRIPTS["with a cause"] = """
def f(x):
    try:
        return {}['first']  #!
    except KeyError as e:
        raise ValueError("second") from e  #!
plait.vmap(f)(jnp.ones(2))  #!
"""
SCRIPTS["thread"] = """
import threading
def run():
    jnp.ones(3) + jnp.ones(4)  #!
thread = threading.Thread(target=run)
thread.start()
thread.join()
lax.dynamic_slice(1.0, (0,), (1,))  #!
"""


def _wanted(text):
    """The numbers of the lines that are marked."""
    return {i for i, line in enumerate(text.splitlines(), 1) if "#!" in line}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What Python prints of each script, all run by one process."""
    folder = tmp_path_factory.mktemp("scripts")
    paths = {}
    for i, (name, text) in enumerate(SCRIPTS.items()):
        paths[name] = folder / f"script{i}.py"
        paths[name].write_text(_HEAD + text.lstrip("\n"))
    runner = folder / "runner.py"
    runner.write_text(_SEVERAL)
    environment = {k: v for k, v in os.environ.items() if k != "PLAIT_TRACEBACK"}
    files = list(map(str, paths.values()))
    threads = subprocess.run(
        [sys.executable, str(runner), *files],
        capture_output=True, text=True, env=environment, timeout=250,
    )  # fmt: skip
    out = {n: (p, p.with_suffix(".err").read_text()) for n, p in paths.items()}
    path, own = out["thread"]
    out["thread"] = path, threads.stderr + own
    return out


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_traceback_shows_the_users_lines_and_no_others(said, name):
    path, printed = said[name]
    text = path.read_text()
    frames = _FRAME.findall(printed)
    assert frames, printed
    strange = [file for file, _ in frames if file != str(path) and "functools" not in file]
    strange = [file for file in strange if not file.endswith("threading.py")]
    assert not strange, printed
    shown = {int(line) for file, line in frames if file == str(path)}
    assert shown == _wanted(text), printed
    assert "mistake of its own" not in printed
    others = printed.count("During handling") + printed.count("The above exception was the direct")
    assert others == (
        name
        in (
            "after one of the user's",
            "in the user's handler",
            "with a cause",
            "an element of numpy's",
        )
    )
    if name.startswith("user"):
        assert "said by the user" in printed.splitlines()[-1]


def _script(tmp_path, text, **environment):
    path = tmp_path / "script.py"
    path.write_text(_HEAD + text)
    kept = {k: v for k, v in os.environ.items() if k != "PLAIT_TRACEBACK"}
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True, text=True, env=kept | environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    return path, done.stderr


def test_a_script_by_itself_and_with_all_frames(tmp_path):
    """By the command line, as users run it; and the setting that leaves everything in."""
    text = "def f(x):\n    return x if x > 0 else -x\nplait.jit(f)(1.0)\n"
    path, printed = _script(tmp_path, text)
    assert [f for f, _ in _FRAME.findall(printed)] == [str(path)] * 2
    assert "During handling" not in printed
    path, full = _script(tmp_path, text, PLAIT_TRACEBACK="full")
    ours = [f for f, _ in _FRAME.findall(full) if Path(plait.__file__).parent in Path(f).parents]
    assert len(ours) > 3
    path, full = _script(tmp_path, 'plait.config.traceback = "full"\nlax.dynamic_slice(1, 2, 3)\n')
    assert "dynamic_slicing.py" in full


def test_hooks_of_others_are_left_alone(tmp_path):
    text = """
import sys
def mine(kind, error, trace):
    print("mine:", kind.__name__, file=sys.stderr)
sys.excepthook = mine
lax.dynamic_slice(1.0, (0, 0), (1,))
"""
    _, printed = _script(tmp_path, text)
    assert printed.startswith("mine: ")


def test_a_caught_error_has_the_users_frames():
    """Where errors are caught and written to a log, too."""

    def bad(x):
        raise ValueError("said")

    def files(error):
        return {f.filename for f in traceback.extract_tb(error.__traceback__)}

    for call in (
        lambda: plait.jit(bad)(1.0),
        lambda: plait.grad(bad)(1.0),
        lambda: plait.lax.scan(lambda c, _: bad(c), 0.0, None, length=2),
        lambda: plait.numpy.ones(3) + plait.numpy.ones(4),
        lambda: plait.numpy.dot(plait.numpy.ones(3), plait.numpy.ones(4)),
    ):
        with pytest.raises(ValueError, match=r"said|broadcast|contracted") as caught:
            call()
        assert files(caught.value) == {__file__}
        assert caught.value.__context__ is None
        with plait.config(traceback="full"), pytest.raises(ValueError) as caught:
            call()
        assert len(files(caught.value)) > 1


def test_errors_in_threads_keep_their_own_frames():
    found = []

    def run(n):
        try:
            plait.jit(lambda x: x + plait.numpy.ones(n))(plait.numpy.ones(n + 1))
        except ValueError as error:
            found.append([f.name for f in traceback.extract_tb(error.__traceback__)])

    threads = [threading.Thread(target=run, args=(n,)) for n in (2, 3, 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [["run", "<lambda>"]] * 3


@pytest.mark.parametrize("error", ["assert x is None", "{}[x]", "x.shape"])
def test_a_mistake_of_our_own_says_how_to_see_it(error):
    """What is no error of ours and begins in a frame of ours is a defect: its frames are wanted."""
    scope = {}
    exec(compile(f"def wrong(x):\n    {error}", "<plait test>", "exec"), scope)
    with pytest.raises((AssertionError, KeyError, AttributeError)) as caught:
        plait.ext.errors.border(scope["wrong"])(1)
    assert "PLAIT_TRACEBACK=full" in caught.value.__notes__[0]
    assert {f.filename for f in traceback.extract_tb(caught.value.__traceback__)} == {__file__}
