"""Carries a plan out: looks, decides, writes down, acts, and waits for what it sees.

What to do next is decided by plain functions on what was seen (``rolling``, ``switching``,
``rewriting``); ``engine`` turns their decisions into journal entries, acts and waits.
"""
