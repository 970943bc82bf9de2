"""Volumes and classes of every plugin, valid but as varied as the API server lets them be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Json = Any
Objects = st.SearchStrategy[dict[str, Any]]

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

ZONES = {
    "kubernetes.io/aws-ebs": ["us-east-1a", "us-east-1b", "us-gov-east-1a", "us-west-2-lax-1a"],
    "kubernetes.io/gce-pd": ["us-central1-a", "us-central1-b", "europe-west4-c"],
}
OTHER_ZONES = ["az1", "az2", "nova", "1", "eastus-2", "zone-a"]
ZONE_KEYS = {
    "kubernetes.io/aws-ebs": ["topology.ebs.csi.aws.com/zone"],
    "kubernetes.io/gce-pd": ["topology.gke.io/zone"],
    "kubernetes.io/cinder": ["topology.cinder.csi.openstack.org/zone"],
    "kubernetes.io/azure-disk": ["topology.disk.csi.azure.com/zone"],
    "kubernetes.io/vsphere-volume": [
        "topology.csi.vmware.com/zone",
        "topology.csi.vmware.com/region",
    ],
}

WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)
HEX = st.text("0123456789abcdef", min_size=8, max_size=17)
FS_TYPES = st.sampled_from(["", "ext4", "xfs", "ntfs"])
NAMESPACES = st.sampled_from(["default", "prod", "team-a"])
ACCESS_MODES = st.lists(
    st.sampled_from(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]), max_size=3, unique=True
)
SECRETS = st.fixed_dictionaries({"name": WORDS, "namespace": NAMESPACES})
PARTITIONS = st.sampled_from([0, 1, 2, 15])


def some(
    required: dict[str, st.SearchStrategy[Json]], **optional: st.SearchStrategy[Json]
) -> Objects:
    """A structure whose optional fields may be missing."""
    return st.fixed_dictionaries(required, optional=optional)


READ_ONLY = st.booleans()

AWS_IDS = st.tuples(st.sampled_from(["", "aws:///", "aws://us-east-1a/"]), HEX).map(
    lambda parts: f"{parts[0]}vol-{parts[1]}"
)
DISK_URIS = st.tuples(HEX, WORDS, WORDS).map(
    lambda p: (
        f"/subscriptions/{p[0]}/resourceGroups/{p[1]}/providers/Microsoft.Compute/disks/{p[2]}"
    )
)
STORAGE_SECRETS = st.one_of(WORDS, WORDS.map(lambda word: f"azure-storage-account-{word}-secret"))
PATHS = st.one_of(HEX.map(lambda text: f"[ds1] kubevols/{text}.vmdk"), st.just("[ds 2] a b/c.vmdk"))
IMAGES = st.one_of(WORDS, HEX.map(lambda text: f"kubernetes-dynamic-pvc-{text}"))
MONITORS = st.lists(
    st.sampled_from(["10.0.0.1:6789", "10.0.0.2:6789", "mon-a.ceph:3300"]), min_size=1, max_size=3
)

IN_TREE_SOURCES: dict[str, tuple[str, Objects]] = {
    "kubernetes.io/aws-ebs": (
        "awsElasticBlockStore",
        some({"volumeID": AWS_IDS}, fsType=FS_TYPES, partition=PARTITIONS, readOnly=READ_ONLY),
    ),
    "kubernetes.io/gce-pd": (
        "gcePersistentDisk",
        some({"pdName": WORDS}, fsType=FS_TYPES, partition=PARTITIONS, readOnly=READ_ONLY),
    ),
    "kubernetes.io/cinder": (
        "cinder",
        some({"volumeID": HEX}, fsType=FS_TYPES, readOnly=READ_ONLY, secretRef=SECRETS),
    ),
    "kubernetes.io/azure-disk": (
        "azureDisk",
        some(
            {"diskName": WORDS, "diskURI": DISK_URIS},
            cachingMode=st.sampled_from(["", "None", "ReadOnly", "ReadWrite"]),
            fsType=FS_TYPES,
            kind=st.sampled_from(["Managed", "managed"]),
            readOnly=READ_ONLY,
        ),
    ),
    "kubernetes.io/azure-file": (
        "azureFile",
        some(
            {"secretName": STORAGE_SECRETS, "shareName": WORDS},
            readOnly=READ_ONLY,
            secretNamespace=NAMESPACES,
        ),
    ),
    "kubernetes.io/vsphere-volume": (
        "vsphereVolume",
        some(
            {"volumePath": PATHS},
            fsType=FS_TYPES,
            storagePolicyName=st.sampled_from(["", "gold", "vSAN Default Storage Policy"]),
            storagePolicyID=HEX,
        ),
    ),
    "kubernetes.io/portworx-volume": (
        "portworxVolume",
        some({"volumeID": HEX}, fsType=FS_TYPES, readOnly=READ_ONLY),
    ),
    "kubernetes.io/rbd": (
        "rbd",
        some(
            {"image": IMAGES, "monitors": MONITORS},
            fsType=FS_TYPES,
            keyring=st.just("/etc/ceph/keyring"),
            pool=st.sampled_from(["", "rbd", "kube"]),
            readOnly=READ_ONLY,
            secretRef=SECRETS,
            user=st.sampled_from(["admin", "kube"]),
        ),
    ),
}


def attributes(**known: st.SearchStrategy[str]) -> Objects:
    return st.fixed_dictionaries({}, optional={**known, "other": WORDS})


GCE_HANDLES = st.tuples(
    st.sampled_from(["my-project", "UNSPECIFIED"]),
    st.sampled_from(["zones/us-central1-a", "zones/UNSPECIFIED", "regions/us-central1"]),
    WORDS,
).map(lambda p: f"projects/{p[0]}/{p[1]}/disks/{p[2]}")
FILE_HANDLES = st.tuples(st.sampled_from(["", "rg"]), WORDS, WORDS, WORDS, NAMESPACES).map("#".join)

CSI_SOURCES: dict[str, tuple[str, st.SearchStrategy[str], Objects]] = {
    "kubernetes.io/aws-ebs": (
        "ebs.csi.aws.com",
        HEX.map(lambda text: f"vol-{text}"),
        attributes(partition=PARTITIONS.map(str)),
    ),
    "kubernetes.io/gce-pd": (
        "pd.csi.storage.gke.io",
        GCE_HANDLES,
        attributes(partition=st.sampled_from(["", "1", "3"])),
    ),
    "kubernetes.io/cinder": ("cinder.csi.openstack.org", HEX, attributes()),
    "kubernetes.io/azure-disk": (
        "disk.csi.azure.com",
        DISK_URIS,
        attributes(
            cachingMode=st.sampled_from(["", "None", "ReadOnly"]),
            fsType=FS_TYPES,
            kind=st.just("Managed"),
        ),
    ),
    "kubernetes.io/azure-file": (
        "file.csi.azure.com",
        FILE_HANDLES,
        attributes(shareName=WORDS, secretName=STORAGE_SECRETS, secretNamespace=NAMESPACES),
    ),
    "kubernetes.io/vsphere-volume": (
        "csi.vsphere.vmware.com",
        st.one_of(HEX, PATHS),
        attributes(initialvolumefilepath=PATHS, storagepolicyname=st.just("gold")),
    ),
    "kubernetes.io/portworx-volume": ("pxd.portworx.com", HEX, attributes()),
    "kubernetes.io/rbd": (
        "rbd.csi.ceph.com",
        HEX.map(lambda text: f"0001-0009-rook-ceph-{text}"),
        attributes(
            adminId=st.sampled_from(["admin", "kube"]),
            clusterID=HEX,
            imageFeatures=st.sampled_from(["", "layering"]),
            imageFormat=st.just("2"),
            imageName=IMAGES,
            journalPool=WORDS,
            pool=WORDS,
        ),
    ),
}

PLUGINS = sorted(IN_TREE_SOURCES)
SECRET_REFERENCES = [
    "controllerExpandSecretRef",
    "controllerPublishSecretRef",
    "nodeExpandSecretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
]


def in_tree_sources(plugin: str) -> Objects:
    field, source = IN_TREE_SOURCES[plugin]
    return source.map(lambda found: {field: found})


@st.composite
def csi_sources(draw: st.DrawFn, plugin: str) -> dict[str, Any]:
    driver, handles, volume_attributes = CSI_SOURCES[plugin]
    return {
        "csi": draw(
            some(
                {"driver": st.just(driver), "volumeHandle": handles},
                fsType=FS_TYPES,
                readOnly=READ_ONLY,
                volumeAttributes=volume_attributes,
                **dict.fromkeys(SECRET_REFERENCES, SECRETS),
            )
        )
    }


@st.composite
def affinities(draw: st.DrawFn, plugin: str, keys: list[str]) -> dict[str, Any]:
    """Affinity as it is found: zones that lie in one region, regions, and things of others."""
    zones = ZONES.get(plugin, OTHER_ZONES)
    zone_keys = [key for key in keys if not key.endswith("/region")]
    region_keys = [REGION, BETA_REGION, *(key for key in keys if key.endswith("/region"))]

    def requirement() -> dict[str, Any]:
        return draw(
            st.one_of(
                some(
                    {
                        "key": st.sampled_from(zone_keys),
                        "operator": st.just("In"),
                        "values": st.lists(st.sampled_from(zones), min_size=1, max_size=2),
                    }
                ),
                some(
                    {
                        "key": st.sampled_from(region_keys),
                        "operator": st.just("In"),
                        "values": st.just(["region-1"]),
                    }
                ),
                some(
                    {
                        "key": st.just("kubernetes.io/arch"),
                        "operator": st.sampled_from(["In", "NotIn"]),
                        "values": st.just(["amd64"]),
                    }
                ),
            )
        )

    terms = [
        {"matchExpressions": [requirement() for _ in range(draw(st.integers(1, 3)))]}
        for _ in range(draw(st.integers(1, 2)))
    ]
    if draw(st.booleans()):
        terms.append({})
    return {"required": {"nodeSelectorTerms": terms}}


@st.composite
def labels(draw: st.DrawFn, plugin: str) -> dict[str, str]:
    zones = ZONES.get(plugin, OTHER_ZONES)
    return draw(
        st.fixed_dictionaries(
            {},
            optional={
                ZONE: st.sampled_from([zones[0], f"{zones[0]}__{zones[1]}", ""]),
                BETA_ZONE: st.sampled_from([zones[1], f"{zones[0]}__{zones[1]}"]),
                REGION: st.just("region-1"),
                BETA_REGION: st.just("region-2"),
                "app": WORDS,
            },
        )
    )


ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "pv.kubernetes.io/provisioned-by": st.just("someone"),
        "kubernetes.io/azure-file-resource-group": st.sampled_from(["rg", ""]),
        "openstorage.io/auth-secret-name": WORDS,
        "openstorage.io/auth-secret-namespace": NAMESPACES,
        "imageFeatures": st.sampled_from(["", "layering,exclusive-lock"]),
        "imageFormat": st.just("2"),
        "journalPool": WORDS,
        "clusterID": HEX,
        "rbd.csi.ceph.com/volume-handle": st.sampled_from(["", "0001-0009-rook-ceph-1"]),
    },
)


@st.composite
def volumes(
    draw: st.DrawFn, plugin: str, source: Callable[[str], Objects], zone_keys: list[str]
) -> dict[str, Any]:
    metadata = draw(some({"name": WORDS}, annotations=ANNOTATIONS, labels=labels(plugin), uid=HEX))
    spec = draw(
        some(
            {"capacity": st.just({"storage": "10Gi"})},
            accessModes=ACCESS_MODES,
            claimRef=some(
                {"name": WORDS, "namespace": NAMESPACES},
                uid=HEX,
            ),
            mountOptions=st.just(["noatime"]),
            nodeAffinity=affinities(plugin, zone_keys),
            storageClassName=WORDS,
            volumeMode=st.sampled_from(["Filesystem", "Block"]),
        )
    )
    spec.update(draw(source(plugin)))
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def in_tree_volumes(plugin: str) -> Objects:
    return volumes(plugin, in_tree_sources, [ZONE, BETA_ZONE])


def csi_volumes(plugin: str) -> Objects:
    return volumes(plugin, csi_sources, [*ZONE_KEYS.get(plugin, []), ZONE, BETA_ZONE])


@st.composite
def inline_volumes(draw: st.DrawFn, plugin: str) -> dict[str, Any]:
    volume = {"name": draw(WORDS), **draw(in_tree_sources(plugin))}
    field = IN_TREE_SOURCES[plugin][0]
    volume[field].pop("secretNamespace", None)
    if "secretRef" in volume[field]:
        volume[field]["secretRef"] = {"name": volume[field]["secretRef"]["name"]}
    return volume


PARAMETERS = {
    "kubernetes.io/aws-ebs": ["type", "iopsPerGB", "encrypted", "kmsKeyId", "fsType", "zone"],
    "kubernetes.io/gce-pd": ["type", "replication-type", "fstype", "zones"],
    "kubernetes.io/cinder": ["type", "availability", "fsType"],
    "kubernetes.io/azure-disk": ["kind", "cachingmode", "skuName", "fsType", "zone"],
    "kubernetes.io/azure-file": ["skuName", "location", "storageAccount", "secretNamespace"],
    "kubernetes.io/vsphere-volume": [
        "diskformat", "datastore", "storagePolicyName", "hostFailuresToTolerate",
        "forceProvisioning", "cacheReservation", "diskStripes", "objectSpaceReservation",
        "iopsLimit", "fstype", "unknown",
    ],
    "kubernetes.io/portworx-volume": [
        "repl", "shared", "openstorage.io/auth-secret-name",
        "openstorage.io/auth-secret-namespace",
    ],
    "kubernetes.io/rbd": [
        "monitors", "adminId", "adminSecretName", "adminSecretNamespace", "pool", "userId",
        "fsType", "imageFormat", "imageFeatures",
    ],
}  # fmt: skip
REQUIRED_PARAMETERS = {"kubernetes.io/rbd": {"monitors", "adminSecretName"}}


@st.composite
def storage_classes(draw: st.DrawFn, plugin: str) -> dict[str, Any]:
    spellings: list[Callable[[str], str]] = [str, str.lower, str.upper, str.title]
    keys = draw(st.sets(st.sampled_from(PARAMETERS[plugin])))
    parameters = {
        draw(st.sampled_from(spellings))(key): draw(
            st.sampled_from(["", "1", "a,b", "us-east-1a", "default"])
        )
        for key in sorted(keys | REQUIRED_PARAMETERS.get(plugin, set()))
    }
    zones = [*ZONES.get(plugin, OTHER_ZONES), "0"]
    topology_keys = [ZONE, BETA_ZONE, REGION, "example.com/rack", *ZONE_KEYS.get(plugin, [])]
    expression = some(
        {
            "key": st.sampled_from(topology_keys),
            "values": st.lists(st.sampled_from(zones), min_size=1, max_size=2),
        }
    )
    term = some({}, matchLabelExpressions=st.lists(expression, min_size=1, max_size=2))
    return draw(
        some(
            {
                "apiVersion": st.just("storage.k8s.io/v1"),
                "kind": st.just("StorageClass"),
                "metadata": st.just({"name": "standard"}),
                "provisioner": st.just(plugin),
                **({"parameters": st.just(parameters)} if parameters else {}),
            },
            allowedTopologies=st.lists(term, max_size=2),
            allowVolumeExpansion=st.booleans(),
            reclaimPolicy=st.sampled_from(["Delete", "Retain"]),
        )
    )
