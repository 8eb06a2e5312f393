"""Training that goes on from its last checkpoint, with any number of processes.

    python -m plait_sharding.launch -n 4 examples/elastic.py runs/a 40
    srun python examples/elastic.py runs/a 40
    python -m plait_sharding.ray -n 4 examples/elastic.py runs/a 40

Run the same command again, with fewer or more processes, and it goes on where the last whole
checkpoint was made; on Ray that happens by itself when a worker dies.  Parameters and the state of
the optimiser are divided over all devices, as the data are.  It needs tensorstore.

Invariant: the data of a step depend on its number only, so that losses are the same, to rounding,
however often the run was interrupted.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import plait
import plait.numpy as pnp
from plait import P

sys.path.insert(0, str(Path(__file__).resolve().parent))
import checkpoint  # noqa: E402

INPUTS, HIDDEN, BATCH = 16, 120, 120
TRAINED = ("first", "second")
DIVIDED = {"first": P(None, "all"), "second": P("all")}
EVERY = 4
"""Steps between two checkpoints."""


def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    """The data of one step."""
    rng = np.random.default_rng(step)
    x = rng.normal(size=(BATCH, INPUTS)).astype(np.float32)
    return x, np.sin(x[:, :2].sum(1)).astype(np.float32)


def parameters() -> dict[str, np.ndarray]:
    """Parameters to begin with."""
    rng = np.random.default_rng(0)
    return {
        "first": rng.normal(size=(INPUTS, HIDDEN), scale=0.3).astype(np.float32),
        "second": rng.normal(size=(HIDDEN,), scale=0.1).astype(np.float32),
    }


def loss(params: Any, x: Any, y: Any) -> Any:
    """The mean squared error of a network of two layers."""
    return pnp.mean((pnp.tanh(x @ params["first"]) @ params["second"] - y) ** 2)


def stepped(state: Any, x: Any, y: Any) -> Any:
    """One step of gradient descent with momentum."""
    value, grads = plait.value_and_grad(loss)({k: state[k] for k in TRAINED}, x, y)
    velocity = {k: 0.9 * state[f"{k}.velocity"] + grads[k] for k in TRAINED}
    new = {k: state[k] - 0.02 * velocity[k] for k in TRAINED}
    return new | {f"{k}.velocity": v for k, v in velocity.items()}, value


def train(root: Path, steps: int, after: Callable[[int], None] = lambda step: None) -> list[float]:
    """Train up to a number of steps; return the losses of the steps that were taken here."""
    plait.distributed.initialize()
    mesh = plait.make_mesh((plait.device_count(),), ("all",))
    lies = {k: plait.NamedSharding(mesh, spec) for k, spec in DIVIDED.items()}
    lies |= {f"{k}.velocity": lies[k] for k in DIVIDED}
    rows, whole = plait.NamedSharding(mesh, P("all")), plait.NamedSharding(mesh, P())
    step = plait.jit(stepped, out_shardings=(lies, whole), donate_argnums=0)

    last = checkpoint.latest(root)
    if last is None:
        host = parameters()
        host |= {f"{k}.velocity": np.zeros_like(x) for k, x in host.items()}
        state = {k: plait.device_put(x, lies[k]) for k, x in host.items()}
    else:
        state = checkpoint.restore_tensorstore(last, lies)
    begun = 0 if last is None else int(last.name)
    losses, saving = [], None
    for k in range(begun, steps):
        x, y = (
            plait.make_array_from_callback(v.shape, rows, v.__getitem__, dtype=v.dtype)
            for v in batch(k)
        )
        state, value = step(state, x, y)
        losses.append(float(value))
        if plait.process_index() == 0:
            with open(root / "losses.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps([k, losses[-1], plait.process_count()]) + "\n")
        if (k + 1) % EVERY == 0:
            if saving is not None:
                saving.wait()
            saving = checkpoint.save_tensorstore(checkpoint.of_step(root, k + 1), state)
        after(k)
    if saving is not None:
        saving.wait()
    return losses


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    train(folder, int(sys.argv[2]))
    if plait.process_index() == 0:
        print(f"{sys.argv[2]} steps by {plait.process_count()} processes")
