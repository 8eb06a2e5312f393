"""The compiler side: lowers Programs to StableHLO, compiles StableHLO, and runs executables.

Invariant: no module here depends on a transformation; MLIR objects do not leave this package,
except in the lowering rules that stand beside the primitives they lower.
"""
