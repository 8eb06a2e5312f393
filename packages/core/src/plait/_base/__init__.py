"""The ground floor: jaxlib, source locations, errors, settings.

Invariant: nothing here knows of types, programs or plugins.
"""
