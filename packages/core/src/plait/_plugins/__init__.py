"""Installed plugins: the scan of their metadata, traits, and the rule tables that they fill.

Invariant: nothing here knows what a program or an interpreter is.
"""
