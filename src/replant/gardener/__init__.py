"""Gardener: which step of a shoot's migration comes next, and what its components are told.

All of it is decided from objects as they are seen; nothing here reads or writes any.
"""
