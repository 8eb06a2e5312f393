"""Every public function of plait.numpy and plait.nn shows a call; those that doctest overlooks run.

Invariant: what belongs to the module where it is public is run by test_surface_examples; here are
functions that tables make, which belong to the modules that make them.
"""

import doctest
import inspect

import plait.nn
import plait.numpy

MODULES = (plait.numpy, plait.numpy.linalg, plait.numpy.fft, plait.nn, plait.nn.initializers)
PUBLIC = {f"{m.__name__}.{n}": getattr(m, n) for m in MODULES for n in m.__all__}
PUBLIC = {n: f for n, f in PUBLIC.items()
          if inspect.isfunction(f) and f.__module__.startswith("plait")}  # fmt: skip
MAKERS = ("plait._api.surfaces", "plait_numpy.numpy.masking", "plait._ops.composed")


def test_every_function_shows_a_call():
    assert [n for n, f in PUBLIC.items() if ">>> " not in (f.__doc__ or "")] == []


def _home(f):
    """The module in which a function was written; its `__module__` is where it is public."""
    return inspect.unwrap(f).__globals__["__name__"]


def test_calls_that_doctest_overlooks():
    made = {f: n for n, f in PUBLIC.items() if _home(f) in MAKERS}
    assert len(made) > 30
    runner, parser = doctest.DocTestRunner(verbose=False), doctest.DocTestParser()
    for f, name in made.items():
        runner.run(parser.get_doctest(inspect.getdoc(f) or "", {}, name, name, 0))
    assert runner.summarize(verbose=False).failed == 0
