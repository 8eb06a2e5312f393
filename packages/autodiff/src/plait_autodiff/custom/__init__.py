"""Custom derivatives: custom_jvp, custom_vjp, linear solves, implicit differentiation.

Invariant: rules are the user's.  They are called as documented, and their results are trusted.
"""
