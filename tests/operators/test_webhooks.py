"""The webhooks, asked over TLS as an API server asks them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonpatch
import pytest
import trustme
import yaml

from replant.gardener.components import told_deployment
from replant.gardener.shoots import NEEDS_COMPLETE, OVERRIDE, Stage
from replant.gates.versions import Version
from replant.operator import webhooks as webhooks_module
from replant.operator.admission import CHANGES
from replant.operator.run import WEBHOOK_TIMEOUT, Running, Where, run, webhooks
from replant.operator.webhooks import LARGEST, MUTATE, VALIDATE, Door
from replant.sandbox.server import open_port
from tests.cli.shell import replant
from tests.gardener.objects import AWS, NAMESPACE, cluster, deployment, shoot
from tests.operators.seeds import definitions, served, stored
from tests.waiting import wait_until

DEPLOY = Path(__file__).parents[2] / "deploy" / "gardener"
CA = trustme.CA()


def door_of(folder: Path) -> Door:
    issue(folder)
    return Door("127.0.0.1", 0, folder / "tls.crt", folder / "tls.key")


def issue(folder: Path) -> None:
    issued = CA.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "tls.key")
    issued.cert_chain_pems[0].write_to_path(folder / "tls.crt")


@dataclass
class Asked:
    """A way to ask the webhooks."""

    client: httpx.Client
    notes: list[str]

    def review(self, path: str, **request: Any) -> dict[str, Any]:
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "42", "operation": "UPDATE", **request},
        }
        answered = self.client.post(path, json=review)
        assert answered.status_code == 200, answered.text
        found = answered.json()
        assert (found["apiVersion"], found["kind"]) == (review["apiVersion"], review["kind"])
        response: dict[str, Any] = found["response"]
        assert response.pop("uid") == "42"
        return response

    def told(self, given: dict[str, Any], **request: Any) -> dict[str, Any]:
        """A Deployment as it comes out."""
        name = given["metadata"]["name"]
        response = self.review(
            MUTATE, name=name, object=given, **{"namespace": NAMESPACE, **request}
        )
        assert response["allowed"], response
        if "patch" not in response:
            return given
        assert response["patchType"] == "JSONPatch"
        patch = json.loads(base64.b64decode(response["patch"]))
        patched: dict[str, Any] = jsonpatch.apply_patch(given, patch)
        return patched


@contextlib.contextmanager
def asking(folder: Path, kubeconfig: Path) -> Iterator[Asked]:
    notes: list[str] = []
    ports: list[int] = []
    up = threading.Event()
    stops: list[Any] = []

    def ready(port: int) -> None:
        ports.append(port)
        up.set()

    async def main() -> None:
        running = Running()
        stops.extend([asyncio.get_running_loop(), running.stop])
        where = Where(str(kubeconfig))
        controller = webhooks(where, AWS, door_of(folder), note=notes.append, ready=ready)
        await run([controller], running=running, signals=False)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    try:
        assert up.wait(30)
        context = ssl.create_default_context()
        CA.configure_trust(context)
        address = f"https://127.0.0.1:{ports[0]}"
        with httpx.Client(base_url=address, verify=context, trust_env=False, timeout=30) as client:
            yield Asked(client, notes)
    finally:
        loop, stop = stops
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        assert not thread.is_alive()


@contextlib.contextmanager
def asking_a_seed(folder: Path, *objects: dict[str, Any]) -> Iterator[Asked]:
    with (
        served(folder, "seed", [*definitions(), *map(stored, objects)]) as seed,
        asking(folder, seed.kubeconfig) as asked,
    ):
        yield asked
        assert seed.audit.writes == []


@pytest.mark.parametrize(
    ("found", "stage", "version"),
    [
        (cluster(shoot("1.17.4")), Stage.NOT_USED, Version(1, 17)),
        (cluster(), Stage.IN_PROGRESS, Version(1, 18)),
        (cluster(None, NEEDS_COMPLETE), Stage.COMPLETE, Version(1, 18)),
        (cluster(shoot("1.21.0")), Stage.COMPLETE, Version(1, 21)),
        (cluster(shoot("1.17.4", override="1.17")), Stage.IN_PROGRESS, Version(1, 17)),
    ],
)
def test_the_control_plane_is_told_the_flags_of_its_stage(
    found: dict[str, Any], stage: Stage, version: Version, tmp_path: Path
) -> None:
    with asking_a_seed(tmp_path, found) as asked:
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
            given = deployment(name, "--v=2", "--feature-gates=Other=true")
            told = asked.told(given)
            assert told == told_deployment(given, AWS, stage, version)
            assert (told == given) == (name == "kube-scheduler" and stage is Stage.NOT_USED)
            assert asked.review(MUTATE, name=name, namespace=NAMESPACE, object=told) == {
                "allowed": True
            }, "told twice it was changed again"


def test_what_is_not_ours_is_let_be(tmp_path: Path) -> None:
    other = cluster(shoot(provider={"type": "gcp"}))
    with asking_a_seed(tmp_path, other) as asked:
        given = deployment("kube-apiserver")
        assert asked.told(given) == given
        assert asked.told(given, namespace="elsewhere") == given
        assert asked.told(deployment("etcd")) == deployment("etcd")
        gone = {"operation": "DELETE", "oldObject": given}
        assert asked.review(MUTATE, name="kube-apiserver", namespace=NAMESPACE, **gone) == {
            "allowed": True
        }


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (cluster({}), "it embeds no shoot in spec.shoot"),
        (cluster(shoot("soon")), "spec.kubernetes.version is 'soon', not a version"),
    ],
)
def test_where_the_stage_cannot_be_told_the_answer_is_no(
    found: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with asking_a_seed(tmp_path, found) as asked:
        given = deployment("kube-apiserver")
        response = asked.review(MUTATE, name="kube-apiserver", namespace=NAMESPACE, object=given)
        assert not response["allowed"]
        assert response["status"]["code"] == 422
        assert said in response["status"]["message"]


def test_where_clusters_are_not_served_the_answer_is_no(tmp_path: Path) -> None:
    with served(tmp_path, "seed", []) as seed, asking(tmp_path, seed.kubeconfig) as asked:
        given = deployment("kube-apiserver")
        response = asked.review(MUTATE, name="kube-apiserver", namespace=NAMESPACE, object=given)
        assert not response["allowed"]
        assert "does not serve clusters" in response["status"]["message"]


def test_what_is_being_deleted_is_let_go(tmp_path: Path) -> None:
    with asking_a_seed(tmp_path, cluster(shoot("soon"))) as asked:
        given = deployment("kube-apiserver")
        given["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert asked.told(given) == given


def test_where_the_seed_does_not_answer_the_answer_is_no(tmp_path: Path) -> None:
    nobody = tmp_path / "nobody"
    config = {
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
    }
    nobody.write_text(yaml.safe_dump(config))
    with asking(tmp_path, nobody) as asked:
        given = deployment("kube-apiserver")
        response = asked.review(MUTATE, name="kube-apiserver", namespace=NAMESPACE, object=given)
        assert not response["allowed"]
        assert response["status"]["code"] == 500
        # Shoots are judged by themselves.
        assert asked.review(VALIDATE, object=shoot()) == {"allowed": True}


def pools(*versions: str, **more: Any) -> dict[str, Any]:
    workers = [{"name": "w", "kubernetes": {"version": it}} for it in versions]
    return shoot(provider={"type": "aws", "workers": workers}, **more)


def test_shoots(tmp_path: Path) -> None:
    bad = pools("1.18.0", "1.17.3", "odd")
    with asking_a_seed(tmp_path) as asked:
        assert asked.review(VALIDATE, operation="CREATE", object=pools("1.18.0")) == {
            "allowed": True
        }
        response = asked.review(VALIDATE, operation="CREATE", object=bad)
        assert not response["allowed"]
        status = response["status"]
        assert (status["code"], status["reason"]) == (422, "Invalid")
        assert [(it["reason"], it["field"]) for it in status["details"]["causes"]] == [
            ("FieldValueForbidden", "spec.provider.workers[1].kubernetes.version"),
            ("FieldValueInvalid", "spec.provider.workers[2].kubernetes.version"),
        ]
        assert (
            "spec.provider.workers[1].kubernetes.version: Forbidden: 1.17.3 is below 1.18"
            in (status["message"])
        )
        # What was so before is let be as long as no version changes, and then no longer.
        labelled = {**bad, "metadata": {**bad["metadata"], "labels": {"a": "b"}}}
        assert asked.review(VALIDATE, object=labelled, oldObject=bad) == {"allowed": True}
        newer = pools("1.18.0", "1.17.3", "odd", version="1.18.9")
        assert not asked.review(VALIDATE, object=newer, oldObject=bad)["allowed"]
        assert asked.review(VALIDATE, operation="DELETE", oldObject=bad) == {"allowed": True}


def pool(name: str, version: str) -> dict[str, Any]:
    return {"name": name, "kubernetes": {"version": version}}


def wrong(*workers: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A Shoot with these pools, of which old is wrong."""
    found = shoot(provider={"type": "aws", "workers": list(workers)})
    return {**found, "metadata": {**found["metadata"], **metadata}}


OLD, FINE = pool("old", "1.17.3"), pool("fine", "1.18.0")
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}


@pytest.mark.parametrize(
    ("changed", "passes"),
    [
        (wrong(OLD, FINE, annotations=CONFIRMED), True),
        (wrong(FINE, OLD), True),
        (wrong(OLD), True),
        (wrong(pool("more", "1.18.1"), OLD, FINE), True),
        (wrong(OLD, pool("fine", "1.17.3")), False),
        (wrong(pool("old", "1.17.2"), FINE), False),
        (wrong(OLD, FINE, pool("more", "1.17.3")), False),
        (wrong(OLD, FINE, annotations={OVERRIDE: "1.18"}), False),
        (wrong(OLD, FINE, annotations={OVERRIDE: "1.17"}), True),
        (wrong(pool("old", "1.17.2"), deletionTimestamp="2026-01-01T00:00:00Z"), True),
    ],
)
def test_a_shoot_that_was_wrong_before_may_change_in_all_else(
    changed: dict[str, Any], passes: bool, tmp_path: Path
) -> None:
    with asking_a_seed(tmp_path) as asked:
        response = asked.review(VALIDATE, object=changed, oldObject=wrong(OLD, FINE))
        assert response["allowed"] is passes, response


def test_an_annotation_that_was_wrong_before(tmp_path: Path) -> None:
    odd = wrong(FINE, annotations={OVERRIDE: "odd"})
    confirmed = wrong(FINE, annotations={OVERRIDE: "odd", **CONFIRMED})
    with asking_a_seed(tmp_path) as asked:
        assert asked.review(VALIDATE, object=confirmed, oldObject=odd)["allowed"]
        assert not asked.review(VALIDATE, object=odd, oldObject=wrong(FINE))["allowed"]


def test_what_is_no_review_is_refused(tmp_path: Path) -> None:
    with asking_a_seed(tmp_path) as asked:
        assert asked.client.get("/healthz").text == "ok"
        assert asked.client.get(MUTATE).status_code == 405
        for body, said in (
            (b"", "is no AdmissionReview"),
            (b"[" * 100_000, "is no AdmissionReview"),
            (b'{"apiVersion": "v1", "kind": "Pod", "request": {"uid": ""}}', "is v1 Pod"),
        ):
            answered = asked.client.post(VALIDATE, content=body)
            assert (answered.status_code, said in answered.text) == (400, True), answered.text
        assert asked.client.post(VALIDATE, content=b" " * (LARGEST + 1)).status_code == 413
        plain = str(asked.client.base_url).replace("https", "http")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{plain}/healthz", trust_env=False)


def test_a_certificate_is_renewed_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_module, "RENEWAL", 0.01)
    with asking_a_seed(tmp_path) as asked:
        (tmp_path / "tls.key").write_text("half of it")
        wait_until(lambda: any("cannot be used yet" in it for it in asked.notes), "a complaint")
        issue(tmp_path)
        wait_until(lambda: any("was renewed" in it for it in asked.notes), "the renewal")
        address = asked.client.base_url
        served_now = ssl.get_server_certificate((address.host, address.port or 0))
        assert served_now.strip() == (tmp_path / "tls.crt").read_text().strip()


def test_a_port_or_a_certificate_that_cannot_be_had(tmp_path: Path) -> None:
    issue(tmp_path)
    files = ("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
    with served(tmp_path, "config", []) as seed, open_port(0) as taken:
        # A process of its own, because a test may not bind a port with a number (tests/guard.py).
        command = ["operator", "--controllers", "gardener-webhook", "--provider", "aws"]
        command += ["--kubeconfig", str(seed.kubeconfig), *files]
        port = taken.getsockname()[1]
        code, _out, err = replant(*command, "--port", str(port))
        assert (code, f"port {port} of 127.0.0.1 cannot be opened" in err) == (1, True), err
        (tmp_path / "tls.key").write_text("nothing")
        code, _out, err = replant(*command, "--port", "0")
        assert (code, "tls.key cannot be used" in err) == (1, True), err


def test_the_command_wants_a_certificate() -> None:
    code, _out, err = replant("operator", "--controllers", "gardener-webhook", "--provider", "aws")
    assert code == 1
    assert "gardener-webhook needs --tls-cert and --tls-key" in err


def test_the_manifests_lead_to_the_paths_that_are_served() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "webhooks.yaml").read_text()))
    service, *configurations = documents
    found = {}
    for configuration in configurations:
        [webhook] = configuration["webhooks"]
        leads_to = webhook["clientConfig"]["service"]
        assert leads_to["name"] == service["metadata"]["name"]
        assert leads_to["namespace"] == service["metadata"]["namespace"]
        # Nobody's Shoot is to wait for a webhook of one provider.
        held = leads_to["path"] == MUTATE
        assert webhook["failurePolicy"] == ("Fail" if held else "Ignore")
        assert webhook["timeoutSeconds"] > WEBHOOK_TIMEOUT
        [rule] = webhook["rules"]
        assert set(rule["operations"]) == set(CHANGES)
        found[leads_to["path"]] = configuration["kind"], rule["resources"]
        # Gardener labels the namespaces of shoots in every seed; Shoots it labels only of late, and
        # a selector that nothing meets would let all of them pass.
        selectors = [webhook.get(it) for it in ("namespaceSelector", "objectSelector")]
        mutates = leads_to["path"] == MUTATE
        labels = {"matchLabels": {"shoot.gardener.cloud/provider": "aws"}}
        assert selectors == [labels if mutates else None, None]
    assert found == {
        MUTATE: ("MutatingWebhookConfiguration", ["deployments"]),
        VALIDATE: ("ValidatingWebhookConfiguration", ["shoots"]),
    }
