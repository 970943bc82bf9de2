"""The manifests that ship: they start commands that exist, probe paths that answer, as who may."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from replant.cli.operator import command
from replant.gardener.shoots import NEEDS_COMPLETE
from replant.operator import health as health_module
from replant.operator import webhooks
from replant.operator.health import HEALTH, METRICS, READY, Tally
from replant.operator.run import Running, Where, health, migration, run
from replant.operator.webhooks import Listener
from tests.gardener.objects import LISTED, cluster
from tests.operators.seeds import (
    CLUSTER_PATH,
    Served,
    control_plane,
    definitions,
    served,
    stored,
)
from tests.waiting import wait_until_async

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def documents(path: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / path).read_text()))


def deployments() -> dict[str, dict[str, Any]]:
    found = [it for it in documents("gardener/operator.yaml") if it["kind"] == "Deployment"]
    return {it["metadata"]["name"]: it["spec"] for it in found}


@pytest.mark.parametrize("name", deployments())
def test_a_pod_is_started_as_it_can_be(name: str) -> None:
    spec = deployments()[name]
    pod = spec["template"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    role = "rbac/gardener-webhooks.yaml" if name == "replant-webhooks" else "rbac/gardener.yaml"
    [account] = [it for it in documents(role) if it["kind"] == "ServiceAccount"]
    [binding] = [it for it in documents(role) if it["kind"] == "ClusterRoleBinding"]
    assert [it["name"] for it in binding["subjects"]] == [account["metadata"]["name"]]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    [container] = pod["containers"]
    first, *arguments = container["args"]
    given = command.make_context(first, arguments).params
    ports = {it["name"]: it["containerPort"] for it in container["ports"]}
    if name == "replant-webhooks":
        paths = {webhooks.HEALTH}
        served_at = given["port"]
        mounts = {it["mountPath"] for it in container["volumeMounts"]}
        assert {str(given[it].parent) for it in ("tls_cert", "tls_key")} <= mounts
    else:
        paths = {HEALTH, READY}
        served_at = given["health_port"]
        annotations = spec["template"]["metadata"]["annotations"]
        assert annotations["prometheus.io/port"] == str(served_at)
        assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    probes = [container[it]["httpGet"] for it in ("livenessProbe", "readinessProbe")]
    assert {it["path"] for it in probes} == paths
    assert {ports[it["port"]] for it in probes} == {served_at}
    assert {it.get("scheme", "HTTP") for it in probes} == {
        "HTTPS" if name == "replant-webhooks" else "HTTP"
    }
    assert given["bind"] == "0.0.0.0"  # noqa: S104 - a pod's own
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_the_webhooks_service_leads_to_their_pods() -> None:
    [service] = [it for it in documents("gardener/webhooks.yaml") if it["kind"] == "Service"]
    spec = deployments()["replant-webhooks"]
    assert service["spec"]["selector"] == spec["selector"]["matchLabels"]
    [container] = spec["template"]["spec"]["containers"]
    [port] = service["spec"]["ports"]
    assert port["targetPort"] == container["ports"][0]["containerPort"]
    [budget] = [
        it for it in documents("gardener/operator.yaml") if it["kind"] == "PodDisruptionBudget"
    ]
    assert budget["spec"]["selector"] == spec["selector"]
    assert budget["spec"]["maxUnavailable"] < spec["replicas"]


def test_the_image_takes_only_what_is_locked_and_starts_the_command() -> None:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    assert lines[-1] == 'ENTRYPOINT ["replant"]'
    assert any(it.startswith("USER 65532") for it in lines), "a number, for runAsNonRoot"
    installs = [it for it in lines if "pip wheel" in it or "pip install" in it]
    assert len(installs) == 4
    for line in installs:
        assert any(it in line for it in ("--require-hashes", "--no-index", "--no-deps")), line


def test_probes_and_counts(tmp_path: Path) -> None:
    told = stored(cluster(None, NEEDS_COMPLETE))
    lost = stored(cluster(name="lost"))
    objects = [*definitions(), *control_plane(), *control_plane("lost"), told, lost]

    async def main(seed: Served) -> None:
        tally, running = Tally(), Running()
        opened: asyncio.Queue[int] = asyncio.Queue()
        where = Where(str(seed.kubeconfig))
        controllers = [
            health(Listener("127.0.0.1", 0), tally, opened=opened.put_nowait),
            migration(where, LISTED, concurrency=2, note=lambda _: None, tally=tally,
                      pause=lambda _: 60.0),
        ]  # fmt: skip
        working = asyncio.ensure_future(run(controllers, running=running, signals=False))
        address = f"http://127.0.0.1:{await opened.get()}"
        async with httpx.AsyncClient(base_url=address, trust_env=False) as client:
            assert (await client.get(READY)).status_code == 503
            assert (await client.get(HEALTH)).text == "ok"
            async with asyncio.timeout(60):
                await running.ready.wait()
            counted = ('looks_total{outcome="done"} 1', 'looks_total{outcome="failed"} 1')
            await wait_until_async(lambda: all(it in tally.text() for it in counted), tally.text)
            assert (await client.get(READY)).status_code == 200
            answered = await client.get(METRICS)
            # kopf lets 5 s pass at its end while a shoot waits to be tried again, so none is left.
            told_now = {"metadata": {"annotations": {NEEDS_COMPLETE: "true"}}}
            kind = {"Content-Type": "application/merge-patch+json"}
            path = f"{seed.address}{CLUSTER_PATH}/lost"
            (await client.patch(path, json=told_now, headers=kind)).raise_for_status()
            await wait_until_async(lambda: "shoots_attended 0" in tally.text(), tally.text)
        running.stop.set()
        await working
        assert answered.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = answered.text.splitlines()
        assert [it for it in lines if not it.startswith("#")] == [
            'replant_gardener_looks_total{outcome="done"} 1',
            'replant_gardener_looks_total{outcome="failed"} 1',
            'replant_gardener_writes_total{what="annotations"} 1',
            'replant_gardener_writes_total{what="nudge"} 3',
            "replant_gardener_shoots_attended 1",
        ]
        assert [it.split()[2] for it in lines if it.startswith("# TYPE")] == [
            health_module.LOOKS, health_module.WRITES, health_module.ATTENDED,
        ]  # fmt: skip

    with served(tmp_path, "seed", objects) as seed:
        asyncio.run(main(seed))
