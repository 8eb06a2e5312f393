"""Start the processes of one computation in the actors of a Ray cluster.

    python -m plait_sharding.ray -n 4 script.py arguments
    python -m plait_sharding.ray -n 2 --resources GPU=8 script.py arguments

The script calls `plait.distributed.initialize()` without arguments.  Each machine has it at the
same path, or gets it with the working directory of the job (`ray job submit --working-dir .`).

Invariant: this is the command line of `plait.distributed.on_ray`, and nothing else.
"""

import argparse
import sys

from .distributed import on_ray

__all__ = ["main", "on_ray"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m plait_sharding.ray",
        description="Start the processes of one computation in the actors of a Ray cluster.",
    )
    parser.add_argument("-n", "--workers", type=int, required=True, help="how many actors")
    parser.add_argument("--min-workers", type=int, default=1, help="how many suffice after a loss")
    parser.add_argument("--resources", help="what each reserves: CPU=4,GPU=8; one CPU by default")
    parser.add_argument("--max-failures", type=int, default=3, help="how often to begin again")
    parser.add_argument("script", help="a script, which each machine has")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    told = parser.parse_args(arguments)
    try:
        pairs = [pair.split("=") for pair in (told.resources or "CPU=1").split(",")]
        resources = {name: float(amount) for name, amount in pairs}
    except ValueError:
        parser.error(f"--resources {told.resources}: write for instance CPU=4,GPU=8")
    on_ray(
        told.script,
        *told.arguments,
        workers=told.workers,
        resources=resources,
        min_workers=told.min_workers,
        max_failures=told.max_failures,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
