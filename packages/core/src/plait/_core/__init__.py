"""The centre: interpreters, values, primitives, programs, staging, and carriers.

Invariant: nothing here depends on a particular primitive, or on the target that programs are
compiled to.
"""
