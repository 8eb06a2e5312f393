"""The check of the setting `debug_key_reuse`: no random key is used twice.

    walk.py    a walk over a program, and the ledger of spent keys;
    rules.py   rules of core's operations;
    names.py   names of keys.

Invariant: nothing is imported here, since the check is needed only while the setting is on.
"""
