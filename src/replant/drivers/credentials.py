"""How a driver gets its rights in the cloud, and how it is told when they change.

Of a secret only its uid, its version and the names of its keys are looked at, never a value.
"""

from __future__ import annotations

from replant.drivers.catalog import Cloud, Driver
from replant.drivers.kinds import KINDS, made
from replant.drivers.naming import Names
from replant.drivers.programs import PROGRAMS
from replant.drivers.sameness import digest
from replant.objects import Object

REQUESTS = "openshift-cloud-credential-operator"
"""The namespace where the cloud-credential-operator looks for requests."""

CREDENTIALS = "replant.dev/credentials"
"""On pods: which version of their credentials they were started with."""

_EBS_ACTIONS = (
    "ec2:AttachVolume", "ec2:CreateSnapshot", "ec2:CreateTags", "ec2:CreateVolume",
    "ec2:DeleteSnapshot", "ec2:DeleteTags", "ec2:DeleteVolume", "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances", "ec2:DescribeSnapshots", "ec2:DescribeTags", "ec2:DescribeVolumes",
    "ec2:DescribeVolumesModifications", "ec2:DetachVolume", "ec2:ModifyVolume",
)  # fmt: skip
_SPECS: dict[Cloud, Object] = {
    Cloud.AWS: {
        "kind": "AWSProviderSpec",
        "statementEntries": [
            {"effect": "Allow", "action": list(_EBS_ACTIONS), "resource": "*"},
            # Volumes may be encrypted with a key of the user's.
            {
                "effect": "Allow",
                "action": ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey*", "kms:CreateGrant"],
                "resource": "*",
            },
        ],
    },
    Cloud.GCP: {
        "kind": "GCPProviderSpec",
        "predefinedRoles": [
            "roles/compute.storageAdmin",
            "roles/iam.serviceAccountUser",
            "roles/resourcemanager.tagUser",
        ],
        "skipServiceCheck": True,
    },
    Cloud.OPENSTACK: {"kind": "OpenStackProviderSpec"},
    Cloud.AZURE: {"kind": "AzureProviderSpec", "roleBindings": [{"role": "Contributor"}]},
    Cloud.VSPHERE: {"kind": "VSphereProviderSpec"},
}


def request(driver: Driver, names: Names) -> Object:
    """What asks OpenShift's cloud-credential-operator for them."""
    version = KINDS["CredentialsRequest"].api_version
    spec = _SPECS[driver.cloud] if driver.cloud else {}
    return made(
        "CredentialsRequest",
        f"openshift-{driver.backend}-csi-driver",
        REQUESTS,
        spec={
            "secretRef": {"name": driver.secret, "namespace": names.controller_namespace},
            "serviceAccountNames": [names.controller_account],
            "providerSpec": {"apiVersion": version, **spec},
        },
    )


def awaited(driver: Driver, names: Names, found: Object | None, secret: Object | None) -> str:
    """What is still to be waited for; nothing if the credentials are there.

    ``found`` is the CredentialsRequest, None where nobody serves it.
    """
    place = f"Secret {names.controller_namespace}/{driver.secret}"
    if found is not None and (found.get("status") or {}).get("provisioned") is not True:
        metadata = found["metadata"]
        return (
            f"CredentialsRequest {metadata['namespace']}/{metadata['name']} is not provisioned "
            f"yet: the cloud-credential-operator makes {place}"
        )
    if secret is None:
        by = "" if found is not None else "; make it with the rights that docs/drivers.md names"
        return f"{place} is not there{by}"
    if lacks := _lacking(driver, secret):
        return f"{place} has no {', '.join(lacks)}: add what docs/drivers.md names"
    return ""


def _lacking(driver: Driver, secret: Object) -> list[str]:
    """The keys that a driver could not start without, as far as keys were looked at."""
    # EBS takes other ways to its rights where these are not there.
    if "data" not in secret or driver.cloud is Cloud.AWS:
        return []
    return [it for it in PROGRAMS[driver.name].secret_keys if it not in secret["data"]]


def version_of(secret: Object | None) -> str:
    """Which credentials these are: another text for every change of them."""
    if secret is None:
        return ""
    metadata = secret["metadata"]
    return digest([metadata.get("uid"), metadata.get("resourceVersion")])
