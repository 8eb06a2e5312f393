"""What `import plait` shows that has no module of its own: devices, blocks of settings, names.

Invariant: nothing below the public surfaces imports from here.
"""
