"""The controllers that run in a cluster: told by watches, they look, decide and act.

What they decide is decided by pure packages; what they read and write goes through the ports.
"""
