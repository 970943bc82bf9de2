"""What carries the actions of steps out, by asking and writing. Decides nothing."""
