"""Public names of `import plait` without a module of their own: devices, blocks of settings, names.

Invariant: no module below the public surfaces imports from here.
"""
