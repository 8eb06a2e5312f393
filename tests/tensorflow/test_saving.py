"""Models that are saved with their parameters as variables, and loaded by TensorFlow alone.

Invariant: a process that has TensorFlow only computes and differentiates them; judges are numpy and
Plait's derivatives.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait.ext.errors import PlaitError
from plait_export import symbolic_args_specs
from plait_export.tensorflow import save

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")

F32 = np.float32
W = np.linspace(0, 1, 600, dtype=F32).reshape(3, 200)
PARAMS = {"w": W, "b": [np.full(200, 0.5, F32)], "count": np.int32(3)}
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)
ANY = symbolic_args_specs(X, "batch, 3")


def layer(params, x):
    y = pnp.tanh(x @ params["w"] + params["b"][0])
    return {"y": y, "n": params["count"] * x.shape[0]}


def weighed(params, batch, factor):
    return params["w"][:, 0] * batch["image"] * factor


LOAD = """
import sys
import numpy as np
import tensorflow as tf

model, want = tf.saved_model.load(sys.argv[1]), np.load(sys.argv[2])
w = model.params["w"]
assert w.trainable and not model.params["count"].trainable
with tf.GradientTape(persistent=True) as second:
    with tf.GradientTape() as first:
        found = model.layer(want["x"])
        total = tf.reduce_sum(found["y"])
    once = first.gradient(total, w)
    squares = tf.reduce_sum(once * once)
np.testing.assert_allclose(found["y"], want["y"], rtol=1e-5)
assert found["n"].numpy() == 12
np.testing.assert_allclose(once, want["once"], rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(second.gradient(squares, w), want["again"], rtol=1e-4, atol=1e-5)
other = model.signatures["weighed"](image=tf.ones(3), factor=tf.constant(2.0))
np.testing.assert_allclose(other["out"], 2 * w[:, 0], rtol=1e-6)
tf.train.Checkpoint(model=model).read(sys.argv[3]).assert_existing_objects_matched()
np.testing.assert_array_equal(w, 0)
assert not {m.partition(".")[0] for m in sys.modules} & {"plait", "plait_export", "jaxlib"}
print("done")
"""


def large_constants(folder):
    """Constants of more than a kilobyte, in graphs and their functions."""
    loaded = tf.saved_model.load(str(folder))
    found = []
    for f in loaded.signatures.values():
        whole = f.graph.as_graph_def()
        nodes = [*whole.node, *(n for g in whole.library.function for n in g.node_def)]
        found += [n.name for n in nodes if n.op == "Const" and n.ByteSize() > 1024]
    return found


@pytest.mark.timeout(300)
def test_a_graph_is_differentiated_twice_by_tensorflow_alone(tmp_path):
    folder = tmp_path / "saved"
    save(
        str(folder),
        {"layer": layer, "weighed": weighed},
        PARAMS,
        {"layer": (ANY,), "weighed": ({"image": X[0]}, F32(1))},
        names={"weighed": ["image", "factor"]},
        enable_graph=True,
    )
    assert large_constants(folder) == []
    total = lambda w: layer({**PARAMS, "w": w}, X)["y"].sum()  # noqa: E731
    once = plait.grad(total)(W)
    again = plait.grad(lambda w: (plait.grad(total)(w) ** 2).sum())(W)
    np.savez(tmp_path / "want.npz", x=X, y=np.tanh(X @ W + 0.5), once=once, again=again)
    loaded = tf.saved_model.load(str(folder))
    for v in tf.nest.flatten(dict(loaded.params)):
        v.assign(tf.zeros_like(v))
    zeros = tf.train.Checkpoint(model=loaded).write(str(tmp_path / "zeros"))
    command = [sys.executable, "-c", LOAD, str(folder), str(tmp_path / "want.npz"), zeros]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr[-3000:]


@pytest.mark.timeout(300)
def test_what_is_served_has_names(tmp_path):
    folder = str(tmp_path / "saved")
    save(folder, layer, PARAMS, ANY)
    np.save(tmp_path / "x.npy", X)
    tool = os.path.join(os.path.dirname(sys.executable), "saved_model_cli")
    command = [tool, "run", "--dir", folder, "--tag_set", "serve", "--signature_def",
               "serving_default", "--inputs", f"x={tmp_path / 'x.npy'}", "--outdir",
               str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.tanh(X @ W + 0.5), rtol=1e-5)
    assert np.load(tmp_path / "n.npy") == 12
    assert large_constants(folder) == []


MISTAKES = {
    "too few names": (
        lambda d: save(d, weighed, PARAMS, ({"image": X[0]}, F32(1)), names=["image"]),
        r"names says image, and weighed takes args\[1\]\['image'\], args\[2\] after",
    ),
    "no name": (
        lambda d: save(d, layer, PARAMS, (ANY,), names=["an x"]),
        "names says an x, and layer takes",
    ),
    "types of others": (
        lambda d: save(d, {"layer": layer}, PARAMS, {"weighed": (ANY,)}),
        "there are functions layer, and types are not given for these",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_say_what_and_what_instead(tmp_path, mistake):
    run, text = MISTAKES[mistake]
    with pytest.raises(PlaitError, match=text) as e:
        run(str(tmp_path))
    assert e.value.fix
