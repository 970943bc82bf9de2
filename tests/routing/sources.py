"""Read facts from the sources of Kubernetes: ``python -m tests.routing.sources CLONE``.

CLONE is a git directory of kubernetes/kubernetes with its tags. What is read is written to
``sources.json``; ``test_facts.py`` holds the model to it. Only where a version says something else
than the one before it is anything written down.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

FACTS = Path(__file__).parent / "sources.json"
PATCHES = ("1.19.15", "1.19.16", "1.24.11", "1.24.12", "1.25.7", "1.25.8", "1.26.2", "1.26.3")
"""Patches that changed something; of all other minors the first is read."""
CONSTANTS = {
    "AWSEBSInTreePluginName": "kubernetes.io/aws-ebs",
    "GCEPDInTreePluginName": "kubernetes.io/gce-pd",
    "CinderInTreePluginName": "kubernetes.io/cinder",
    "AzureDiskInTreePluginName": "kubernetes.io/azure-disk",
    "AzureFileInTreePluginName": "kubernetes.io/azure-file",
    "VSphereInTreePluginName": "kubernetes.io/vsphere-volume",
    "PortworxVolumePluginName": "kubernetes.io/portworx-volume",
    "RBDVolumePluginName": "kubernetes.io/rbd",
}
FOLDERS = {
    "kubernetes.io/aws-ebs": ("awsebs", "aws", "EBS"),
    "kubernetes.io/gce-pd": ("gcepd", "gce", "GCEPD"),
    "kubernetes.io/cinder": ("cinder", "openstack", "Cinder"),
    "kubernetes.io/azure-disk": ("azure*dd", "azure", "AzureDisk"),
    "kubernetes.io/azure-file": ("azure_file", "", ""),
    "kubernetes.io/vsphere-volume": ("vsphere_volume", "vsphere", ""),
    "kubernetes.io/portworx-volume": ("portworx", "", ""),
    "kubernetes.io/rbd": ("rbd", "", ""),
}
"""By plugin: its folder, its cloud provider's, and what the scheduler's filter is called after."""
WITHOUT_DRIVER = ("scaleio", "flocker", "quobyte", "storageos", "glusterfs", "cephfs")
UTIL = "pkg/controller/volume/attachdetach/util/util.go"
MANAGER = "pkg/volume/csimigration/plugin_manager.go"
COUNTS = (
    "pkg/scheduler/framework/plugins/nodevolumelimits/utils.go",
    "pkg/scheduler/algorithm/predicates/utils.go",
)
REGISTERS = (
    "cmd/kube-controller-manager/app/plugins_providers.go",
    "cmd/kube-controller-manager/app/plugins.go",
)
FILTERS = (
    "pkg/scheduler/framework/plugins/registry.go",
    "pkg/scheduler/framework/plugins/default_registry.go",
)
REFUSED = "pkg/scheduler/apis/config/validation/validation.go"
CLAIMS = (
    "staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go",
    "pkg/controller/volume/persistentvolume/util/util.go",
)


class Clone:
    """A git directory with Kubernetes' sources."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, version: str, *paths: str) -> str:
        """The first of these files that a version has; empty if it has none."""
        for path in paths:
            found = self._git("show", f"v{version}:{path}")
            if found:
                return found
        return ""

    def has(self, version: str, pattern: str, folder: str) -> bool:
        """Whether a file below a folder has a pattern; tests do not count."""
        not_tests = ":(exclude)*_test.go"
        return bool(self._git("grep", "-l", pattern, f"v{version}", "--", folder, not_tests))

    def _git(self, *command: str) -> str:
        run = subprocess.run(
            ("git", "-C", self._folder, *command), capture_output=True, text=True, check=False
        )
        return run.stdout


def said_by_plugin(source: str, function: str) -> dict[str, str | bool]:
    """By plugin, the gates that a function asks; true where it asks none."""
    body = re.search(rf"^func .*{function}\(.*?^}}", source, re.DOTALL | re.MULTILINE)
    cases = re.split(r"\n\tcase ", body[0] if body else "")[1:]
    found: dict[str, str | bool] = {}
    for case in cases:
        name, _colon, block = case.partition(":")
        plugin = CONSTANTS.get(name.rpartition(".")[2])
        if plugin:
            gates = re.findall(r"(?:features\.|!enable)(\w+)", block.split("default:")[0])
            found[plugin] = " or ".join(gates) or True
    return found


def has_filter(clone: Clone, version: str, name: str) -> bool:
    """Whether the scheduler has an in-tree limit, and does not refuse to be set up with it."""
    refused = f'"{name}Limits"' in clone.read(version, REFUSED)
    return f"nodevolumelimits.{name}Name" in clone.read(version, *FILTERS) and not refused


def facts(clone: Clone, version: str) -> dict[str, Any]:
    """All that is read of a version."""
    manager, registers = clone.read(version, MANAGER), clone.read(version, *REGISTERS)
    redirects = said_by_plugin(manager, "IsMigrationEnabledForPlugin")
    complete = said_by_plugin(manager, "IsMigrationCompleteForPlugin")
    counts = said_by_plugin(clone.read(version, *COUNTS), "isCSIMigrationOn")
    plugins = {}
    for plugin, (folder, provider, name) in FOLDERS.items():
        code = f"pkg/volume/{folder}/*.go"
        provided = f"staging/src/k8s.io/legacy-cloud-providers/{provider}/"
        plugins[plugin] = {
            "redirects": redirects.get(plugin, False),
            "complete": complete.get(plugin, False),
            "counts": counts.get(plugin, False),
            "inTree": clone.has(version, "ProbeVolumePlugins", code),
            "attaches": clone.has(version, "NewAttacher", code),
            "expands": clone.has(version, "ExpandVolumeDevice", code),
            "namesTheNodeThatHasTheDisk": bool(provider)
            and clone.has(version, "NewDanglingError", provided),
            "filtered": bool(name) and has_filter(clone, version, name),
        }
    return {
        "plugins": plugins,
        "missingDriverIsAnError": "is not installed" in clone.read(version, UTIL),
        "unregisterStandsAlone": "Enabled(pluginInfo.pluginUnregisterFeature)" in registers,
        "twoAnnotations": '"volume.kubernetes.io/storage-provisioner"'
        in clone.read(version, *CLAIMS),
        "withoutDriver": [
            it for it in WITHOUT_DRIVER if clone.has(version, "NewProvisioner", f"pkg/volume/{it}/")
        ],
    }


def main() -> None:
    """Read all versions and write down what differs."""
    clone = Clone(sys.argv[1])
    versions = sorted(
        {*(f"1.{minor}.0" for minor in range(17, 37)), *PATCHES},
        key=lambda it: tuple(map(int, it.split("."))),
    )
    read = {version: facts(clone, version) for version in versions}
    kept = [versions[0], *(now for was, now in pairwise(versions) if read[was] != read[now])]
    document = {
        "source": "kubernetes/kubernetes, at the tag of each version, by tests/routing/sources.py",
        "asked": versions,
        "versions": {version: read[version] for version in kept},
    }
    FACTS.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
