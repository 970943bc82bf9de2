"""Each role that ships may do what is done with it in a seed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from replant.errors import ReplantError
from replant.gardener.shoots import NEEDS_COMPLETE
from replant.operator.webhooks import VALIDATE
from tests.cli.shell import replant
from tests.execute.living import shoot_of, small
from tests.gardener.objects import NAMESPACE, cluster, deployment, shoot
from tests.operators.seeds import (
    CLUSTER_PATH,
    Served,
    attend,
    control_plane,
    definitions,
    node,
    secret,
    served,
    stored,
)
from tests.operators.test_operator import run
from tests.operators.test_webhooks import asking

ROLES = Path(__file__).parents[2] / "deploy" / "rbac"
VERBS = {"PATCH": "patch", "POST": "create", "GET": "get"}

Right = tuple[str, str, str, str]


def rules(role: str) -> list[dict[str, Any]]:
    text = (ROLES / f"{role}.yaml").read_text()
    found = {it["kind"]: it for it in yaml.safe_load_all(text)}
    granted: list[dict[str, Any]] = found["ClusterRole"]["rules"]
    return granted


def granted(role: str = "gardener") -> set[Right]:
    """Verb, group, resource and name; no name where any will do."""
    return {
        (verb, group, resource, name)
        for rule in rules(role)
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def asked(seed: Served) -> set[Right]:
    requests = [("GET", it) for it in seed.audit.reads]
    requests += [(it[0], it[1]) for it in seed.audit.writes]
    return {right for method, path in requests if (right := _right(method, path))}


def _right(method: str, path: str) -> Right | None:
    base, *rest = path.strip("/").split("/")
    group = rest.pop(0) if base == "apis" and rest else ""
    if len(rest) < 2:
        return None  # what is served is told to everybody
    del rest[0]
    if rest[0] == "namespaces":
        del rest[:2]
    resource, *name = rest
    verb = VERBS[method] if name or method != "GET" else "list"
    return verb, group, resource, name[0] if name and group != "extensions.gardener.cloud" else ""


def test_the_role_may_what_is_done(tmp_path: Path) -> None:
    done: set[Right] = set()
    with served(tmp_path, "shoot", [node("n", "v1.18.0")]) as its_shoot:
        text = its_shoot.kubeconfig.read_text()
        for number, missing in enumerate((None, "ControlPlane", "Secret", "Deployment")):
            objects = [*control_plane(), secret(text, "gardener")]
            objects = [it for it in objects if it["kind"] != missing]
            mark = [NEEDS_COMPLETE] if missing == "Deployment" else []
            objects.append(stored(cluster(None, *mark)))
            with served(tmp_path, f"seed{number}", [*definitions(), *objects]) as seed:
                if missing in ("Secret", "Deployment"):
                    with pytest.raises(ReplantError):
                        attend(seed)
                else:
                    attend(seed)
                done |= asked(seed)
        with served(tmp_path, "watched", [*definitions()]) as seed:

            def listed() -> bool:
                done.update(asked(seed))
                return seed.audit.reads.count(CLUSTER_PATH) > 1

            run(seed, listed, quiet=0)
    watches = {it for it in granted() if it[0] == "watch"}
    assert watches == {("watch", "extensions.gardener.cloud", "clusters", "")}
    assert done == granted() - watches


def test_the_role_of_the_webhooks_may_look_clusters_up_and_nothing_else(tmp_path: Path) -> None:
    with (
        served(tmp_path, "seed", [*definitions(), stored(cluster())]) as seed,
        asking(tmp_path, seed.kubeconfig) as webhooks,
    ):
        webhooks.told(deployment("kube-apiserver"))
        webhooks.review(VALIDATE, object=shoot())
        done = asked(seed)
    assert done == granted("gardener-webhooks")


def test_the_role_for_looking_may_what_is_done_to_look(tmp_path: Path) -> None:
    with shoot_of(small(1), tmp_path) as kubeconfig:
        due = cluster(shoot("1.24.17", override="1.24"))
        objects = [*control_plane(), secret(kubeconfig.read_text(), "gardener"), stored(due)]
        with served(tmp_path, "seed", [*definitions(), *objects]) as seed:
            to_seed = ("--kubeconfig", str(seed.kubeconfig))
            code, _out, err = replant("status", "--shoots", *to_seed)
            assert code == 0, err
            to_shoot = ("--shoot", NAMESPACE, "--one-pod-per-volume", *to_seed)
            code, _out, err = replant("plan", "enable", *to_shoot)
            assert code == 0, err
            assert seed.audit.writes == []
            done = asked(seed)
    # A plan asks for one component; apply asks for whichever it waits for.
    components = {it for it in granted("gardener-status") if it[2] == "deployments"}
    assert done <= granted("gardener-status")
    assert granted("gardener-status") - done <= components
    assert done & components
