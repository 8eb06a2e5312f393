"""Eight virtual devices for all tests, before any module makes an array.

Invariant: tests that need fewer devices use the first ones.
"""

import weft as wf

wf.config.cpu_devices = 8
