"""Handwritten digits: one classifier, and every transformation of Plait at work on it.

    python examples/digits.py [PICTURE] [--reader PYTHON]

Trains a small convolutional network on scikit-learn's digits (1797 images of 8 x 8 pixels), then
takes it through per-example gradients, training on eight devices, guaranteed bounds, and export to
a process that has neither derivatives nor mapping installed.  It draws the loss curve and the
certified shares into PICTURE.  PYTHON is the interpreter of an environment with only plait-core and
plait-export in it; `nox -s demo` makes one, and without it the last step makes its own.

Invariant: every figure is checked against the same thing computed in another way, or against what
it must reach; the exit status is 1 if one is off.
"""

import argparse
import math
import subprocess
import sys
import tempfile
import time
import venv
from functools import partial
from importlib.metadata import version
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from tqdm import tqdm

import plait
import plait.numpy as pnp

HERE = Path(__file__).resolve().parent
BATCH, EPOCHS, RATE, MOMENTUM = 64, 20, 0.05, 0.9
DEVICES = 8
EPSILONS = (0.005, 0.01, 0.02)  # how far each pixel, of 0 to 1, may be changed

failures: list[str] = []


# ---- what is printed -----------------------------------------------------------------------


def title(text: str) -> None:
    """The head of a part."""
    print(f"\n{text}\n{'-' * len(text)}")


def check(what: str, figure: float, good: bool, must: str) -> None:
    """Print a figure; remember it if it is not what it must be."""
    print(f"{what}: {figure:.4g}  ({'ok' if good else 'OFF'}: must be {must})")
    if not good:
        failures.append(what)


def apart(a, b) -> float:
    """The largest difference of two trees of arrays, relative to the largest element of each."""
    pairs = zip(plait.tree.leaves(a), plait.tree.leaves(b), strict=True)
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in pairs]
    return float(np.max([abs(x - y).max() / abs(x).max() for x, y in pairs]))


# ---- data ----------------------------------------------------------------------------------


def digits(key):
    """((images, labels) to train on, (images, labels) to test on); pixels are in [0, 1]."""
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).astype(np.float32).reshape(-1, 8, 8, 1)
    order = np.asarray(plait.random.permutation(key, len(labels)))
    images, labels = images[order], labels[order].astype(np.int32)
    return (images[:1440], labels[:1440]), (images[1440:], labels[1440:])


# ---- the model -----------------------------------------------------------------------------


def layer(key, *shape):
    """Random weights, scaled by the number of inputs, and biases."""
    return {
        "weights": plait.random.normal(key, shape) * (2 / math.prod(shape[:-1])) ** 0.5,
        "bias": pnp.zeros(shape[-1]),
    }


def parameters(key):
    """Two convolutions and a dense layer."""
    first, second, last = plait.random.split(key, 3)
    return [layer(first, 3, 3, 1, 16), layer(second, 3, 3, 16, 32), layer(last, 2 * 2 * 32, 10)]


def convolve(layer, x, stride):
    """A convolution and a relu; images are (number, rows, columns, channels)."""
    y = plait.lax.conv_general_dilated(
        x, layer["weights"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return plait.nn.relu(y + layer["bias"])


def pool(x):
    """Means of 2 x 2 pixels."""
    number, rows, columns, channels = x.shape
    return x.reshape((number, rows // 2, 2, columns // 2, 2, channels)).sum((2, 4)) * 0.25


def logits(params, images):
    """(number, 10): how much each image looks like each digit."""
    first, second, last = params
    x = pool(convolve(first, images, 1))
    x = convolve(second, x, 2)
    x = x.reshape((x.shape[0], -1))
    return x @ last["weights"] + last["bias"]


def cross_entropy(scores, labels):
    """How unlikely the labels are, by the logits."""
    return -pnp.mean(pnp.sum(plait.nn.log_softmax(scores) * plait.nn.one_hot(labels, 10), axis=1))


def loss(params, images, labels):
    """What training makes small."""
    return cross_entropy(logits(params, images), labels)


def bounds(params, images, epsilon):
    """(lowest, highest) logits, when every pixel may change by epsilon."""
    return plait.interval(partial(logits, params))(images - epsilon, images + epsilon)


def careful_loss(params, images, labels):
    """The loss of the worst logits within the bounds, and of the true ones."""
    low, high = bounds(params, images, EPSILONS[-1])
    worst = pnp.where(plait.nn.one_hot(labels, 10) > 0, low, high)
    return (cross_entropy(worst, labels) + loss(params, images, labels)) / 2


def predict(params, images):
    """The digit that each image looks like most."""
    return pnp.argmax(logits(params, images), axis=1)


def share_right(params, images, labels) -> float:
    """Of how many images the prediction is right."""
    return float((np.asarray(predict(params, images)) == labels).mean())


# ---- training ------------------------------------------------------------------------------


def update(state, grads):
    """Gradient descent with momentum."""
    params, velocity = state
    velocity = plait.tree.map(lambda v, g: MOMENTUM * v + g, velocity, grads)
    return plait.tree.map(lambda p, v: p - RATE * v, params, velocity), velocity


def step(loss, state, images, labels):
    """(the state after a minibatch, its loss before)."""
    value, grads = plait.value_and_grad(loss)(state[0], images, labels)
    return update(state, grads), value


def train(loss, key, params, images, labels):
    """(trained state, losses)."""
    state = params, plait.tree.map(pnp.zeros_like, params)
    compiled, losses = plait.jit(partial(step, loss)), []
    for shuffle in tqdm(plait.random.split(key, EPOCHS), loss.__name__, unit="epoch"):
        order = np.asarray(plait.random.permutation(shuffle, len(labels)))
        for rows in order[: len(order) // BATCH * BATCH].reshape(-1, BATCH):
            state, value = compiled(state, images[rows], labels[rows])
            losses.append(value)
    return state, [float(v) for v in losses]


def draw(losses, shares, picture: Path) -> None:
    """Draw the loss curve, and the certified shares before and after careful training."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "digits", "svg.fonttype": "none"})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3))
    left.semilogy(losses, linewidth=0.7)
    left.set(xlabel="step", ylabel="loss", title="training")
    for name, values in shares.items():
        right.plot(EPSILONS, values, "o-", label=name)
    right.set(
        xlabel="change of each pixel", ylim=(0, 1), title="test images that cannot be changed"
    )
    right.yaxis.set_major_formatter("{x:.0%}")
    right.legend()
    figure.savefig(picture, dpi=120, bbox_inches="tight", metadata=undated(picture))
    print(f"the loss curve and the certified shares are in {picture}")


def undated(picture: Path) -> dict[str, None]:
    """Metadata of a picture without the day, so that the same run draws the same file."""
    return {"Date": None} if picture.suffix == ".svg" else {}


# ---- the parts -----------------------------------------------------------------------------


def squares(weights, x):
    """The short function whose programs are shown."""
    return pnp.sum((x @ weights - 1.0) ** 2)


def show_programs(mesh) -> None:
    """What each transformation makes of a function."""
    weights, x = np.zeros(3, np.float32), np.zeros((DEVICES, 3), np.float32)
    shared = plait.shard_map(
        lambda w, x: plait.lax.psum(squares(w, x), "data"),
        mesh=mesh,
        in_specs=(plait.P(), plait.P("data")),
        out_specs=plait.P(),
    )
    forms = {
        "the function itself": squares,
        "jit: it becomes one call": plait.jit(squares),
        "grad: what it needs forwards, and the way back": plait.grad(squares),
        "vmap over rows of weights": plait.vmap(squares, in_axes=(0, None)),
        f"shard_map: what one of {mesh.size} devices does": shared,
    }
    for what, f in forms.items():
        given = np.zeros((2, 3), np.float32) if what.startswith("vmap") else weights
        print(f"# {what}\n{plait.make_program(f)(given, x)}")


def norms(params, images, labels):
    """The norm of each example's gradient."""

    def norm(image, label):
        grads = plait.grad(loss)(params, image[None], label[None])
        return pnp.sqrt(sum(pnp.sum(g**2) for g in plait.tree.leaves(grads)))

    return plait.vmap(norm)(images, labels)


def per_example(params, images, labels) -> None:
    """Gradients of single examples: mapped, and one after the other."""
    found = np.asarray(plait.jit(norms)(params, images, labels))
    print(f"{len(found)} gradient norms, from {found.min():.2g} to {found.max():.2g}")
    rows = np.argsort(found)[-5:]
    print(f"the five largest are of images {rows}")
    single = plait.jit(plait.grad(loss))
    grads = [single(params, images[i : i + 1], labels[i : i + 1]) for i in rows]
    sums = [[float((np.asarray(g) ** 2).sum()) for g in plait.tree.leaves(t)] for t in grads]
    difference = float(abs(found[rows] / np.sqrt(np.sum(sums, axis=1)) - 1).max())
    check("mapped against a loop, relative difference", difference, difference < 1e-4, "< 1e-4")


def parallel(mesh, state, images, labels) -> None:
    """The same training step, with a share of the minibatch on each device."""

    def shared_loss(params, images, labels):
        return plait.lax.pmean(loss(params, images, labels), "data")

    def shared_step(state, images, labels):
        value, grads = plait.value_and_grad(shared_loss)(state[0], images, labels)
        return update(state, grads), value

    rows = plait.P("data")
    spread = plait.shard_map(
        shared_step, mesh=mesh, in_specs=(plait.P(), rows, rows), out_specs=plait.P()
    )
    one, many = plait.jit(partial(step, loss)), plait.jit(spread)
    images, labels = images[:BATCH], labels[:BATCH]
    difference = apart(one(state, images, labels), many(state, images, labels))
    what = f"{mesh.size} devices against one, relative difference"
    check(what, difference, difference < 1e-5, "< 1e-5")


def certify(params, images, labels) -> list[float]:
    """The share of images that stay what they are, by the bounds, for each epsilon.

    Logits of images that are changed at random must lie within the bounds.
    """
    bounded, plain = plait.jit(bounds), plait.jit(logits)
    rng, rows = np.random.default_rng(0), np.arange(len(labels))
    outside, shares = 0, []
    for epsilon in EPSILONS:
        low, high = map(np.asarray, bounded(params, images, epsilon))
        for _ in range(10):
            noise = rng.uniform(-epsilon, epsilon, images.shape).astype(np.float32)
            true = np.asarray(plain(params, images + noise))
            slack = 1e-5 * abs(true).max()  # of rounding
            outside += int((~((true >= low - slack) & (true <= high + slack))).sum())
        others = high.copy()
        others[rows, labels] = -np.inf
        shares.append(float((low[rows, labels] > others.max(1)).mean()))
    said = ", ".join(f"{s:.1%} within {e}" for s, e in zip(shares, EPSILONS, strict=True))
    print(f"certified: {said}")
    check("logits of changed images out of bounds", outside, outside == 0, "0")
    return shares


def guarantees(state, train_set, test_set) -> dict[str, list[float]]:
    """Certify what was trained, then train through the bounds; return the shares of both."""
    plain = certify(state[0], *test_set)
    careful, _ = train(careful_loss, plait.random.key(2), state[0], *train_set)
    accuracy = share_right(careful[0], *test_set)
    check("accuracy after careful training", accuracy, accuracy >= 0.95, ">= 0.95")
    shares = certify(careful[0], *test_set)
    check(f"share certified within {EPSILONS[-1]}", shares[-1], shares[-1] > 0.5, "> 0.5")
    return {"trained": plain, "trained through the bounds": shares}


def reader_environment(folder: Path) -> Path:
    """The interpreter of a new environment with only plait-core and plait-export."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    sources = [HERE.parent / "packages" / name for name in ("core", "export")]
    needs = [*map(str, sources), f"jaxlib=={version('jaxlib')}"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *needs], check=True)
    return python


def elsewhere(params, images, reader: Path | None) -> None:
    """Export the classifier for any number of images, and use it in another process."""
    types = plait.export.symbolic_args_specs(images, "number, ...")

    def classify(images):
        return predict(params, images)

    exported = plait.export.export(classify)(types)
    print(exported)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        saved = folder / "digits.plait"
        saved.write_bytes(exported.serialize())
        print(f"{saved.stat().st_size} bytes")
        np.save(folder / "images.npy", images)
        python = reader or reader_environment(folder / "environment")
        script = [python, "-I", HERE / "reader.py", saved, folder / "images.npy"]
        subprocess.run([*script, folder / "answers.npy"], check=True)
        answers = np.load(folder / "answers.npy")
    unequal = int((answers != np.asarray(classify(images))).sum())
    check("predictions that differ", unequal, unequal == 0, "0")


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Every transformation of Plait, on digits.")
    parser.add_argument("picture", nargs="?", type=Path, default=Path("digits-loss.png"))
    parser.add_argument(
        "--reader", type=Path, help="a Python with plait-core and plait-export only"
    )
    return parser.parse_args()


def main() -> int:
    """All parts; the exit status."""
    given, start = arguments(), time.perf_counter()
    sys.stdout.reconfigure(line_buffering=True)
    plait.config.cpu_devices = DEVICES
    mesh = plait.make_mesh((min(DEVICES, plait.device_count()),), ("data",))
    train_set, test_set = digits(plait.random.key(0))

    title("programs, before and after each transformation")
    show_programs(mesh)

    title("training: jit(value_and_grad(loss))")
    state, losses = train(loss, plait.random.key(1), parameters(plait.random.key(3)), *train_set)
    accuracy = share_right(state[0], *test_set)
    check("accuracy on test images", accuracy, accuracy >= 0.95, ">= 0.95")

    title("per-example gradients: vmap(grad(loss))")
    per_example(state[0], train_set[0][:256], train_set[1][:256])

    title(f"data-parallel: shard_map over {mesh.size} devices")
    parallel(mesh, state, *train_set)

    title("guaranteed bounds: a third party's transformation, and grad through it")
    shares = guarantees(state, train_set, test_set)
    draw(losses, shares, given.picture)

    title("export: the classifier in a process without the plugins")
    elsewhere(state[0], test_set[0], given.reader)

    print(f"\n{time.perf_counter() - start:.0f} seconds")
    if failures:
        print("off: " + "; ".join(failures), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
