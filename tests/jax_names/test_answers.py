"""Public functions under JAX's names, called with random arguments, against what jax answered.

`python -m tests.jax_names.record`, in an environment with jax, wrote the calls and the answers.
PLAIT_JAX_ANSWERS names another file, with other calls or more of them.

Invariant: values, dtypes, shapes, weak types and whether an error is raised are those of jax, but
for what `intended` lists with its reason.
"""

import os
from collections import defaultdict
from pathlib import Path

import pytest

from . import calls, intended, judge

FILE = os.environ.get("PLAIT_JAX_ANSWERS", Path(__file__).with_name("answers.json.xz"))
CALLS = defaultdict(list)
for number, made in enumerate(calls.load(str(FILE))):
    CALLS[made["path"]].append((number, made))


@pytest.mark.filterwarnings("ignore")  # of arguments that have no meaning, in scipy too
@pytest.mark.sampled(64)
@pytest.mark.parametrize("path", sorted(CALLS))
def test_answers(jax, path):
    wrong = {}
    for number, call in CALLS[path]:
        ours = calls.answer(call, jax)
        what = calls.difference(ours, call["answer"])
        if what and not intended.reason(call, what, ours, jax):
            wrong[f"{number}: {judge.shown(call)}"] = what
    assert wrong == {}


def test_what_is_compared():
    """The comparison sees each kind of difference."""
    one = {"array": ["float32", [2], False, [1.0, 2.0]]}
    others = {
        "dtype": {"array": ["float64", [2], False, [1.0, 2.0]]},
        "shape": {"array": ["float32", [1, 2], False, [1.0, 2.0]]},
        "weak": {"array": ["float32", [2], True, [1.0, 2.0]]},
        "value": {"array": ["float32", [2], False, [1.0, 2.001]]},
        "refused": {"raises": ["TypeError"]},
        "kind": {"tuple": [one]},
    }
    assert calls.difference(one, one) == ""
    for word, other in others.items():
        assert calls.difference(other, one).partition(" ")[0] == word
    assert calls.difference(one, others["refused"]) == "accepted"
    assert calls.difference({"raises": ["KeyError"]}, others["refused"]).startswith("class")
