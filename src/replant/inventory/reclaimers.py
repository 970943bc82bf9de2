"""Controllers that are known to delete the storage of volumes that are deleted.

They do so whatever its reclaim policy says, and a conversion deletes PersistentVolumes. They are
known by the images that pods run.
"""

from __future__ import annotations

import re
from typing import Final

KNOWN: Final = ("csi-reclaim-controller",)
"""The last part of the name of the image: csi-reclaim-controller is Piraeus Datastore's."""

_NAMES: Final = tuple(it.encode() for it in KNOWN)
_IMAGE: Final = re.compile(
    rb'"image":\s*"(?:[^"]*/)?(' + b"|".join(map(re.escape, _NAMES)) + rb')(?:[:@][^"]*)?"'
)


def reclaimer_in(containers: bytes) -> str:
    """The controller of that kind that a pod runs; its containers may stay the JSON they are."""
    # Most pods have to do with none: looking for a word is all that these cost.
    if not any(it in containers for it in _NAMES):
        return ""
    found = _IMAGE.search(containers)
    return found.group(1).decode() if found else ""
