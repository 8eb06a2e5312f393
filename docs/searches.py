"""Words that people search for, each with the pages that answer; the build checks its own index.

    python docs/searches.py SITE/search/search_index.json    # the queries that miss

Invariant: a query is answered if one of its pages is among the first of the pages that hold all of
its words, ranked by how often, and how rare a word is.
"""

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

FIRST = 8
"""The number of results that a reader looks at."""
QUERIES = {
    "install": "install",
    "pip": "install",
    "pytorch": "how-to/from-pytorch",
    "torch": "how-to/from-pytorch",
    "unsqueeze": "how-to/from-pytorch",
    "state_dict": "how-to/from-pytorch",
    "nn.Module": "how-to/from-pytorch",
    "DataLoader": "how-to/from-pytorch",
    "backward": "how-to/from-pytorch",
    "no_grad": "how-to/from-pytorch",
    "cross entropy": "how-to/from-pytorch tutorials/classifier",
    "linear layer": "how-to/from-pytorch tutorials/classifier tutorials/transformer",
    "optimiser": "tutorials/transformer tutorials/classifier install how-to/from-pytorch",
    "optax": "tutorials/transformer install how-to/from-pytorch libraries",
    "plait.optim": "install how-to/from-pytorch tutorials/transformer",
    "adam": "tutorials/transformer tutorials/classifier",
    "sgd": "tutorials/classifier how-to/from-pytorch",
    "momentum": "tutorials/classifier",
    "dropout": "tutorials/classifier how-to/from-pytorch",
    "minibatch": "tutorials/classifier",
    "confusion matrix": "tutorials/classifier",
    "transformer": "tutorials/transformer",
    "attention": "tutorials/transformer",
    "language model text": "tutorials/transformer",
    "sampling": "tutorials/transformer",
    "embedding": "how-to/from-pytorch",
    "plot": "tutorials/first-steps",
    "notebook": "install",
    "matplotlib": "tutorials/first-steps install",
    "loss curve": "tutorials/transformer tutorials/classifier",
    "tutorial": "index install",
    "ode": "tutorials/physicist how-to/scipy",
    "adjoint": "tutorials/physicist",
    "pinn": "tutorials/physicist",
    "physics informed": "tutorials/physicist",
    "laplacian": "tutorials/physicist transformations",
    "hmc": "tutorials/physicist",
    "profile": "how-to/profile debugging",
    "perfetto": "how-to/profile",
    "slow": "how-to/profile debugging accelerators",
    "transfer_guard": "debugging",
    "monte carlo": "tutorials/physicist",
    "posterior": "tutorials/physicist",
    "hessian": "tutorials/physicist transformations",
    "solve_ivp": "how-to/scipy tutorials/physicist",
    "scipy.optimize": "how-to/scipy",
    "curve_fit": "how-to/scipy",
    "scikit-learn": "how-to/scipy install",
    "pandas": "how-to/scipy",
    "checkpoint": "how-to/checkpoints",
    "save weights": "how-to/checkpoints how-to/ship-a-model export",
    "safetensors": "how-to/checkpoints",
    "resume training": "how-to/checkpoints tutorials/transformer",
    "pickle": "how-to/checkpoints",
    "nan": "how-to/nan debugging",
    "gradient is nan": "how-to/nan edges",
    "mixed precision": "how-to/mixed-precision",
    "bfloat16": "how-to/mixed-precision dtypes",
    "float64": "dtypes how-to/from-numpy",
    "differential privacy": "how-to/per-example-gradients tutorials/classifier",
    "clip gradient": "how-to/per-example-gradients",
    "onnx": "how-to/ship-a-model",
    "core ml": "how-to/ship-a-model",
    "tensorflow": "how-to/ship-a-model export",
    "deploy model file": "how-to/ship-a-model",
    "random seed": "how-to/from-pytorch randomness how-to/from-numpy differences",
    "np.random": "explanation/tracing how-to/from-numpy",
    "print inside jit": "explanation/tracing debugging",
    "global variable": "explanation/tracing",
    "side effects": "explanation/tracing effects",
    "append": "explanation/tracing",
    "out of memory residual": "explanation/memory",
    "donate": "explanation/memory transformations differences",
    "weak type": "explanation/reading-programs dtypes",
    "tracer": "explanation/tracing explanation/reading-programs explanation/context",
    "gpu": "accelerators",
    "cuda": "accelerators install",
    "data parallel": "tutorials/data-parallel",
    "sharding": "tutorials/data-parallel meshes explicit-shardings",
    "ragged": "piles",
    "padding": "piles",
    "jax": "differences libraries",
    "flax": "libraries how-to/checkpoints",
    "for loop": "control-flow explanation/tracing how-to/from-numpy",
    "if else": "control-flow explanation/tracing how-to/from-numpy",
    "custom gradient": "transformations",
    "plugin": "plugins",
}


def words(text: str) -> list[str]:
    """Return the words of a text, without markup, in lower case and without a plural's s."""
    text = re.sub(r"<[^>]*>", " ", text)
    return [re.sub(r"(?<=\w{3})s$", "", w) for w in re.findall(r"[a-z_0-9]+", text.lower())]


def ranked(query: str, counts: dict[str, Counter[str]]) -> list[str]:
    """Return the pages with all words of a query, best first (the weights of BM25)."""
    wanted = words(query)
    size = sum(c.total() for c in counts.values()) / len(counts)
    scores = {}
    for page, count in counts.items():
        if all(count[w] for w in wanted):
            score = 0.0
            for w in wanted:
                rarity = math.log(1 + len(counts) / sum(1 for c in counts.values() if c[w]))
                often = count[w]
                score += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * count.total() / size))
            scores[page] = score
    return sorted(scores, key=lambda p: -scores[p])


def missed(pages: dict[str, str]) -> list[str]:
    """Return the queries that find none of their pages, each with what is found instead."""
    counts = {name: Counter(words(text)) for name, text in pages.items()}
    missed = []
    for query, answers in QUERIES.items():
        found = ranked(query, counts)[:FIRST]
        if not {*answers.split()} & {*found}:
            missed.append(f"{query!r} finds {found}, and none of: {answers}")
    return missed


def of_index(path: Path) -> dict[str, str]:
    """Return the text of each page from the index of a built site; titles count three times."""
    pages: dict[str, str] = {}
    for entry in json.loads(path.read_text(encoding="utf-8"))["docs"]:
        name = entry["location"].partition("#")[0].strip("/") or "index"
        pages[name] = f"{pages.get(name, '')} {entry['text']} {3 * (entry['title'] + ' ')}"
    return pages


def on_post_build(config: Any) -> None:
    """End the build if its search misses a query."""
    found = missed(of_index(Path(config["site_dir"]) / "search" / "search_index.json"))
    if found:
        raise RuntimeError("queries that the search does not answer:\n" + "\n".join(found))


if __name__ == "__main__":
    print("\n".join(missed(of_index(Path(sys.argv[1])))))
