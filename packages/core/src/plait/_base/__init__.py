"""The ground floor: jaxlib, source locations, errors, settings.

Invariant: nothing here depends on types, programs or plugins.
"""
