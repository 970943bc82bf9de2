from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from replant.cluster.ports import FEATURE_GATES, SCANNED, SCANNED_WHERE_SERVED

FILE = Path(__file__).parents[2] / "deploy" / "rbac" / "scan.yaml"


def shipped() -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(FILE.read_text())}


def test_the_role_may_read_what_a_scan_reads_and_nothing_else() -> None:
    rules = shipped()["ClusterRole"]["rules"]
    [single] = [rule for rule in rules if "resourceNames" in rule]
    rules.remove(single)
    assert single == {
        "apiGroups": [FEATURE_GATES.group],
        "resources": [FEATURE_GATES.plural],
        "resourceNames": ["cluster"],
        "verbs": ["get"],
    }
    granted = [
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    read = (*SCANNED, *SCANNED_WHERE_SERVED)
    assert sorted(granted) == sorted((resource.group, resource.plural) for resource in read)
    for rule in rules:
        assert rule.keys() == {"apiGroups", "resources", "verbs"}
        assert sorted(rule["verbs"]) == ["get", "list"]


def test_the_role_is_bound_to_the_service_account() -> None:
    objects = shipped()
    account = objects["ServiceAccount"]["metadata"]
    assert account == {
        "name": "replant-scan",
        "namespace": objects["Namespace"]["metadata"]["name"],
    }
    assert account["namespace"] == "replant"
    binding = objects["ClusterRoleBinding"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert binding["roleRef"]["kind"] == "ClusterRole"
    assert binding["roleRef"]["name"] == objects["ClusterRole"]["metadata"]["name"]
