"""One file per family of checks. A check is a function of a view of the inventory to findings.

Every id is in ``catalogue``, and has a page in docs/findings/.
"""
