"""In-tree volumes to CSI and back: plain dicts in, new plain dicts out.

One file per plugin, one table (``registry``), topology shared. Forbidden here: I/O, clocks,
logging, and changing what was passed in. A result shares with its input what did not change, so
treat both as values.

Every function raises :class:`replant.errors.TranslationError`, naming object and field, and
nothing else, whatever it is given.
"""

from replant.translate.api import (
    driver_of,
    dropped_parameters,
    inline_to_csi,
    is_migratable,
    plugin_for_driver,
    plugin_of,
    plugins,
    pv_to_csi,
    pv_to_in_tree,
    repair_volume_handle,
    storage_class_to_csi,
)

__all__ = [
    "driver_of",
    "dropped_parameters",
    "inline_to_csi",
    "is_migratable",
    "plugin_for_driver",
    "plugin_of",
    "plugins",
    "pv_to_csi",
    "pv_to_in_tree",
    "repair_volume_handle",
    "storage_class_to_csi",
]
