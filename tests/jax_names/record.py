"""Write calls of JAX's public functions with the answers of the jax that is installed.

    python -m tests.jax_names.record                       # answers.json.xz, which the suite reads
    python -m tests.jax_names.record --each 40 --first 1000 --to wide.json.xz
    PLAIT_JAX_ANSWERS=wide.json.xz python -m pytest tests/jax_names/test_answers.py

Invariant: this script needs jax, and runs in an environment without Plait.
"""

import argparse
import importlib
import inspect
import json
import lzma
import sys
from pathlib import Path

from . import calls, parameters

MODULES = """
jax.numpy jax.numpy.linalg jax.numpy.fft jax.lax jax.lax.linalg jax.nn jax.nn.initializers
jax.scipy.special jax.scipy.linalg jax.scipy.signal jax.scipy.ndimage jax.scipy.fft
jax.scipy.integrate jax.scipy.stats jax.ops jax.random jax.image
"""
DISTRIBUTIONS = """
norm beta gamma t poisson binom expon laplace logistic uniform truncnorm vonmises cauchy
chi2 geom bernoulli nbinom betabinom dirichlet gennorm pareto gumbel_l gumbel_r wrapcauchy
multivariate_normal multinomial
"""
# Functions of the process, of files, of printed text, and of axes that are named.
LEFT_OUT = """
save savez load fromfile fromstring get_printoptions set_printoptions printoptions
array_repr array_str array2string from_dlpack frombuffer einsum_path empty empty_like
with_sharding_constraint create_token after_all infeed outfeed psend precv psum pmean pmax
pmin axis_index axis_size rng_uniform show_config key_impl clone apply_along_axis
apply_over_axes fromiter random_gamma_p
"""


def functions():
    """Yield the path and the parameters of each public function, once."""
    seen: set[int] = set()
    left_out = LEFT_OUT.split()
    stats = [f"jax.scipy.stats.{name}" for name in DISTRIBUTIONS.split()]
    for module in [*MODULES.split(), *stats]:
        owner = importlib.import_module(module)
        for name in sorted(dir(owner)):
            f = getattr(owner, name)
            if name[0] == "_" or name in left_out or not callable(f) or isinstance(f, type):
                continue
            if (module == "jax.lax" and name.endswith("_p")) or id(f) in seen:
                continue
            seen.add(id(f))
            try:
                yield f"{module}.{name}", list(inspect.signature(f).parameters.values())
            except (TypeError, ValueError):
                continue


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--to", default=str(Path(__file__).with_name("answers.json.xz")))
    options = parser.parse_args()
    import jax

    jax.config.update("jax_disable_most_optimizations", True)  # it compiles in half the time
    written, skipped = [], []
    for path, given in functions():
        if options.only and not path.startswith(options.only):
            continue
        kept, number, errors = 0, options.first, 0
        while kept < options.each and number < options.first + 3 * options.each:
            made = parameters.call(path, given, number)
            number += 1
            if made is None:
                skipped.append(path)
                break
            made["args"] = [calls.pack(x) for x in made["args"]]
            made["named"] = {name: calls.pack(x) for name, x in made["named"].items()}
            got = calls.answer(made, jax)
            if "raises" in got:
                errors += 1
                if errors > options.each / 3:
                    continue
            if len(json.dumps(got)) > 4000:
                continue
            written.append(made | {"answer": got})
            kept += 1
        if len(written) % 40 < options.each:
            jax.clear_caches()
            print(path, len(written), file=sys.stderr, flush=True)
    text = json.dumps(written, separators=(",", ":"))
    Path(options.to).write_bytes(lzma.compress(text.encode(), preset=9))
    print(
        len(written), "calls;", len({c["path"] for c in written}), "functions; skipped:", *skipped
    )


if __name__ == "__main__":
    main()
