"""Plants one-line faults in a copy of Replant, one at a time, and shows which test catches each."""
