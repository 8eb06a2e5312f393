"""Seeds for scripts of random programs: where they begin and when they end.

Invariant: a seed that is printed gives the same program again with `--seed S --count 1`.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator


def options(about: str, minutes: float = 10.0) -> argparse.ArgumentParser:
    """Return a parser of `--minutes`, `--seed` and `--count`, for a script to add its own to."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--seed", type=int, default=None, help="where to begin")
    parser.add_argument("--count", type=int, default=None, help="how many, at most")
    return parser


def begin(module: str, about: str, needed: dict[str, str]) -> tuple[argparse.Namespace, int | None]:
    """Return the options of a script that compares compiled programs, and what `again` does.

    It runs for a tier of the compiler, which both sides have.
    """
    parser = options(about)
    parser.add_argument("--tier", default="full", help="of the compiler, for both sides")
    given = parser.parse_args()
    return given, again(module, needed | {"PLAIT_TIER": given.tier})


def again(module: str, needed: dict[str, str]) -> int | None:
    """Run the script in a process with these variables; return its status, None if this one has
    them."""
    if all(v in os.environ.get(k, "") for k, v in needed.items()):
        return None
    command = [sys.executable, "-m", module, *sys.argv[1:]]
    return subprocess.run(command, env={**os.environ, **needed}, check=False).returncode


def seeds(given: argparse.Namespace, each: int = 1) -> Iterator[int]:
    """Yield seeds until the minutes are over, or `count` is reached; a seed counts for `each`."""
    first = random.SystemRandom().randrange(10**6, 2**31) if given.seed is None else given.seed
    print(f"from seed {first}", flush=True)
    end, done = time.monotonic() + 60 * given.minutes, 0
    while time.monotonic() < end and (given.count is None or done * each < given.count):
        yield first + done
        done += 1
