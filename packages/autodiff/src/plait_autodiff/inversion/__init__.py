"""Reverse mode without residuals: operations are inverted to recover their operands.

Invariant: tests compare the values that inverse rules recover with the original values.
"""
