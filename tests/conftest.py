"""Eight virtual devices for all tests, before any module makes an array.

Invariant: tests that need fewer devices use the first ones; where the runner itself has no Plait
(the tests of installations start processes that do), nothing is done.
"""

from importlib.util import find_spec

if find_spec("plait") is not None:
    import plait

    plait.config.cpu_devices = 8
