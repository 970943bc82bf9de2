"""A cloud on loopback: moto's EC2 server. It says which disk is attached to what."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from tests.real.ground.processes import Process, Stoppable, start_on_free_port

REGION = "us-east-1"
ZONE = "us-east-1a"
CLUSTER = "replant"
TAGS = [{"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}]


@dataclass(frozen=True)
class Instance:
    id: str
    name: str
    """Its private DNS name, which is what the in-tree plugin takes a node's name for."""


def by_plugin(call: Mapping[str, Any]) -> bool:
    """Whether the in-tree plugin made a call, and EC2 did it: it gives Kubernetes as its name."""
    caller: str = call["caller"]
    return caller.startswith("kubernetes/") and not call["refused"]


class Cloud(Stoppable):
    credentials: Mapping[str, str] = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "ec2.calls"
        self._calls.touch()
        server = [sys.executable, "-m", "tests.real.ground.ec2_server"]
        env = {"PYTHONPATH": str(Path(__file__).parents[3])}
        self._process, port = start_on_free_port(
            lambda port: Process("ec2", [*server, str(port), str(self._calls)], folder, env)
        )
        self.url = f"http://127.0.0.1:{port}"
        self._ec2: Any = boto3.client(
            "ec2",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 - moto asks for some, and checks none
        )
        self._vpc = self._ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
        zone = [{"Name": "availability-zone", "Values": [ZONE]}]
        self._subnet = self._ec2.describe_subnets(Filters=zone)["Subnets"][0]["SubnetId"]
        self._image = self._ec2.describe_images()["Images"][0]["ImageId"]

    def stop(self) -> None:
        self._ec2.close()
        self._process.stop()

    def write_config(self, folder: Path) -> Path:
        """The cloud.conf by which the in-tree plugin finds this cloud."""
        path = folder / "cloud.conf"
        path.write_text(
            f"[Global]\nZone={ZONE}\nVPC={self._vpc}\nSubnetID={self._subnet}\n"
            f"KubernetesClusterID={CLUSTER}\nDisableSecurityGroupIngress=true\n"
            f'[ServiceOverride "1"]\nService=ec2\nRegion={REGION}\nURL={self.url}\n'
            f"SigningRegion={REGION}\n"
        )
        return path

    def instance(self) -> Instance:
        made = self._ec2.run_instances(
            ImageId=self._image,
            MinCount=1,
            MaxCount=1,
            SubnetId=self._subnet,
            TagSpecifications=[{"ResourceType": "instance", "Tags": TAGS}],
        )["Instances"][0]
        return Instance(made["InstanceId"], made["PrivateDnsName"])

    def disk(self) -> str:
        made = self._ec2.create_volume(
            AvailabilityZone=ZONE,
            Size=1,
            TagSpecifications=[{"ResourceType": "volume", "Tags": TAGS}],
        )
        disk: str = made["VolumeId"]
        return disk

    def attach(self, disk: str, instance: Instance) -> None:
        """Attach it behind everybody's back."""
        self._ec2.attach_volume(VolumeId=disk, InstanceId=instance.id, Device="/dev/xvdz")

    def has(self, disk: str) -> bool:
        """Whether there is such a disk."""
        found = self._ec2.describe_volumes(Filters=[{"Name": "volume-id", "Values": [disk]}])
        return bool(found["Volumes"])

    def attached_to(self, disk: str) -> str:
        """The instance that has the disk, or nothing."""
        found = self._ec2.describe_volumes(VolumeIds=[disk])["Volumes"][0]["Attachments"]
        return found[0]["InstanceId"] if found else ""

    def attachments(self, disks: Iterable[str]) -> dict[str, list[str]]:
        """The instances that have each disk."""
        found = self._ec2.describe_volumes(VolumeIds=list(disks))["Volumes"]
        return {it["VolumeId"]: [at["InstanceId"] for at in it["Attachments"]] for it in found}

    def calls(self, disk: str) -> list[dict[str, Any]]:
        """Who has changed the disk so far, oldest first."""
        return [call for call in self.all_calls() if call["volume"] == disk]

    def all_calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()]
