"""Decisions about the conversion of a PersistentVolume. No I/O, clock or logging."""
