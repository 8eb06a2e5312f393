"""Custom derivatives: custom_jvp, custom_vjp, linear solves, implicit differentiation.

Invariant: a rule is the user's; it is called with what its signature says, and believed.
"""
