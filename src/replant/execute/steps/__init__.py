"""Reconcilers of steps: the actual state goes in, actions come out. No I/O and no clock here."""
