"""What an inventory needs of kinds that only platforms have: OpenShift's, and Gardener's."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from replant.inventory.metadata import Record


class CustomGates(Struct, gc=False):
    """Gates that a FeatureGate lists by themselves."""

    enabled: list[str] | None = None
    disabled: list[str] | None = None


class FeatureGateSpec(Struct, gc=False, rename="camel"):
    """Which features a whole OpenShift has."""

    feature_set: str | None = None
    custom_no_upgrade: CustomGates | None = None


class FeatureGate(Record, gc=False, kw_only=True):
    """OpenShift's only one."""

    spec: FeatureGateSpec | None = None


class Shoot(Record, gc=False, kw_only=True):
    """A cluster that Gardener keeps. Its spec is judged as an object, as webhooks are given it."""

    spec: dict[str, Any] | None = None


class ClusterSpec(Struct, gc=False):
    """What a seed knows of a shoot, without its cloud's profile, which is large."""

    shoot: dict[str, Any] | None = None


class Cluster(Record, gc=False, kw_only=True):
    """A shoot, as its seed has it."""

    spec: ClusterSpec = field(default_factory=ClusterSpec)
