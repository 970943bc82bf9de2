"""Objects to an inventory, and an inventory to findings. Pure: no I/O, no clock, no logging."""
