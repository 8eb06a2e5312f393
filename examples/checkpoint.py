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

import itertools
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
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
            # A copy, since a later step may get the memory of the array by donation.
            yield bounded(shard.index, x.shape), np.array(shard.data, order="C")


class Saving:
    """A save that goes on while the program computes.

    Each process writes in a thread.  Threads may not come to points where the processes meet, since
    the program comes to others meanwhile: they use the store of small values.
    """

    def __init__(self, folder: Path, create: Callable[[Path], None], write: Callable[[Path], None]):
        if folder.exists():
            raise FileExistsError(f"there is a checkpoint at {folder} already: give another name")
        self.folder, self._create, self._write = folder, create, write
        self._draft = folder.with_name(folder.name + UNFINISHED)
        self._key = f"checkpoint {next(_saves)}"
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name=f"save {folder}", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the folder is there; raise what kept it from being written."""
        self._thread.join()
        if self._failed:
            raise self._failed[0]

    def _run(self) -> None:
        try:
            first = plait.process_index() == 0
            if first:
                shutil.rmtree(self._draft, ignore_errors=True)
                self._draft.mkdir(parents=True)
                self._create(self._draft)
            self._come("made", [0])
            self._write(self._draft)
            self._come("written", range(plait.process_count()))
            if first:
                self._draft.rename(self.folder)
            self._come("named", [0])
        except BaseException as e:
            self._failed.append(e)

    def _come(self, where: str, awaited: Iterable[int]) -> None:
        """Say that this process has come here, and wait for some others."""
        if plait.process_count() > 1:
            plait.distributed.key_value_set(f"{self._key} {where} {plait.process_index()}", 1)
            for i in awaited:
                plait.distributed.key_value_get(f"{self._key} {where} {i}")


UNFINISHED = ".unfinished"
_saves = itertools.count()  # every process counts alike


def of_step(root: Path, step: int) -> Path:
    """The folder of the checkpoint after some steps."""
    return root / f"{step:08}"


def latest(root: Path) -> Path | None:
    """The last whole checkpoint under a folder, the same for all processes."""
    steps = [int(p.name) for p in root.glob("[0-9]*") if p.name.isdecimal()]
    last = max(steps, default=-1)
    if plait.process_count() > 1:
        last = int(multihost_utils.broadcast_one_to_all(np.int32(last)))
    return None if last < 0 else of_step(root, last)


def nothing(draft: Path) -> None:
    """Make nothing before the pieces are written."""


def spread(shape: tuple[int, ...], dtype: Any, sharding: Any, read: Callable) -> Any:
    """The array of which each process reads the pieces of its devices."""
    return plait.make_array_from_callback(shape, sharding, read, dtype=dtype)


# ---- tensorstore: one zarr array for each array --------------------------------------------------


def save_tensorstore(folder: Path, tree: Tree) -> Saving:
    """Write arrays as zarr, in chunks that are their pieces."""
    import tensorstore as ts

    kinds = {
        name: {
            "shape": list(x.shape),
            "data_type": x.dtype.name,
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": list(x.sharding.shard_shape(x.shape))},
            },
        }
        for name, x in tree.items()
    }
    pieces = {name: list(first_copies(x)) for name, x in tree.items()}

    def opened(draft: Path, name: str, **how: bool) -> Any:
        kvstore = {"driver": "file", "path": str(draft / name)}
        spec = {"driver": "zarr3", "kvstore": kvstore, "metadata": kinds[name]}
        return ts.open(spec, **how).result()

    def create(draft: Path) -> None:
        for name in kinds:
            opened(draft, name, create=True)

    def write(draft: Path) -> None:
        stores = {name: opened(draft, name) for name in kinds}
        writes = [stores[name][i].write(x) for name, each in pieces.items() for i, x in each]
        for each in writes:
            each.result()

    return Saving(folder, create, write)


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


def save_safetensors(folder: Path, tree: Tree) -> Saving:
    """Write the pieces of each process into a file, and beside it which slices they are."""
    from safetensors.numpy import save_file

    pieces, where = {}, {}
    for name, x in tree.items():
        for k, (index, piece) in enumerate(first_copies(x)):
            pieces[f"{name}.{k}"] = piece
            where[f"{name}.{k}"] = [name, x.shape, [(s.start, s.stop) for s in index]]

    def write(draft: Path) -> None:
        path = draft / f"{plait.process_index():05}.safetensors"
        save_file(pieces, path)
        path.with_suffix(".json").write_text(json.dumps(where))

    return Saving(folder, nothing, write)


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
    save(Path(target), state).wait()
    if plait.process_index() == 0:
        print(f"step {int(state['steps'])} by {plait.process_count()} processes: {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
