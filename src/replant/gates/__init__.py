"""Feature gates and what they mean for each plugin, version by version. Pure.

``history`` is the facts, ``plugins`` what became of each in-tree plugin, ``settings`` what the
gates given to a component come to, ``versions`` how versions are written and compared.
"""
