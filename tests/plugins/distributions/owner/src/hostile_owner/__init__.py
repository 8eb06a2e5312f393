"""A function whose slope is a half by decree, though it is the identity.

Invariant: the trait is true of the function, and not of the derivative that its author wants.
"""

from plait import ext

identity = ext.Primitive("half.identity", lambda x: x, traits=(ext.Linear, ext.Elementwise))
ext.lower_rules.rule(identity)(lambda e, xs, ins, outs: xs[0])
