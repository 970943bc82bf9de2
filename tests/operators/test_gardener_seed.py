"""The flow on a seed and a shoot: exactly which writes there are, and how it goes on if broken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kr8s._auth import KubeAuth

from replant.cluster.live import connect
from replant.errors import InputError, Missing, NotServed, ReplantError, Unreachable
from replant.gardener.shoots import FINISHED, NEEDS_COMPLETE
from replant.operator import shoot_access
from replant.operator.gardener_seed import ClassCameBack
from replant.operator.shoot_access import BadKubeconfig, NoKubeconfig, usable
from tests.gardener.objects import NAMESPACE, cluster, shoot
from tests.operators.seeds import (
    CLUSTER_PATH,
    Served,
    attend,
    control_plane,
    definitions,
    node,
    secret,
    served,
    storage_class,
    stored,
)

CLUSTER = f"{CLUSTER_PATH}/{NAMESPACE}"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
NUDGES: list[tuple[str, str, Any]] = [
    ("PATCH", f"{DEPLOYMENTS}/{it}", {})
    for it in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
]
NEW = node("n", "v1.18.0")
FOO = storage_class("foo", "bar")


@contextlib.contextmanager
def standing(
    tmp_path: Path,
    found: dict[str, Any] | None,
    *,
    new: bool = False,
    in_shoot: tuple[dict[str, Any], ...] = (NEW, FOO),
    called: str = "gardener-internal",
) -> Iterator[tuple[Served, Served]]:
    """A seed with one Cluster, and its shoot."""
    with served(tmp_path, "shoot", in_shoot) as its_shoot:
        objects = [*definitions(), secret(its_shoot.kubeconfig.read_text(), called)]
        objects += [] if new else control_plane()
        objects += [stored(found)] if found else []
        with served(tmp_path, "seed", objects) as seed:
            yield seed, its_shoot


def annotated(writes: list[tuple[str, str, Any]], *names: str) -> bool:
    """Whether there is one update that sets these, of the Cluster as it was seen."""
    found = [it for it in writes if it[1] == CLUSTER and set(_set(it)) == set(names)]
    return len(found) == 1 and bool(found[0][2]["metadata"]["resourceVersion"])


def _set(write: tuple[str, str, Any]) -> dict[str, str]:
    names: dict[str, str] = write[2]["metadata"]["annotations"]
    return names


def test_an_existing_shoot_is_taken_all_the_way(tmp_path: Path) -> None:
    with standing(tmp_path, cluster()) as (seed, its_shoot):
        uid = its_shoot.get("StorageClass", "foo", api="storage.k8s.io/v1")["metadata"]["uid"]
        assert attend(seed) is None
        [(method, path, body)] = its_shoot.audit.writes
        assert (method, path) == ("DELETE", "/apis/storage.k8s.io/v1/storageclasses/foo")
        assert body["preconditions"]["uid"] == uid
        assert body["preconditions"]["resourceVersion"]
        first, *nudges, last = seed.audit.writes
        assert annotated([first], NEEDS_COMPLETE)
        assert nudges == NUDGES
        assert annotated([last], FINISHED)
        assert its_shoot.classes() == set()
        seed.audit.clear()
        assert attend(seed) is None
        assert seed.audit.writes == []


def test_needs_complete_is_set(tmp_path: Path) -> None:
    with standing(tmp_path, cluster(None, NEEDS_COMPLETE)) as (seed, its_shoot):
        assert attend(seed) is None
        assert seed.audit.writes[:-1] == NUDGES
        assert annotated(seed.audit.writes[-1:], FINISHED)
        assert not (its_shoot.audit.writes)
        assert not (its_shoot.audit.reads)


def test_a_new_shoot_takes_one_update(tmp_path: Path) -> None:
    with standing(tmp_path, cluster(), new=True) as (seed, its_shoot):
        assert attend(seed) is None
        assert len(seed.audit.writes) == 1
        assert annotated(seed.audit.writes, NEEDS_COMPLETE, FINISHED)
        assert not (its_shoot.audit.writes)
        assert not (its_shoot.audit.reads)


def test_no_shoot_is_new_where_control_planes_are_not_served(tmp_path: Path) -> None:
    """They may be there: nobody can tell. Told to be complete, old nodes would lose volumes."""
    kinds = [it for it in definitions() if it["spec"]["names"]["kind"] != "ControlPlane"]
    with served(tmp_path, "seed", [*kinds, stored(cluster())]) as seed:
        with pytest.raises(NotServed, match="does not serve controlplanes"):
            attend(seed)
        assert seed.annotations() == set()
        assert seed.audit.changes() == []
        assert [it[1] for it in seed.events()] == ["NotServed"]


@pytest.mark.parametrize(
    ("found", "again"),
    [
        (cluster(shoot("1.17.1")), None),
        (cluster(shoot(hibernation={"enabled": True})), 300),
        (cluster(None, FINISHED), None),
        (None, None),
    ],
)
def test_nothing_is_written(
    found: dict[str, Any] | None, again: float | None, tmp_path: Path
) -> None:
    with standing(tmp_path, found) as (seed, its_shoot):
        assert attend(seed) == again
        assert not (seed.audit.writes)
        assert not (its_shoot.audit.writes)
        assert not (its_shoot.audit.reads)


def test_an_old_node_is_waited_for(tmp_path: Path) -> None:
    notes: list[str] = []
    with standing(tmp_path, cluster(), in_shoot=(NEW, node("o", "v1.17.0"), FOO)) as (seed, other):
        assert attend(seed, notes=notes) == 60
        assert seed.audit.writes == other.audit.writes == []
    assert notes == [f"Cluster {NAMESPACE}: 1 kubelet (o) below 1.18; looking again within 60 s"]


def test_a_class_of_another_provisioner_stays(tmp_path: Path) -> None:
    with standing(tmp_path, cluster(), in_shoot=(NEW, storage_class("foo", "else"))) as (seed, it):
        assert attend(seed) is None
        assert it.classes() == {"foo"}
        assert it.audit.writes == []
        assert seed.annotations() >= {NEEDS_COMPLETE.rpartition("/")[2]}


def test_a_version_of_its_own(tmp_path: Path) -> None:
    early = cluster(shoot("1.17.9", override="1.17"))
    with standing(tmp_path, early, in_shoot=(node("n", "1.17.9"), FOO)) as (seed, its_shoot):
        assert attend(seed) is None
        assert seed.annotations() == {it.rpartition("/")[2] for it in (NEEDS_COMPLETE, FINISHED)}
        assert its_shoot.classes() == set()


def test_the_other_secret_will_do(tmp_path: Path) -> None:
    with standing(tmp_path, cluster(), called="gardener") as (seed, its_shoot):
        assert attend(seed) is None
        assert its_shoot.classes() == set()


def test_of_two_secrets_the_inner_one_leads_there(tmp_path: Path) -> None:
    with standing(tmp_path, cluster()) as (seed, its_shoot):
        elsewhere = secret(kubeconfig(), "gardener")
        resource = seed.sandbox.registry.of_kind("v1", "Secret")
        assert resource
        seed.sandbox.store.create(resource, elsewhere)
        assert attend(seed) is None
        assert its_shoot.classes() == set()


def test_a_kubeconfig_that_points_nowhere_is_told_of(tmp_path: Path) -> None:
    objects = [*definitions(), *control_plane(), stored(cluster()), secret(kubeconfig())]
    with served(tmp_path, "seed", objects) as seed:
        with pytest.raises(Unreachable):
            attend(seed)
        assert [it[:2] for it in seed.events()] == [(NAMESPACE, "Unreachable")]
        assert seed.audit.changes() == []


WRITES = 6


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("number", range(WRITES))
def test_broken_off_at_any_write_it_comes_to_the_same_end(
    number: int, how: str, tmp_path: Path
) -> None:
    """Whoever goes on is a new process; the answer to the write that it broke off at was lost."""
    with standing(tmp_path, cluster()) as (seed, its_shoot):
        begun = 0

        def fail(_number: int) -> str:
            nonlocal begun
            begun += 1
            return how if begun == number + 1 else ""

        seed.audit.fail = its_shoot.audit.fail = fail
        with pytest.raises(ReplantError):
            attend(seed)
        assert begun == number + 1
        assert attend(seed) is None
        assert seed.annotations() == {it.rpartition("/")[2] for it in (NEEDS_COMPLETE, FINISHED)}
        assert its_shoot.classes() == set()
        since = [it for it in seed.audit.writes if it[1] != CLUSTER]
        assert since[-3:] == NUDGES
        # However it went, the Deployments were nudged only once the gates were asked for.
        order = [it[1] for it in seed.audit.writes]
        assert order.index(CLUSTER) < order.index(NUDGES[0][1])
        assert begun >= WRITES


def test_a_cluster_that_changes_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    with standing(tmp_path, cluster()) as (seed, its_shoot):

        def change(_number: int) -> str:
            registered = seed.sandbox.registry.of_kind(
                "extensions.gardener.cloud/v1alpha1", "Cluster"
            )
            assert registered
            found = seed.sandbox.store.get(registered, NAMESPACE)
            found["spec"]["shoot"]["spec"]["hibernation"] = {"enabled": True}
            seed.sandbox.store.update(registered, found)
            return ""

        its_shoot.audit.fail = change
        with pytest.raises(ReplantError, match="409"):
            attend(seed)
        assert seed.annotations() == set()
        assert attend(seed) == 300


def test_a_class_that_somebody_makes_again_is_not_fought_over(tmp_path: Path) -> None:
    with standing(tmp_path, cluster()) as (seed, its_shoot):
        api = _AnotherMaker(its_shoot)
        its_shoot.audit.fail = api.seen
        with pytest.raises(ClassCameBack, match="StorageClass foo of bar was deleted and is there"):
            attend(seed)
        assert len(its_shoot.audit.writes) == 1
        assert [it[1] for it in seed.events()] == ["LegacyClassCameBack"]
        assert seed.annotations() == set()


class _AnotherMaker:
    """Makes a class again, under the same name, once it is deleted."""

    def __init__(self, its_shoot: Served) -> None:
        self._sandbox = its_shoot.sandbox
        self._resource = self._sandbox.registry.of_kind("storage.k8s.io/v1", "StorageClass")
        self._sandbox.store.subscribe(self._on_event)

    def seen(self, _number: int) -> str:
        return ""

    def _on_event(self, event: Any) -> None:
        if event.type == "DELETED" and event.entry.name == "foo":
            assert self._resource
            self._sandbox.store.create(self._resource, FOO)


def test_a_deployment_that_is_missing_is_told_of_once(tmp_path: Path) -> None:
    with standing(tmp_path, cluster(None, NEEDS_COMPLETE), new=True) as (seed, _its_shoot):
        for _each in range(2):
            with pytest.raises(Missing):
                attend(seed)
        [(about, reason, message)] = seed.events()
        assert (about, reason) == (NAMESPACE, "Missing")
        assert "kube-apiserver" in message
        assert seed.annotations() == {NEEDS_COMPLETE.rpartition("/")[2]}


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (cluster({}), "NoShoot"),
        (cluster(shoot("soon")), "BadVersion"),
        (cluster(shoot(override="later")), "BadVersion"),
    ],
)
def test_bad_input_is_told_of_once(found: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with standing(tmp_path, found) as (seed, _its_shoot):
        assert attend(seed) == 300
        assert attend(seed) == 300
        assert [it[1] for it in seed.events()] == [reason]
        assert seed.audit.changes() == []


KEY = "LS0tVEhJUy1JUy1BLUtFWS0tLQ=="


def kubeconfig(**more: Any) -> str:
    config: dict[str, Any] = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {"token": KEY}}],
        **more,
    }
    return yaml.safe_dump(config)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (f"a: b: {KEY}", "is not YAML"),
        (f"'{KEY}", "is not YAML"),
        (f"- {KEY}", "is not an object"),
        (f"token: {KEY}", "has no users"),
        (kubeconfig(clusters=KEY), "has no clusters"),
        (kubeconfig(contexts=[]), "does not name a server"),
        (kubeconfig(contexts=None), "has no contexts"),
        (kubeconfig(contexts=5), "has no contexts"),
        (kubeconfig(contexts=[5]), "has an entry without a name in contexts"),
        (kubeconfig(clusters=[{"name": [KEY]}]), "has an entry without a name in clusters"),
        (kubeconfig(users=[{"name": {"a": KEY}}]), "has an entry without a name in users"),
        (kubeconfig(**{"current-context": ["c"]}), "does not name a server"),
        (
            kubeconfig(contexts=[{"name": "c", "context": {"cluster": ["c"], "user": "u"}}]),
            "does not name a server",
        ),
        (kubeconfig(clusters=[{"name": "c", "cluster": {"server": 5}}]), "does not name a server"),
        (
            kubeconfig(contexts=[{"name": "c", "context": {"cluster": "c", "user": ["u"]}}]),
            "cannot be used",
        ),
        (
            kubeconfig(contexts=[{"name": "c", "context": {"cluster": "", "user": "u"}}]),
            "does not name a server",
        ),
        (kubeconfig(clusters=[{"name": "c", "cluster": {"x": KEY}}]), "does not name a server"),
        (kubeconfig(users=[{"name": "other", "user": {"token": KEY}}]), "cannot be used"),
        (kubeconfig(users=[{"name": "u", "user": {"exec": {"command": KEY}}}]), "users: exec"),
        (kubeconfig(users=[{"name": "u", "user": {"tokenFile": KEY}}]), "users: tokenFile"),
        (kubeconfig(users=[{"name": "u", "user": {"client-key": KEY}}]), "users: client-key"),
        (
            kubeconfig(clusters=[{"name": "c", "cluster": {"certificate-authority": KEY}}]),
            "clusters: certificate-authority",
        ),
        (
            kubeconfig(
                users=[{"name": "u", "user": {"client-key-data": KEY,
                                              "client-certificate-data": KEY}}]
            ),
            "cannot be used",
        ),
    ],
)  # fmt: skip
def test_a_broken_kubeconfig_is_told_of_without_its_secrets(
    text: str, said: str, tmp_path: Path
) -> None:
    notes: list[str] = []
    objects = [*definitions(), *control_plane(), stored(cluster()), secret(text)]
    with served(tmp_path, "seed", objects) as seed:
        with pytest.raises(BadKubeconfig) as error:
            attend(seed, notes=notes)
        [(about, reason, message)] = seed.events()
        assert (about, reason) == (NAMESPACE, "BadKubeconfig")
        assert said in message
        assert message == str(error.value)
        assert KEY not in repr((notes, message, error.value.__cause__))
        assert seed.audit.changes() == []


def test_a_secret_that_is_not_base64() -> None:
    """No API server keeps one; what stands in front of it may answer anything."""

    class Garbling:
        async def get(self, *_asked: object, **_where: object) -> bytes:
            return b'{"data": {"kubeconfig": "%%%"}}'

    garbling: Any = Garbling()
    with pytest.raises(BadKubeconfig, match="is not base64"):
        asyncio.run(shoot_access.kubeconfig_of(garbling, NAMESPACE))


def test_no_kubeconfig_is_told_of(tmp_path: Path) -> None:
    objects = [*definitions(), *control_plane(), stored(cluster())]
    with served(tmp_path, "seed", objects) as seed:
        with pytest.raises(NoKubeconfig):
            attend(seed)
        assert [it[1:] for it in seed.events()] == [
            (
                "NoKubeconfig",
                f"there is neither a Secret gardener-internal nor gardener in {NAMESPACE}",
            )
        ]


def test_a_shoot_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connections are taken, and nothing is ever said."""
    from replant.sandbox.server import open_port

    monkeypatch.setattr(shoot_access, "TIMEOUT", 0.2)
    with open_port(0) as listening:
        server = f"http://127.0.0.1:{listening.getsockname()[1]}"
        text = kubeconfig(clusters=[{"name": "c", "cluster": {"server": server}}])
        objects = [*definitions(), *control_plane(), stored(cluster()), secret(text)]
        with served(tmp_path, "seed", objects) as seed:
            with pytest.raises(Unreachable, match=r"no answer within 0.2 s"):
                attend(seed)
            assert [it[1] for it in seed.events()] == ["Unreachable"]
            assert seed.audit.changes() == []


def test_what_a_kubeconfig_may_say() -> None:
    assert usable(kubeconfig().encode())["current-context"] == "c"


def test_a_kubeconfig_that_names_no_cluster_does_not_lead_to_our_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it would in a pod, whose service account is looked for where nothing else is named."""
    asked: list[str] = []

    async def load(auth: KubeAuth) -> None:
        asked.append("the service account")
        auth.server = "https://seed"

    monkeypatch.setattr(KubeAuth, "_load_service_account", load)
    nowhere = yaml.safe_load(
        kubeconfig(contexts=[{"name": "c", "context": {"cluster": "", "user": "u"}}])
    )

    async def main() -> None:
        async with connect(nowhere):
            raise AssertionError(asked)

    with pytest.raises(InputError, match="names no cluster"):
        asyncio.run(main())


def test_credentials_for_another_client(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_text(kubeconfig())

    async def main() -> Any:
        async with connect(str(path)) as reader:
            return reader.connection.credentials()

    found = asyncio.run(main())
    assert (found.server, found.token) == ("http://127.0.0.1:9", KEY)
    assert KEY not in repr(found)
