"""Artifacts with changed bytes, read in a process of their own: an error in words, or a function.

Every second one has the checksums of what it was changed to, so that its module reaches the reader
of StableHLO; others are changed anywhere, or have another manifest.  As a test it reads few; run
as a script it goes on for `--minutes`, from a seed that it prints: `--seed S --count 1` for one
again.  What was read is called, where `--call` says so, in a process that may be lost.

Invariant: a file follows from its seed alone; no answer is anything but an artifact or an
ArtifactError with a way out.  The script fails where one takes longer than the limits and the start
of a process.
"""

import argparse
import io
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from functools import cache

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait_export import ArtifactError, Limits, container, deserialize, export, symbolic_args_specs

X = np.arange(12, dtype=np.float32).reshape(4, 3)
SQUARE = X.T @ X + np.eye(3, dtype=np.float32)
SECONDS = 5.0
BESIDES = 200 << 20
"""Bytes of memory that reading may take, besides ten times those of the file."""
ENDINGS = ("ended the process", "not read within", "takes more memory")
STARTING = 5.0
"""Seconds in which a process starts, on a machine that is not idle."""


def chosen(x):
    return lax.platform_dependent(x, cpu=lambda v: v + 1, default=lambda v: v - 1)


def many_sizes(x):
    return pnp.concatenate([x, x * 2]).sum(0) / x.shape[0]


def sorted_and_doubled(x):
    until = lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, x))
    return pnp.sort(x, 0), until


@cache
def originals():
    """Some artifacts, each with arguments."""
    weights = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    sized = symbolic_args_specs(X, "b, 3", ["b >= 2", "mod(b, 2) == 0"])
    stack = symbolic_args_specs(np.stack([SQUARE] * 2), "b, 3, 3")
    several = {"platforms": ("cpu", "cuda", "tpu")}
    made = [
        (export(lambda x: pnp.tanh(x @ weights) @ weights.T)(X).serialize(), X),
        (export(many_sizes)(sized).serialize(), X),
        (export(chosen, **several)(X).serialize(), X),
        (export(lambda x: (pnp.linalg.cholesky(x), pnp.linalg.solve(x, x)))(SQUARE).serialize(),
         SQUARE),
        (export(pnp.linalg.svd)(stack).serialize(), np.stack([SQUARE] * 2)),
        (export(lambda x: lax.scan(lambda c, r: (pnp.sin(c + r), c), pnp.zeros(3), x))(X)
         .serialize(), X),
        (export(lambda d: {"a": (d["x"], [d["x"].astype(np.float16)])})({"x": X}).serialize(),
         {"x": X}),
        (export(sorted_and_doubled)(X).serialize(), X),
    ]  # fmt: skip
    return made


# ---- changes -------------------------------------------------------------------------------


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits turned, bytes put in, taken out, copied, cut off; lengths that lie."""
    b, kind = bytearray(data), rng.random()
    at = rng.randrange(len(b))
    if kind < 0.55:
        for _ in range(rng.choice([1, 1, 1, 2, 4, 8])):
            b[rng.randrange(len(b))] ^= 1 << rng.randrange(8)
    elif kind < 0.62:
        del b[at:]
    elif kind < 0.72:
        for _ in range(rng.choice([1, 2, 4])):
            b[rng.randrange(len(b))] = rng.choice([0, 255, 127, 128, rng.randrange(256)])
    elif kind < 0.8:
        b[at:at] = rng.randbytes(rng.randrange(1, 9))
    elif kind < 0.87:
        del b[at : at + rng.randrange(1, 17)]
    elif kind < 0.94:
        start = rng.randrange(len(b))
        b[at : at + rng.randrange(1, 40)] = b[start : start + rng.randrange(1, 40)]
    else:
        b[at : at + 4] = rng.choice([2**32 - 1, 2**31, len(b) * 2, 0]).to_bytes(4, "little")
    return bytes(b)


VALUES = ["", None, 0, -1, 2**63, [], {}, "*", "f32[b]", "f32[99999999999999]", "b*" * 300 + "b",
          "x" * 10_000, {"node": "os.system"}, "cpu", "mod(b, 0) == 0", [[[[]]]],
          "min(b,b,b,b,b,b)*max(b,b,b,b,b) >= 1"]  # fmt: skip


def changed_value(x, rng: random.Random):
    """What JSON holds, with one value replaced, doubled or left out."""
    paths, todo = [], [((), x)]
    while todo:
        path, at = todo.pop()
        inside = at.items() if isinstance(at, dict) else enumerate(at)
        for key, value in [*inside]:
            paths.append((*path, key))
            if isinstance(value, dict | list):
                todo.append(((*path, key), value))
    x = json.loads(json.dumps(x))
    *path, last = rng.choice(paths)
    at = x
    for key in path:
        at = at[key]
    if rng.random() < 0.15:
        del at[last]
    elif isinstance(at, list) and rng.random() < 0.2:
        at.insert(last, at[last])
    else:
        at[last] = rng.choice(VALUES)
    return x


def mutant(seed: int) -> tuple[bytes, object]:
    """(an artifact that was changed, arguments of what it was)."""
    rng = random.Random(seed)
    data, x = originals()[seed // 4 % len(originals())]
    kind = seed % 4
    if kind == 0:
        return changed_bytes(data, rng), x
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop(container.MANIFEST))
    if kind == 2:
        manifest = changed_value(manifest, rng)
        manifest.pop("members", None)
        return container.pack(manifest, members), x
    manifest.pop("members")
    (name, code), *_ = members.items()
    start = code.index(b"\0", 4) + 1  # the version is looked at by ourselves
    changed = code
    while changed == code:
        changed = code[:start] + changed_bytes(code[start:], rng)
    return container.pack(manifest, {**members, name: changed}), x


def outcome(data: bytes) -> tuple[str, object]:
    """What is said of a file, and what was read of it, whose module is read here, too."""
    try:
        limits = Limits(seconds=SECONDS, memory=10 * len(data) + BESIDES)
        read, said = deserialize(data, isolated=limits), "read"
        assert read.mlir_module_serialized
    except ArtifactError as e:
        assert e.fix and e.what
        read, said = None, next((s for s in ENDINGS if s in e.what), "refused")
    return said, read


# ---- as a test -----------------------------------------------------------------------------


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(24))
def test_a_changed_file_is_an_error_or_a_function(seed):
    said, read = outcome(mutant(seed)[0])
    assert (read is None) == (said != "read")


def test_what_was_not_changed_is_read():
    for data, x in originals()[::3]:
        said, read = outcome(data)
        got, want = (plait.tree.leaves(e.call(x)) for e in (read, deserialize(data)))
        assert said == "read" and read.serialize() == data
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


# ---- as a script ---------------------------------------------------------------------------


def called(seed: int) -> str:
    """How a process ends that calls what was read: it may be lost, or never come to an end."""
    command = [sys.executable, __file__, "--call-one", str(seed)]
    try:
        code = subprocess.run(command, timeout=60, capture_output=True).returncode
    except subprocess.TimeoutExpired:
        return "called: does not end"
    return {0: "called", 3: "called: refused"}.get(code, f"called: ended by {code}")


def call_one(seed: int) -> None:
    data, x = mutant(seed)
    try:
        read = deserialize(data, isolated=True)
        plait.tree.map(np.asarray, read.call(x))
    except plait.errors.PlaitError:
        os._exit(3)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    parser.add_argument("--count", type=int)
    parser.add_argument("--call", action="store_true")
    parser.add_argument("--call-one", type=int)
    asked = parser.parse_args()
    if asked.call_one is not None:
        return call_one(asked.call_one)
    print(f"changed artifacts, from --seed {asked.seed}", flush=True)
    counts: dict[str, int] = {}
    end, seed, slowest = time.monotonic() + 60 * asked.minutes, asked.seed, 0.0
    while seed - asked.seed < (asked.count or 10**9) and (asked.count or time.monotonic() < end):
        start = time.monotonic()
        try:
            said, _ = outcome(mutant(seed)[0])
            took = time.monotonic() - start
            assert took < SECONDS + STARTING, f"it took {took:.1f} s"
        except BaseException:
            print(f"--seed {seed} --count 1", flush=True)
            raise
        slowest = max(slowest, took)
        if said == "read" and asked.call:
            said = called(seed)
        if said in ENDINGS or said.startswith("called: "):
            print(f"  {seed}: {said}", flush=True)
        counts[said] = counts.get(said, 0) + 1
        seed += 1
    print(f"{seed - asked.seed} files, {counts}, the slowest {slowest:.1f} s")


if __name__ == "__main__":
    main()
