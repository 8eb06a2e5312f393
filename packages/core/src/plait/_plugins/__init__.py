"""Installed plugins: the scan of their metadata, traits, and the rule tables that they fill.

Invariant: nothing here depends on programs or interpreters.
"""
