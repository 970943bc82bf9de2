"""The providers: whose cloud it is, with which minor they went over to CSI, and their classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replant.gates.plugins import LIVES, PluginLife
from replant.gates.versions import Version


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider extension, as shoots name it."""

    type: str
    """What a Shoot has as spec.provider.type."""
    cloud: str
    """What components have as --cloud-provider."""
    migration: Version
    """The minor with which its shoots go over to CSI."""
    classes: tuple[tuple[str, str], ...]
    """The legacy StorageClasses, name and provisioner: they make way for CSI ones of that name."""

    @property
    def plugins(self) -> tuple[PluginLife, ...]:
        """The in-tree plugins that go, in the order of the table."""
        named = dict.fromkeys(provisioner for _, provisioner in PROVIDERS[self.type].classes)
        return tuple(LIVES[it] for it in named)

    def told(
        self, migration: Version | None, classes: tuple[tuple[str, str], ...] = ()
    ) -> Provider:
        """The same with what somebody wants otherwise."""
        return replace(
            self,
            migration=(migration or self.migration).first_patch,
            classes=classes or self.classes,
        )


def _classes(provisioner: str, *names: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, provisioner) for name in names)


PROVIDERS = {
    it.type: it
    for it in (
        Provider("aws", "aws", Version(1, 18), _classes("kubernetes.io/aws-ebs", "default", "gp2")),
        Provider(
            "gcp", "gce", Version(1, 18), _classes("kubernetes.io/gce-pd", "default", "gce-sc-fast")
        ),
        Provider(
            "openstack",
            "openstack",
            Version(1, 19),
            _classes("kubernetes.io/cinder", "default", "default-class"),
        ),
        Provider(
            "azure",
            "azure",
            Version(1, 21),
            (
                *_classes(
                    "kubernetes.io/azure-disk",
                    "default",
                    "managed-standard-hdd",
                    "managed-standard-ssd",
                    "managed-premium-ssd",
                ),
                *_classes("kubernetes.io/azure-file", "files"),
            ),
        ),
    )
}
