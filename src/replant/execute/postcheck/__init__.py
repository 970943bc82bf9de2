"""What is checked during and after a run: what harm it may have done. No I/O and no clock here."""
