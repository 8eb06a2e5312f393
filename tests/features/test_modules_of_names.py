"""Modules that hold names where JAX has them: core's, and those that plugins declare.

Invariant: what such a module has is the very object of `plait`'s own name, and nothing is imported
or read for it before it is asked for.
"""

import importlib
import json
import os
import subprocess
import sys

import pytest

import plait

OBJECTS = {
    "ad_checkpoint.checkpoint_name": lambda: plait.checkpoint_name,
    "ad_checkpoint.remat": lambda: plait.checkpoint,
    "custom_batching.custom_vmap": lambda: plait.custom_vmap,
    "custom_derivatives.CustomVJPPrimal": lambda: plait.CustomPrimal,
    "custom_derivatives.custom_jvp": lambda: plait.custom_jvp,
    "experimental.io_callback": lambda: plait.io_callback,
    "experimental.jet.jet": lambda: plait.jet,
    "experimental.pjit.pjit": lambda: plait.jit,
    "experimental.shard_map.shard_map": lambda: plait.shard_map,
    "export.export": lambda: plait.export.export,
    "sharding.PartitionSpec": lambda: plait.PartitionSpec,
    "test_util.check_grads": lambda: plait.check_grads,
}


@pytest.mark.parametrize("path", OBJECTS)
def test_a_name_is_the_object_that_plait_has(path):
    module, _, name = path.rpartition(".")
    found = importlib.import_module(f"plait.{module}")
    assert getattr(found, name) is OBJECTS[path]()
    assert name in dir(found)


@pytest.mark.parametrize("path", OBJECTS)
def test_a_name_is_reached_by_attributes_too(path):
    found = plait
    for part in path.split("."):
        found = getattr(found, part)
    assert found is OBJECTS[path]()


def test_modules_of_names_cost_nothing_before_they_are_asked_for():
    code = """if True:
        import json, sys
        import plait
        from plait._plugins.metadata import scan
        early = scan.cache_info().currsize
        import plait.experimental.jet
        ours = {m.partition(".")[0] for m in sys.modules if m.startswith("plait_")}
        print(json.dumps([early, scan.cache_info().currsize, sorted(ours)]))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [0, 1, []]


def test_a_module_of_a_plugin_that_is_not_there_says_what_to_install():
    code = """if True:
        import plait
        for name in ("custom_derivatives", "experimental.jet", "export", "sharding"):
            try:
                __import__(f"plait.{name}")
            except ImportError as e:
                print(e.fix)
    """
    env = {**os.environ, "PLAIT_PLUGINS": "off"}
    ask = [sys.executable, "-c", code]
    done = subprocess.run(ask, capture_output=True, text=True, check=True, env=env)
    wanted = ["autodiff", "autodiff", "export", "sharding"]
    lines = done.stdout.splitlines()
    assert [w in line for w, line in zip(wanted, lines, strict=True)] == [True] * 4
