"""The primitives of core, by family.

Invariant: a file holds the definitions, lowerings and expansions of one family, and nothing of
any transformation.
"""
