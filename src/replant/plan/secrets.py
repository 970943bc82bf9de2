"""Portworx with security on: the secret that each volume must name before its driver serves it."""

from __future__ import annotations

from collections.abc import Iterator

from replant.inventory.checks.portworx import secret_annotations, secured
from replant.inventory.model import Volume
from replant.plan.model import VolumeAnnotations
from replant.plan.situation import Situation
from replant.translate.portworx import Portworx


def missing_secrets(situation: Situation) -> tuple[VolumeAnnotations, ...]:
    """What the volumes without a secret are to be given, where that can be known."""
    return tuple(
        VolumeAnnotations(
            name=volume.name,
            annotations={key: value for key, value in wanted.items() if value},
            before={key: volume.annotations.get(key) for key in wanted},
        )
        for volume, wanted in _without_secret(situation)
        if all(wanted.values())
    )


def unknown_secrets(situation: Situation) -> list[Volume]:
    """The volumes whose secret nothing tells: a person must name it."""
    return [volume for volume, wanted in _without_secret(situation) if not all(wanted.values())]


def _without_secret(situation: Situation) -> Iterator[tuple[Volume, dict[str, str]]]:
    if Portworx.name not in situation.plugins or not secured(situation.inventory):
        return
    for volume in situation.volumes:
        if volume.plugin == Portworx.name:
            wanted = secret_annotations(situation.inventory, volume)
            if any(key not in volume.annotations for key in wanted):
                yield volume, wanted
