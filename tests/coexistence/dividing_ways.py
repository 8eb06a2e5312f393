"""The ways of `examples/parallel_ways.py`, and what each sends when it is compiled.

`python dividing_ways.py` prints it for jax, `python dividing_ways.py plait` for Plait, as JSON: of
each way how often a step runs which collective, how many bytes it returns to a device, counting
the turns of loops, and the gradient.

Invariant: the example is read once, and its text runs by either library; JAX alone has to be told
that what a loop begins with varies.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

EXAMPLE = Path(__file__).parents[2] / "examples" / "parallel_ways.py"
BYTES = {"pred": 1, "s32": 4, "u32": 4, "f32": 4}
OPERATIONS = ["all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter"]
FIRST = "pnp.zeros_like(parts[0])"


def example(library: str) -> dict:
    """The names of the example, whose `plait` is one library or the other."""
    text = EXAMPLE.read_text(encoding="utf-8")
    if library == "jax":
        import jax
        import jax.numpy

        jax.config.update("jax_num_cpu_devices", 4)
        sys.modules |= {"plait": jax, "plait.numpy": jax.numpy}
        assert text.count(FIRST) == 1
        text = text.replace(FIRST, f"lax.pcast({FIRST}, 'd', to='varying')")
    names = {"__name__": "ways"}
    exec(compile(text, str(EXAMPLE), "exec"), names)
    return names


def computations(text: str) -> tuple[str, dict[str, list[str]]]:
    """The name of the first computation of a compiled module, and the lines of each."""
    found, entry, name = {}, "", ""
    for line in text.splitlines():
        if begun := re.match(r"(ENTRY )?%(\S+) .*\{$", line):
            name = begun[2]
            entry = name if begun[1] else entry
            found[name] = []
        elif name:
            found[name].append(line)
    return entry, found


def sent(text: str) -> dict[str, list[int]]:
    """Operation -> (how often a run does it to an array, the bytes of these arrays)."""
    entry, lines = computations(text)
    times, size = Counter(), Counter()

    def visit(name: str, turns: int) -> None:
        for line in lines[name]:
            if loop := re.search(r" while\(.*body=%([^\s,]+)", line):
                visit(loop[1], turns * int(re.search(r'known_trip_count":\{"n":"(\d+)"', line)[1]))
            elif op := re.search(rf" = (.*?) ({'|'.join(OPERATIONS)})(-start)?\(", line):
                for kind, shape in re.findall(r"([a-z]\w*)\[([\d,]*)\]", op[1]):
                    elements = np.prod([int(n) for n in shape.split(",") if n], dtype=int)
                    times[op[2]] += turns
                    size[op[2]] += turns * BYTES[kind] * int(elements)
            elif called := re.search(r" call\(.*to_apply=%([^\s,]+)", line):
                visit(called[1], turns)
            else:
                assert " conditional(" not in line, line  # which branch runs is not known

    visit(entry, 1)
    return {op: [times[op], size[op]] for op in sorted(times)}


def main(library: str = "jax") -> None:
    names = example(library)
    plait, P, weights_x_y = names["plait"], names["P"], names["start"]()
    mesh = plait.sharding.Mesh(np.array(plait.devices()[: names["DEVICES"]]), ("d",))
    told = {}
    for name, (way, of_weights, of_examples) in names["WAYS"].items():
        step = plait.shard_map(
            plait.value_and_grad(way),
            mesh=mesh,
            in_specs=(of_weights, of_examples, of_examples),
            out_specs=(P(), of_weights),
        )
        compiled = plait.jit(step).lower(*weights_x_y).compile()
        _, gradient = compiled(*weights_x_y)
        each = {k: np.asarray(v).ravel()[::97].tolist() for k, v in gradient.items()}
        told[name] = {"sent": sent(compiled.as_text()), "gradient": each}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
