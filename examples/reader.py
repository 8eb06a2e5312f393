"""A process that only answers: it calls an exported program, and has nothing else of Plait.

    python examples/reader.py PROGRAM IMAGES ANSWERS

PROGRAM is what `Exported.serialize` wrote; IMAGES and ANSWERS are files of numpy arrays.

Invariant: it refuses to run where a transformation is installed, so that what it shows is true.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import plait

ABSENT = {"plait_autodiff": "grad", "plait_batching": "vmap", "plait_sharding": "shard_map"}


def offers(name: str) -> bool:
    """Whether plait has this name here."""
    try:
        getattr(plait, name)
    except plait.errors.MissingPlugin:
        return False
    return True


def main() -> int:
    """Answer; the exit status."""
    program, images, answers = map(Path, sys.argv[1:])
    for module, name in ABSENT.items():
        if find_spec(module) is not None or offers(name):
            print(f"{module} is installed here", file=sys.stderr)
            return 1
    print(f"in a process without {', '.join(ABSENT)}:")
    exported = plait.export.deserialize(program.read_bytes())
    found = np.asarray(exported.call(np.load(images)))
    np.save(answers, found)
    print(
        f"{len(found)} answers by {exported.fun_name}, for one image: "
        f"{np.asarray(exported.call(np.load(images)[:1]))}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
