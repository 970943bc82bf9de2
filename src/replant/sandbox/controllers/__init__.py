"""What Kubernetes does by itself, each part in its own file.

A controller hears what has changed, remembers only what it has to look at, and does its part when
it is its turn, from what the store says then. Who serves an operation it asks of ``sides``.

``base`` is what they share, ``parts`` what they read of objects, ``volumes`` what they call a
volume, ``recorder`` how they tell people of it.
"""
