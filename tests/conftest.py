"""What holds for all tests."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control has what it puts in the background ignore Ctrl-C, and so would
    # all that tests start in order to interrupt it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
