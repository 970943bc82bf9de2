"""Which pods leave a node, which stay, and which go only if a person says so."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from replant.execute.draining import DrainRules, drain
from replant.execute.world import Pod

SET = [{"kind": "StatefulSet", "name": "db", "controller": True}]
DAEMON = [{"kind": "DaemonSet", "name": "log", "controller": True}]
ASIDE = [{"kind": "Node", "name": "n1"}]
MIRROR = {"kubernetes.io/config.mirror": "hash"}
SCRATCH = [{"name": "tmp", "emptyDir": {}}]
NAKED, DATA = DrainRules(naked_pods=True), DrainRules(empty_dir_data=True)


def pod(
    owners: Any = (), *, volumes: Any = (), phase: str = "Running", gone: str | None = None,
    annotations: Any = None,
) -> Pod:  # fmt: skip
    metadata = {
        "name": "it", "namespace": "shop", "uid": "u", "ownerReferences": list(owners),
        "annotations": annotations, "deletionTimestamp": gone,
    }  # fmt: skip
    spec = {"nodeName": "n1", "volumes": list(volumes)}
    return convert({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, Pod)


@pytest.mark.parametrize(
    ("it", "rules", "becomes"),
    [
        (pod(SET), DrainRules(), "goes"),
        (pod(SET, gone="now"), DrainRules(), "leaves"),
        (pod(DAEMON), DrainRules(), "stays"),
        (pod(DAEMON, volumes=SCRATCH), DrainRules(), "stays"),
        (pod(annotations=MIRROR), DrainRules(), "stays"),
        (pod(SET, phase="Succeeded"), DrainRules(), "stays"),
        (pod(SET, phase="Failed"), DrainRules(), "stays"),
        (pod(), DrainRules(), "no controller"),
        (pod(ASIDE), DrainRules(), "no controller"),
        (pod(), DATA, "no controller"),
        (pod(), NAKED, "goes"),
        (pod(SET, volumes=SCRATCH), DrainRules(), "emptyDir"),
        (pod(SET, volumes=SCRATCH), NAKED, "emptyDir"),
        (pod(SET, volumes=SCRATCH), DATA, "goes"),
        (pod(volumes=SCRATCH), NAKED, "emptyDir"),
        (pod(volumes=SCRATCH, gone="now"), DrainRules(), "leaves"),
    ],
)
def test_what_becomes_of_a_pod(it: Pod, rules: DrainRules, becomes: str) -> None:
    found = drain([it], rules)
    assert found.go == ([it] if becomes == "goes" else [])
    assert found.leaving == ([it] if becomes == "leaves" else [])
    assert found.over is (becomes == "stays")
    if becomes in ("no controller", "emptyDir"):
        (refusal,) = found.refused
        assert becomes in refusal
        assert "shop/it on n1" in refusal
    else:
        assert found.refused == []
