"""The command line: one file per command; ``main`` only registers them.

Results go to standard output, everything else to standard error. Import what is heavy inside the
function that needs it: ``--help`` must answer at once.
"""
