"""The cloud, where it must be like EC2 for the other tests to mean anything."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.real.ground.cloud import Cloud


def test_a_disk_is_attached_to_one_instance_at_a_time(cloud: Cloud) -> None:
    disk, one, other = cloud.disk(), cloud.instance(), cloud.instance()
    cloud.attach(disk, one)
    assert cloud.attached_to(disk) == one.id
    with pytest.raises(ClientError, match="VolumeInUse"):
        cloud.attach(disk, other)
    assert cloud.attached_to(disk) == one.id
    assert [call["refused"] for call in cloud.calls(disk)] == [False, True]
