"""The compiler's side: Programs become StableHLO, StableHLO executables, and those are run.

Invariant: nothing here knows a transformation; nothing outside knows an MLIR object, except the
lowering rules beside the primitives they lower.
"""
