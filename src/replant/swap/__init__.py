"""A stored in-tree PersistentVolume replaced by its native CSI twin, under its name, and back.

``twin`` says what the other one is, ``moves`` what comes next on the way there. ``search`` proves
that nothing that may happen on the way harms the volume: ``world`` is what it looks at, ``conduct``
what Replant does there, ``actors`` what everybody does, ``story`` how it is told.
"""
