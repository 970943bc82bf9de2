"""CSI drivers installed, adopted and removed: every decision, purely.

``decisions`` is the door; ``catalog`` is the table of what there is.
"""
