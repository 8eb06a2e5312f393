"""Checkpoints by orbax over several processes: saved while the program goes on, and read.

    python orbax_processes.py save FOLDER        # steps 1 and 2
    python orbax_processes.py killed FOLDER      # step 3, in which process 1 dies
    python orbax_processes.py read FOLDER        # the last one, by any number of them

Invariant: what a process read is told, and compared by the test.
"""

import json
import os
import signal
import sys
from pathlib import Path

import plait_jax

plait_jax.install()

import jax  # noqa: E402
import numpy as np  # noqa: E402
import orbax.checkpoint as ocp  # noqa: E402

import plait  # noqa: E402

ROWS, COLUMNS = 60, 40_000


def tree(step):
    """The arrays of a step, on the host."""
    rows = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    return {"rows": rows + step, "copies": np.full(3, step, np.int32)}


def main(how, folder):
    plait.distributed.initialize(on_loss="exit")
    mesh = jax.make_mesh((jax.device_count(),), ("all",))
    lies = {
        "rows": jax.sharding.NamedSharding(mesh, jax.P("all")),
        "copies": jax.sharding.NamedSharding(mesh, jax.P()),
    }
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=True)
    with ocp.CheckpointManager(Path(folder), options=options) as manager:
        if how == "read":
            read(manager, lies)
            return
        for step in (1, 2) if how == "save" else (3,):
            state = {k: jax.device_put(x, lies[k]) for k, x in tree(step).items()}
            manager.save(step, args=ocp.args.StandardSave(state))
            if how == "killed" and jax.process_index() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        manager.wait_until_finished()


def read(manager, lies):
    """Restore the last checkpoint; tell its step, and how much of it is right here."""
    step = manager.latest_step()
    like = {k: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=lies[k]) for k, x in tree(0).items()}
    back = manager.restore(step, args=ocp.args.StandardRestore(like))
    pieces = {k: [(s.index, np.asarray(s.data)) for s in x.addressable_shards]
              for k, x in back.items()}  # fmt: skip
    want = tree(step)
    right = all((want[k][i] == piece).all() for k, each in pieces.items() for i, piece in each)
    told = {"step": step, "right": bool(right), "rows": pieces["rows"][0][1].shape[0]}
    print("told " + json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
