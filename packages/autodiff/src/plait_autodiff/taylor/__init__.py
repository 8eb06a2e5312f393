"""Derivatives of higher order in one pass: Taylor series along a curve, forward Laplacians.

Invariant: each is a carrier with a rule table of its own.
"""
