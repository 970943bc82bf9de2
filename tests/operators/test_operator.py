"""The operator as it runs: kopf watches a seed, many shoots at a time, and then it is quiet."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from replant.cli.documents import Document
from replant.cluster.live import connect
from replant.errors import Final
from replant.gardener.shoots import FINISHED, NEEDS_COMPLETE
from replant.operator import shoot_access, telling, watching
from replant.operator.run import Running, Where, migration
from replant.sandbox.server import Sandbox, open_port, serving, write_kubeconfig
from tests.cli.shell import replant
from tests.gardener.objects import AWS, LISTED, cluster, shoot
from tests.operators.seeds import (
    CLUSTER_PATH,
    SCENARIO,
    Audit,
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
from tests.operators.test_gardener_seed import kubeconfig
from tests.waiting import wait_until, wait_until_async

BOTH = {it.rpartition("/")[2] for it in (NEEDS_COMPLETE, FINISHED)}
PAUSE = 0.1
"""Seconds after which a shoot that has failed is tried again."""
QUIET = 0.5
"""Seconds in which nothing may be written by who has nothing to do.

What would be written is written at once: on an event of kopf's, or after a pause.
"""
QUIET_IN_REAL_TIME = pytest.mark.wall_clock("for a while nothing may be written over HTTP")

PATIENCE = 100
STOPPING = 30
MANY = 200
WAVE_AT_ONCE = 8
WRITES_A_SHOOT = 5
"""Two annotations, and three Deployments between them."""


def run(
    seed: Served,
    true: Callable[[], bool],
    *,
    places: int = 4,
    quiet: float = QUIET,
    retries: int = 0,
    patience: float = PATIENCE,
) -> list[str]:
    """Run it until something is true, and on for a while; what it has said.

    On means for some seconds, and until so many more shoots were to be tried again.
    """
    notes: list[str] = []

    async def main() -> None:
        running = Running()
        operator = asyncio.ensure_future(
            migration(
                Where(str(seed.kubeconfig)),
                LISTED,
                concurrency=places,
                note=notes.append,
                pause=lambda _tries: PAUSE,
            )(running)
        )

        async def until(so: Callable[[], bool]) -> None:
            # For one that has ended people would wait in vain; why it has is raised below.
            await wait_until_async(
                lambda: operator.done() or so(), lambda: f"the operator; it said {notes}", patience
            )
            assert not operator.done()

        try:
            await until(true)
            seed.audit.clear()
            enough = tried_again(notes) + retries
            await until(lambda: tried_again(notes) >= enough)
            await asyncio.sleep(quiet)
            assert not operator.done()
        finally:
            running.stop.set()
            await asyncio.wait_for(operator, STOPPING)

    asyncio.run(main())
    return notes


def tried_again(notes: list[str]) -> int:
    return sum("trying again" in it for it in notes)


def names(count: int) -> list[str]:
    return [f"shoot--dev--{number}" for number in range(count)]


def finished(seed: Served) -> int:
    resource = seed.sandbox.registry.of_kind("extensions.gardener.cloud/v1alpha1", "Cluster")
    assert resource
    found = [it["metadata"].get("annotations") or {} for it in seed.sandbox.store.list(resource)]
    return sum(FINISHED in it for it in found)


def test_shoots_are_migrated_and_those_that_hang_hold_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_shoot = [node("n", "v1.18.0"), storage_class("foo", "bar")]
    with open_port(0) as dead, served(tmp_path, "shoot", in_shoot) as its_shoot:
        server = f"http://127.0.0.1:{dead.getsockname()[1]}"

        def connect_soon(config: dict[str, Any], **more: Any) -> Any:
            """Give up soon on what hangs, and not on what is only slow because the machine is."""
            hangs = config["clusters"][0]["cluster"]["server"] == server
            return connect(config, **{**more, **({"timeout": 0.1} if hangs else {})})

        monkeypatch.setattr(shoot_access, "connect", connect_soon)
        # An Event is repeated every half hour, and one may end while this runs.
        monkeypatch.setattr(telling, "AGAIN", 10**12)
        hanging = kubeconfig(clusters=[{"name": "c", "cluster": {"server": server}}])
        well = its_shoot.kubeconfig.read_text()
        objects: list[dict[str, Any]] = list(definitions())
        for number, name in enumerate(names(8)):
            text = hanging if number < 4 else well
            objects += [*control_plane(name), secret(text, namespace=name)]
            objects.append(stored(cluster(name=name)))
        with served(tmp_path, "seed", objects) as seed:
            notes = run(
                seed,
                lambda: finished(seed) == 4 and len(seed.events()) == 4,
                places=2,
                quiet=0,
                retries=8,
            )
            assert [it[:2] for it in seed.events()] == [(it, "Unreachable") for it in names(4)]
            assert [seed.annotations(it) for it in names(8)] == [set()] * 4 + [BOTH] * 4
            # Those that hang were tried again meanwhile, and that was told only once.
            assert seed.audit.writes == []
            assert all(any(f"{it}:" in note for note in notes) for it in names(4))


@QUIET_IN_REAL_TIME
def test_what_changes_is_heard_of(tmp_path: Path) -> None:
    name = names(1)[0]
    asleep = stored(cluster(shoot("1.17.3"), name=name))
    with served(tmp_path, "seed", [*definitions(), asleep]) as seed:

        def wake() -> bool:
            if not seed.audit.reads.count(CLUSTER_PATH):
                return False
            if not seed.annotations(name):
                body = {"spec": {"shoot": {"spec": {"kubernetes": {"version": "1.18.0"}}}}}
                httpx.patch(
                    f"{seed.address}{CLUSTER_PATH}/{name}",
                    content=json.dumps(body),
                    headers={"Content-Type": "application/merge-patch+json"},
                ).raise_for_status()
            return seed.annotations(name) == BOTH

        run(seed, wake)
        assert seed.audit.writes == []


@QUIET_IN_REAL_TIME
def test_a_wave_of_forty_migrations_is_bounded(tmp_path: Path) -> None:
    writes, most = wave(tmp_path, 40)
    assert writes == 40 * WRITES_A_SHOOT
    assert 4 <= most <= WAVE_AT_ONCE + 3


def wave(folder: Path, count: int, patience: float = PATIENCE) -> tuple[int, int]:
    """Take so many shoots all the way that are not new, each with all that is read and written.

    How many writes that took, and how many requests were under way at once.
    """
    with served(folder, "shoot", [node("n", "v1.18.0")]) as its_shoot:
        text = its_shoot.kubeconfig.read_text()
        objects: list[dict[str, Any]] = list(definitions())
        for name in names(count):
            objects += [*control_plane(name), secret(text, namespace=name)]
            objects.append(stored(cluster(name=name)))
        with served(folder, "seed", objects) as seed:
            most, writes = 0, 0

            def done() -> bool:
                nonlocal most, writes
                most, writes = max(most, seed.audit.most), len(seed.audit.changes())
                # To look at all shoots is more work than a migration; writes are counted anyway.
                return writes >= count * WRITES_A_SHOOT and finished(seed) == count

            seed.audit.delay = 0.01
            run(seed, done, places=WAVE_AT_ONCE, patience=patience)
            assert [seed.annotations(it) for it in names(count)] == [BOTH] * count
            assert seed.audit.writes == []
            return writes, most


@QUIET_IN_REAL_TIME
def test_many_new_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wave is bounded; then, and for who comes later, there is nothing to write.

    As with a thousand clusters, they come on two pages.
    """
    monkeypatch.setattr(watching, "PAGE", MANY // 2)
    many = [stored(cluster(name=name)) for name in names(MANY)]
    with served(tmp_path, "seed", [*definitions(), *many]) as seed:
        most = 0

        def done() -> bool:
            nonlocal most
            most = max(most, seed.audit.most)
            return len(seed.audit.writes) >= MANY

        seed.audit.delay = 0.01
        run(seed, done, places=8)
        assert finished(seed) == MANY
        assert 4 <= most <= 8 + 3, (
            "besides those at work kopf itself asks, and who looks whether it is"
        )
        assert seed.audit.writes == []
        # One page to see what is served, two with all clusters, and the watch that follows them.
        run(seed, lambda: seed.audit.reads.count(CLUSTER_PATH) >= 4)
        assert seed.audit.writes == []


def test_what_is_no_seed_is_said(tmp_path: Path) -> None:
    with (
        served(tmp_path, "seed", []) as seed,
        pytest.raises(Final, match="is this a seed of Gardener"),
    ):
        run(seed, lambda: True, quiet=0)


def test_the_command_runs_until_it_is_stopped(tmp_path: Path) -> None:
    """With a minor and a class of one's own, instead of the table's."""
    new = stored(cluster(shoot("1.19.0"), name="shoot--dev--new"))
    early = stored(cluster(shoot("1.18.9"), name="shoot--dev--early"))
    rolled = stored(cluster(shoot("1.19.4"), name="shoot--dev--rolled"))
    classes = [storage_class(it, "kubernetes.io/aws-ebs") for it in ("fast", "gp2")]
    in_shoot = [node("n", "v1.19.4"), *classes]
    with served(tmp_path, "shoot", in_shoot) as its_shoot:
        kept = secret(its_shoot.kubeconfig.read_text(), namespace="shoot--dev--rolled")
        objects = [*definitions(), *control_plane("shoot--dev--rolled"), kept, new, early, rolled]
        with served(tmp_path, "seed", objects) as seed:
            _is_run(seed)
            assert seed.annotations("shoot--dev--rolled") == BOTH
            assert seed.annotations("shoot--dev--early") == set()
            assert its_shoot.classes() == {"gp2"}


def _is_run(seed: Served) -> None:
    command = [sys.executable, "-m", "replant", "operator", "--provider", "aws"]
    command += ["--migration-version", "1.19", "--legacy-class", "fast=kubernetes.io/aws-ebs"]
    command += ["--controllers", "gardener-csi-migration", "--kubeconfig", str(seed.kubeconfig)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as operator:
        try:
            wait_until(lambda: finished(seed) == 2 or operator.poll() is not None, "two shoots")
            operator.terminate()
            _, said = operator.communicate(timeout=30)
        finally:
            operator.kill()  # whatever else fails, nobody waits for it
    assert operator.returncode == 0, said
    assert "the shoot is new: set needs-complete-feature-gates and controller-finished" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--provider", "ibm"], "'ibm' is not one of"),
        (["--provider", "aws", "--migration-version", "x"], "'x' is not a Kubernetes version"),
        (["--provider", "aws", "--legacy-class", "gp2"], "'gp2' is not NAME=PROVISIONER"),
        (["--provider", "aws", "--concurrency", "0"], "0 is not in the range"),
        ([], "controllers of Gardener need --provider"),
        (["--provider", "aws", "--namespace", "n"], "belong together"),
    ],
)
def test_mistakes_are_named(arguments: list[str], said: str) -> None:
    code, _out, err = replant("operator", "--controllers", "gardener-csi-migration", *arguments)
    assert code == 1
    assert said in err


@pytest.mark.workflow("operator")
def test_the_shoot_of_the_scenario_waits_for_its_nodes(tmp_path: Path) -> None:
    """The scenario that ships: a seed that is its own shoot, three of whose nodes are old."""
    sandbox = Sandbox.of(Document.read(str(SCENARIO), 1).scenario(), by_hand=True)
    seed = Served(sandbox, tmp_path / "seed", "", Audit())
    with open_port(0) as listening:
        write_kubeconfig(seed.kubeconfig, listening.getsockname()[1])
        sandbox.load([secret(seed.kubeconfig.read_text())])
        with serving(sandbox, listening) as address:
            assert attend(seed, provider=AWS) == 60
            assert seed.annotations() == set()
            for number in range(3):
                httpx.delete(f"{address}/api/v1/nodes/waiting-{number}").raise_for_status()
            assert attend(seed, provider=AWS) is None
            assert seed.annotations() == BOTH
            assert seed.classes() == set()
