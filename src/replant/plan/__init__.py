"""What to do, in which order, and how to undo it: plans as data, made from an inventory."""
