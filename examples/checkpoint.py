"""Checkpoints of arrays that lie over several processes: with tensorstore, or as safetensors.

    python -m plait_sharding.launch -n 4 examples/checkpoint.py tensorstore - first
    python -m plait_sharding.launch -n 2 examples/checkpoint.py tensorstore first second

The first command makes parameters, takes a step, and writes them; the second goes on from there
with another number of processes.  It needs tensorstore or safetensors.

A piece that several devices have is written once, by the process of its first copy; and each
process reads what its own devices need, from whichever pieces there are.  A folder appears under
its name when all have written theirs: what is there is whole.

Invariant: no process ever has more of an array on its host than its own pieces.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import plait
from plait import P
from plait.experimental import multihost_utils

Tree = dict[str, Any]
Index = tuple[slice, ...]


def bounded(index: Index, shape: tuple[int, ...]) -> Index:
    """An index with numbers for its ends."""
    return tuple([slice(*s.indices(n)[:2]) for s, n in zip(index, shape)])


def first_copies(x: Any) -> Iterator[tuple[Index, np.ndarray]]:
    """The pieces of an array that this process writes, and which slices of it they are."""
    for shard in x.addressable_shards:
        if shard.replica_id == 0:
            yield bounded(shard.index, x.shape), np.asarray(shard.data)


def written_whole(folder: Path, write: Callable[[Path], None]) -> None:
    """Let all processes write into a folder, which has its name when all are through."""
    draft = folder.with_name(folder.name + ".unfinished")
    if plait.process_index() == 0:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
    multihost_utils.sync_global_devices(f"{draft} is made")
    write(draft)
    multihost_utils.sync_global_devices(f"{draft} is written")
    if plait.process_index() == 0:
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    multihost_utils.sync_global_devices(f"{folder} is there")


def spread(shape: tuple[int, ...], dtype: Any, sharding: Any, read: Callable) -> Any:
    """The array of which each process reads the pieces of its devices."""
    return plait.make_array_from_callback(shape, sharding, read, dtype=dtype)


# ---- tensorstore: one zarr array for each array --------------------------------------------------


def save_tensorstore(folder: Path, tree: Tree) -> None:
    """Write arrays as zarr, in chunks that are their pieces."""
    import tensorstore as ts

    def write(draft: Path) -> None:
        specs = {
            name: {
                "driver": "zarr3",
                "kvstore": {"driver": "file", "path": str(draft / name)},
                "metadata": {
                    "shape": list(x.shape),
                    "data_type": x.dtype.name,
                    "chunk_grid": {
                        "name": "regular",
                        "configuration": {"chunk_shape": list(x.sharding.shard_shape(x.shape))},
                    },
                },
            }
            for name, x in tree.items()
        }
        if plait.process_index() == 0:
            for spec in specs.values():
                ts.open(spec, create=True).result()
        multihost_utils.sync_global_devices("arrays are made")
        writes = []
        for name, x in tree.items():
            store = ts.open(specs[name]).result()
            writes += [store[index].write(piece) for index, piece in first_copies(x)]
        for each in writes:
            each.result()

    written_whole(folder, write)


def restore_tensorstore(folder: Path, shardings: Tree) -> Tree:
    """Read arrays, laid out as these shardings say."""
    import tensorstore as ts

    out = {}
    for name, sharding in shardings.items():
        kvstore = {"driver": "file", "path": str(folder / name)}
        store = ts.open({"driver": "zarr3", "kvstore": kvstore}).result()
        read = lambda index, store=store: np.asarray(store[index].read().result())
        out[name] = spread(tuple(store.shape), store.dtype.numpy_dtype, sharding, read)
    return out


# ---- safetensors: one file of each process -------------------------------------------------------


def save_safetensors(folder: Path, tree: Tree) -> None:
    """Write the pieces of each process into a file, and beside it which slices they are."""
    from safetensors.numpy import save_file

    def write(draft: Path) -> None:
        pieces, where = {}, {}
        for name, x in tree.items():
            for k, (index, piece) in enumerate(first_copies(x)):
                key = f"{name}.{k}"
                pieces[key] = np.array(piece, order="C")
                where[key] = [name, x.shape, [(s.start, s.stop) for s in index]]
        path = draft / f"{plait.process_index():05}.safetensors"
        save_file(pieces, path)
        path.with_suffix(".json").write_text(json.dumps(where))

    written_whole(folder, write)


def restore_safetensors(folder: Path, shardings: Tree) -> Tree:
    """Read arrays, laid out as these shardings say."""
    from safetensors import safe_open

    parts: dict[str, list] = {name: [] for name in shardings}
    shapes, dtypes = {}, {}
    for beside in sorted(folder.glob("*.json")):
        file = safe_open(beside.with_suffix(".safetensors"), "numpy")
        for key, (name, shape, box) in json.loads(beside.read_text()).items():
            parts[name].append((box, file, key))
            shapes[name] = tuple(shape)
            if name not in dtypes:
                dtypes[name] = file.get_tensor(key).dtype

    def read(name: str, index: Index) -> np.ndarray:
        index = bounded(index, shapes[name])
        out = np.empty([s.stop - s.start for s in index], dtypes[name])
        for box, file, key in parts[name]:
            low = [max(s.start, b) for s, (b, _) in zip(index, box)]
            high = [min(s.stop, e) for s, (_, e) in zip(index, box)]
            if all(a < b for a, b in zip(low, high)):
                there = tuple([slice(a - b, c - b) for a, c, (b, _) in zip(low, high, box)])
                here = tuple([slice(a - s.start, c - s.start) for a, c, s in zip(low, high, index)])
                piece = file.get_slice(key)[there] if there else file.get_tensor(key)
                out[here] = piece
        return out

    return {
        name: spread(shapes[name], dtypes[name], s, lambda index, name=name: read(name, index))
        for name, s in shardings.items()
    }


FORMATS = {
    "tensorstore": (save_tensorstore, restore_tensorstore),
    "safetensors": (save_safetensors, restore_safetensors),
}


# ---- a program that goes on from a checkpoint ----------------------------------------------------


def begun(shardings: Tree) -> Tree:
    """Parameters, the same in each process."""
    rng = np.random.default_rng(0)
    host = {
        "rows": rng.normal(size=(8, 4)).astype(np.float32),
        "columns": rng.normal(size=(3, 16)),
        "copies": np.arange(5, dtype=np.int32),
        "steps": np.zeros((), np.int32),
    }
    return {name: plait.device_put(x, shardings[name]) for name, x in host.items()}


@plait.jit
def step(tree: Tree) -> Tree:
    """What stands here for a step of training."""
    return {name: x + 1 if name == "steps" else x * 2 + 1 for name, x in tree.items()}


def main(form: str, source: str, target: str) -> None:
    """Go on from a checkpoint ("-": begin), take a step, and write another."""
    if "PLAIT_COORDINATOR_ADDRESS" in os.environ:
        plait.distributed.initialize()
    mesh = plait.make_mesh((plait.device_count(),), ("all",))
    specs = {"rows": P("all"), "columns": P(None, "all"), "copies": P(), "steps": P()}
    shardings = {name: plait.NamedSharding(mesh, spec) for name, spec in specs.items()}
    save, restore = FORMATS[form]
    state = begun(shardings) if source == "-" else restore(Path(source), shardings)
    state = step(state)
    save(Path(target), state)
    if plait.process_index() == 0:
        print(f"step {int(state['steps'])} by {plait.process_count()} processes: {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
