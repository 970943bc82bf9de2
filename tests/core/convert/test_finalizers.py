"""Only finalizers whose controllers leave the disk of a Retain volume alone may be removed."""

from __future__ import annotations

import pytest

from replant.core.convert.finalizers import unknown_finalizers

OTHER = "reclaim.example.com/storage"


@pytest.mark.parametrize(
    ("finalizers", "unknown"),
    [
        (None, ()),
        (["kubernetes.io/pv-protection", "kubernetes.io/pv-controller"], ()),
        (["external-provisioner.volume.kubernetes.io/finalizer"], ()),
        (["external-attacher/ebs-csi-aws-com"], ()),
        (["kubernetes.io/pv-protection", OTHER], (OTHER,)),
        (["external-attacher"], ("external-attacher",)),
        (["kubernetes.io/pv-protection-of-ours"], ("kubernetes.io/pv-protection-of-ours",)),
    ],
)
def test_which_finalizers_are_not_known(
    finalizers: list[str] | None, unknown: tuple[str, ...]
) -> None:
    assert unknown_finalizers(finalizers) == unknown


def test_one_that_somebody_accepted_is_not_unknown_any_more() -> None:
    assert unknown_finalizers([OTHER, "other.example.com/x"], {OTHER}) == ("other.example.com/x",)
