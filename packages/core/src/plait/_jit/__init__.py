"""From Python functions to running executables: tracing, `jit`, its stages, eager execution.

Invariant: only modules of this package trace functions, compile programs and execute operations.
"""
