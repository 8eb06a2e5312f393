"""The centre: interpreters, values, primitives, programs, staging, and carriers.

Invariant: nothing here knows any primitive, or what a program is compiled to.
"""
