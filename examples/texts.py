"""A text classifier: is a line of Python's standard library code, or words about it?

    python examples/texts.py

Lines have different lengths.  They are packed into batches of one capacity, so that training is one
compiled program, and the model is written for one line, without padding or masks.

Invariant: the accuracy that is printed is that of lines that training has not seen.
"""

import argparse
import ast
import collections
import datetime
import doctest
import inspect
import json.decoder
import random
import statistics
import subprocess
import textwrap
import typing

import numpy as np

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis, vmap

MODULES = (
    argparse, ast, collections, datetime, doctest, inspect, json.decoder, random, statistics,
    subprocess, textwrap, typing,
)  # fmt: skip
SIZES = plait.Capacities(rows=2048, longest=80, count=64)
COMPILED: list[str] = []


def words_and_code() -> list[tuple[str, int]]:
    """Return as many lines of docstrings, labelled 1, as other lines, labelled 0."""
    found = []
    for module in MODULES:
        lines = inspect.getsource(module).splitlines()
        words = set()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
                first = node.body[0]
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    words.update(range(first.lineno - 1, first.end_lineno or 0))
        each = [(line.strip(), int(i in words)) for i, line in enumerate(lines)]
        found += [(text[:80], label) for text, label in each if len(text) > 3]
    r = np.random.default_rng(0)
    kinds = [[x for x in found if x[1] == k] for k in (0, 1)]
    each = [[kind[i] for i in r.permutation(len(kind))[: min(map(len, kinds))]] for kind in kinds]
    both = each[0] + each[1]
    return [both[i] for i in r.permutation(len(both))]


def batches(lines: list[tuple[str, int]]):
    """Yield batches of one type: characters of each line, and its label."""
    at = 0
    for texts in Pile.pack((np.frombuffer(t.encode()[:80], np.uint8) for t, _ in lines), SIZES):
        have = int((texts.lengths > 0).sum())
        labels = [label for _, label in lines[at : at + have]]
        yield texts, np.pad(np.asarray(labels, "float32"), (0, 64 - have), constant_values=-1)
        at += have


def weights(key):
    """Return the weights of the model."""
    a, b, c = plait.random.split(key, 3)
    return {
        "characters": plait.random.normal(a, (256, 16)) * 0.3,
        "pairs": plait.random.normal(b, (32, 32)) * 0.2,
        "out": plait.random.normal(c, (32,)) * 0.2,
    }


def score(w, text):
    """Return how much a line looks like words: a mean over its pairs of characters."""
    x = w["characters"][text.astype("int32")]
    pairs = pnp.concatenate([x, pnp.roll(x, 1, axis=0)], axis=1)
    return pnp.tanh(pairs @ w["pairs"]).mean(axis=0) @ w["out"] * 4


scores = vmap(score, in_axes=(None, pile_axis))


def loss(w, texts, labels):
    """Return the mean error; label -1 marks places without a line."""
    there = labels >= 0
    each = plait.nn.softplus(pnp.where(labels == 1, -1.0, 1.0) * scores(w, texts))
    return pnp.where(there, each, 0).sum() / there.sum()


@plait.jit
def step(w, speed, texts, labels):
    """Return weights and their speeds after one step with momentum."""
    COMPILED.append("a program")  # Python runs when a program is made, not for each batch
    g = plait.grad(loss)(w, texts, labels)
    speed = plait.tree.map(lambda v, d: 0.9 * v - 0.5 * d, speed, g)
    return plait.tree.map(pnp.add, w, speed), speed


def main() -> None:
    """Train, and print the accuracy and the number of programs."""
    lines = words_and_code()
    test, train = lines[:1000], lines[1000:]
    w = weights(plait.random.key(0))
    speed = plait.tree.map(pnp.zeros_like, w)
    for _ in range(4):
        for texts, labels in batches(train):
            w, speed = step(w, speed, texts, labels)
    right = total = 0
    for texts, labels in batches(test):
        there = labels >= 0
        right += int(((np.asarray(scores(w, texts)) > 0) == (labels == 1))[there].sum())
        total += int(there.sum())
    print(f"lines: {len(train)} to learn from, {total} to judge")
    print(f"accuracy: {right / total:.3f}")
    print(f"programs for training: {len(COMPILED)}")


if __name__ == "__main__":
    main()
