"""From Python functions to running executables: tracing, `jit`, its stages, eager execution.

Invariant: what is traced, compiled or executed is traced, compiled or executed here.
"""
