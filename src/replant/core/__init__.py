"""Decisions: plain functions on plain data; no I/O, clock, randomness or logging here."""
