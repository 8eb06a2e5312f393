"""The runtime's profiler, and the source lines of compiled operations.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import profile_data, profiler_class, profiler_mark
from .._jit.op_lines import lines_of_operations, module_name
from .._xla.profiling import costs_of, heap_profile, live_texts, server, session

__all__ = [
    "costs_of", "heap_profile", "lines_of_operations", "live_texts", "module_name", "profile_data",
    "profiler_class", "profiler_mark", "server", "session",
]  # fmt: skip
