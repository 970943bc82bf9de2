"""A stored in-tree PersistentVolume replaced by its native CSI twin, under its name, and back.

``twin`` says what the other one is, ``moves`` what comes next on the way there, ``verdict`` whether
a volume may set out at all, and ``search`` whether anything that may happen on the way can lose it.
"""
