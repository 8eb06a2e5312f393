"""Kernels of LAPACK that divide stacks of matrices among threads, many of them in one program.

They wait on the threads of one pool.  Releases of the runtime with jaxlib 0.10 let them wait for
each other forever, in most runs of these programs.
"""

import subprocess
import sys

import pytest

START = """
import faulthandler
faulthandler.dump_traceback_later(100, exit=True)
import numpy as np, plait, plait.numpy as pnp
from plait.sharding import PartitionSpec as P

x = np.random.default_rng(0).normal(size=(16, 64, 48, 48)).astype("float32")
"""

PROGRAMS = {
    "solves": """
f = plait.jit(lambda x: [pnp.linalg.solve(m, m) for m in x])
""",
    "in called functions": """
solve = plait.jit(lambda a, b: pnp.sin(pnp.linalg.solve(a, b)))
f = plait.jit(lambda x: [solve(m, m) + 1 for m in x])
""",
    "of complex numbers": """
f = plait.jit(lambda x: [pnp.linalg.solve(m + 1j, m - 1j) for m in x[:8]])
""",
    "in a loop": """
step = lambda c, _: ([pnp.sin(pnp.linalg.solve(a + m, m)) for a, m in zip(c, x)], None)
f = plait.jit(lambda x: plait.lax.scan(step, list(x[:8]), None, length=2)[0])
""",
    "on devices": """
plait.config.cpu_devices = 4
mesh = plait.make_mesh((4,), ("i",))
of_each = lambda x: [pnp.linalg.solve(m, m) for m in x[:4]]
f = plait.jit(plait.shard_map(of_each, mesh=mesh, in_specs=P(None, "i"), out_specs=P("i")))
x = np.concatenate([x] * 4, axis=1)
""",
}

END = """
for _ in range(10):
    plait.block_until_ready(f(x))
print("came to an end")
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_end(name):
    """All kernels of a program come to an end, ten times in a row."""
    code = START + PROGRAMS[name] + END
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "came to an end", done.stderr[-3000:]
