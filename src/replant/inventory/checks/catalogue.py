"""Every id that a finding may have, and what it is called."""

from __future__ import annotations

TITLES: dict[str, str] = {
    "RP001": "A kind of object was not read",
    "RP002": "No permission to read a kind of object",
    "RP003": "The server's version is not known",
    "RP101": "In-tree volume that a CSI driver takes over",
    "RP102": "Volume of a plugin that left the tree without a CSI driver",
    "RP103": "Unmanaged Azure disk",
    "RP104": "Volume that cannot be translated",
    "RP105": "Azure File volume without a secret namespace",
    "RP106": "vSphere path that does not name a datastore and a disk",
    "RP107": "RBD cluster that the CSI driver must know by a hash",
    "RP108": "Beta zone or region keys",
    "RP109": "Affinity that no node can meet after translation",
    "RP110": "Annotations that name the wrong provisioner, or none",
    "RP111": "Static volume that nobody will delete",
    "RP112": "Volume that is being deleted",
    "RP113": "Claim that is being expanded",
    "RP114": "fsGroup with an empty file system type",
    "RP115": "What a native CSI volume would offer",
    "RP201": "In-tree StorageClass",
    "RP202": "Several default StorageClasses",
    "RP203": "In-tree and CSI StorageClasses side by side",
    "RP204": "StatefulSet whose claims name an in-tree StorageClass",
    "RP205": "StorageClass of a plugin that left the tree without a CSI driver",
    "RP206": "StorageClass parameters that the driver does not take",
    "RP207": "StorageClass that cannot be translated",
    "RP301": "Inline in-tree volume",
    "RP302": "Inline volume of a plugin that left the tree without a CSI driver",
    "RP303": "Inline volume that cannot be translated",
    "RP401": "CSI driver not installed",
    "RP402": "CSI driver missing on a node that uses its volumes",
    "RP403": "Node redirects a plugin whose driver it does not have",
    "RP404": "Node redirects a plugin that the controllers do not",
    "RP501": "VolumeAttachment without its volume or node",
    "RP502": "VolumeAttachment that is stuck",
    "RP503": "Volume attached by the side that will not detach it",
    "RP601": "What changes for a plugin at the target version",
    "RP602": "Feature set of OpenShift that means nothing any more",
    "RP701": "Portworx volume without its security annotations",
    "RP702": "Pod that waits for a Portworx volume without a token",
    "RP801": "Worker pool of a shoot that the migration would miss",
}

ABOUT_THE_SCAN = frozenset({"RP001", "RP003"})
"""These tell of the scan, not of the cluster: alone they make no scan fail."""
