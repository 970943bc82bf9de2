"""From a seed of Gardener to its shoots: how far all are, and a plan for one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from replant.cluster.live import connect
from replant.gardener.shoots import FINISHED, NEEDS_COMPLETE
from replant.gardener.standing import ShootStanding
from replant.operator import shoot_access
from replant.operator.survey import survey
from replant.plan.model import NodeMethod, Plan, RollNodes
from tests.cli.shell import replant
from tests.execute.living import shoot_of, small
from tests.gardener.objects import NAMESPACE, cluster, deployment, shoot
from tests.operators.seeds import (
    Served,
    control_plane,
    definitions,
    node,
    secret,
    served,
    storage_class,
    stored,
)

FAILED = {**shoot(), "status": {"lastOperation": {"state": "Failed"}}}
GP2 = storage_class("gp2", "kubernetes.io/aws-ebs")


def config(seed: Served) -> tuple[str, ...]:
    return ("--kubeconfig", str(seed.kubeconfig))


@contextlib.contextmanager
def seed_of(
    folder: Path, clusters: list[dict[str, Any]], kubeconfigs: dict[str, str]
) -> Iterator[Served]:
    objects: list[dict[str, Any]] = list(definitions())
    for found in clusters:
        name = found["metadata"]["name"]
        objects.append(stored(found))
        if name != "new":
            objects += control_plane(name)
        if name in kubeconfigs:
            objects.append(secret(kubeconfigs[name], namespace=name))
    with served(folder, "seed", objects) as seed:
        yield seed


def test_how_far_all_shoots_of_a_seed_are(tmp_path: Path) -> None:
    clusters = [
        cluster(shoot("1.17.4"), name="early"),
        cluster(shoot("1.18.9"), name="rolling"),
        cluster(shoot("1.18.9"), name="rolled"),
        cluster(shoot("1.18.9"), name="new"),
        cluster(shoot("1.18.9", hibernation={"enabled": True}), name="asleep"),
        cluster(None, NEEDS_COMPLETE, name="told"),
        cluster(None, NEEDS_COMPLETE, FINISHED, name="finished"),
        cluster(shoot("1.20.1"), name="later"),
        cluster(FAILED, name="failed"),
        cluster(shoot(provider={"type": "metal"}), name="metal"),
        cluster(shoot("soon"), name="odd"),
        cluster({}, name="bare"),
        cluster(name="lost"),
    ]
    with (
        served(tmp_path, "old", [node("o", "v1.17.4"), node("n", "v1.18.9")]) as rolling,
        served(tmp_path, "rolled", [node("n", "v1.18.9"), GP2]) as rolled,
        seed_of(
            tmp_path,
            clusters,
            {"rolling": rolling.kubeconfig.read_text(), "rolled": rolled.kubeconfig.read_text()},
        ) as seed,
    ):
        code, out, err = replant("status", "--shoots", *config(seed), "-o", "json")
        assert (code, err) == (1, "error: 1 of 13 shoots could not be read\n")
        _, told, _ = replant("status", "--shoots", *config(seed))
        _, dumped, _ = replant("status", "--shoots", *config(seed), "-o", "yaml")
        for cluster_served in (seed, rolling, rolled):
            assert cluster_served.audit.writes == []
    found = {it["cluster"]: (it["state"], it["waitsFor"]) for it in json.loads(out)["shoots"]}
    assert found == {
        "early": ("not due", "1.17.4 is before 1.18"),
        "rolling": ("under way", "1 kubelet (o) below 1.18"),
        "rolled": ("under way", "the operator to delete the StorageClass gp2"),
        "new": (
            "under way",
            "the operator to set needs-complete-feature-gates and controller-finished",
        ),
        "asleep": ("under way", "the shoot is hibernated; it goes on when it is woken"),
        "told": ("completing", "the operator to have kube-apiserver looked at"),
        "finished": ("finished", ""),
        "later": ("past", "1.20.1 is not of the minor 1.18, with which it migrates"),
        "failed": (
            "left alone",
            "the shoot's last operation has failed; it is looked at when that changes",
        ),
        "metal": ("left alone", "its provider is none that is known here"),
        "odd": (
            "stuck",
            (
                "Shoot garden-dev/crazy: spec.kubernetes.version is 'soon', not a version such as "
                "1.18 or v1.18.20"
            ),
        ),
        "bare": ("stuck", "spec.shoot embeds no Shoot: whose cluster it is is not known"),
        "lost": ("stuck", "there is neither a Secret gardener-internal nor gardener in lost"),
    }
    assert yaml.safe_load(dumped) == json.loads(out)
    heading, first, *_, empty, last = told.splitlines()
    assert heading.split() == ["CLUSTER", "SHOOT", "PROVIDER", "VERSION", "STATE", "WAITS", "FOR"]
    assert first.split()[:4] == ["asleep", "garden-dev/crazy", "aws", "1.18.9"]
    assert not empty
    assert last == (
        "13 shoots: 1 not due, 4 under way, 1 completing, 1 finished, 1 past, 3 stuck, 2 left alone"
    )


def test_shoots_are_judged_as_an_operator_that_was_told_otherwise_would(tmp_path: Path) -> None:
    own_class = storage_class("fast", "kubernetes.io/aws-ebs")
    openstack = {"type": "openstack"}
    clusters = [
        cluster(shoot("1.18.9"), name="early"),
        cluster(shoot("1.20.2"), name="rolled"),
        cluster(shoot("1.18.9", provider=openstack), name="other"),
    ]
    with (
        served(tmp_path, "rolled", [node("n", "v1.20.2"), GP2, own_class]) as rolled,
        seed_of(tmp_path, clusters, {"rolled": rolled.kubeconfig.read_text()}) as seed,
    ):
        aws = ("--provider", "aws")
        told = ("--migration-version", "1.20", "--legacy-class", "fast=kubernetes.io/aws-ebs")
        _, out, _ = replant("status", "--shoots", *aws, *told, *config(seed), "-o", "json")
        for option in (aws, told[:2], told[2:]):
            code, _, err = replant("status", "--shoots", *option, *config(seed))
            assert (code, "give both" in err) == (1, True), err
    assert {it["cluster"]: it["waitsFor"] for it in json.loads(out)["shoots"]} == {
        "early": "1.18.9 is before 1.20",
        "other": "1.18.9 is before 1.19",
        "rolled": "the operator to delete the StorageClass fast",
    }
    for option in (aws, told[:2], told[2:]):
        code, _, err = replant("status", *option)
        assert (code, "need --shoots" in err) == (1, True), err


def test_a_seed_without_shoots_and_what_is_none(tmp_path: Path) -> None:
    with seed_of(tmp_path, [], {}) as seed:
        code, out, _ = replant("status", "--shoots", *config(seed))
        assert (code, out.splitlines()[-1]) == (0, "0 shoots")
        for option in (
            ("--nodes",), ("--plugin", "aws-ebs"), ("-f", "x"), ("--recursive",),
            ("--journal", "x"), ("--server-version", "1.24"), ("--max-size", "1"),
        ):  # fmt: skip
            code, _, err = replant("status", "--shoots", *option, *config(seed))
            assert (code, "--shoots does not go with --" in err) == (1, True), err
    with served(tmp_path, "other", []) as other:
        code, _, err = replant("status", "--shoots", *config(other))
        assert (code, "is this a seed of Gardener?" in err) == (1, True)


def test_one_that_is_odd_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def usable(_text: bytes) -> dict[str, Any]:
        raise ZeroDivisionError("a mistake of ours, with a key in it")

    monkeypatch.setattr(shoot_access, "usable", usable)
    clusters = [cluster(name="odd"), cluster(None, FINISHED, name="finished")]

    async def look(seed: Served) -> list[ShootStanding]:
        async with connect(str(seed.kubeconfig), tries=1) as reader:
            return await survey(reader)

    with seed_of(tmp_path, clusters, {"odd": "x"}) as seed:
        found = {it.cluster: (it.state, it.waits_for, it.unread) for it in asyncio.run(look(seed))}
    assert found == {
        "finished": ("finished", "", False),
        "odd": ("stuck", "looking failed with ZeroDivisionError", True),
    }


@contextlib.contextmanager
def migrating(folder: Path, switched: str = "true") -> Iterator[tuple[Served, Path]]:
    """A seed, and a shoot with volumes whose nodes are not switched, but its control plane is."""
    with shoot_of(small(2), folder) as kubeconfig:
        objects = [*definitions(), secret(kubeconfig.read_text())]
        objects.append(stored(cluster(shoot("1.24.17", override="1.24"))))
        gates = f"--feature-gates=CSIMigrationAWS={switched},Other=true"
        objects.append(deployment("kube-controller-manager", gates))
        asleep = cluster(shoot(hibernation={"enabled": True}), name="asleep")
        objects += [stored(asleep), stored(cluster({}, name="bare"))]
        with served(folder, "seed", objects) as seed:
            yield seed, kubeconfig


def test_a_plan_for_a_shoot_knows_what_its_seed_says(tmp_path: Path) -> None:
    with migrating(tmp_path) as (seed, _kubeconfig):
        vouched = ("--shoot", NAMESPACE, "--one-pod-per-volume")
        given = ("plan", "enable", *vouched, *config(seed), "-o", "json")
        code, out, err = replant(*given)
        assert code == 0, err
        plan = msgspec.convert(json.loads(out), Plan)
        assert plan.platform == "gardener"
        assert plan.control_plane.gates == {"CSIMigrationAWS": True}
        [roll] = [it for it in plan.steps if isinstance(it, RollNodes)]
        assert roll.method is NodeMethod.REPLACE
        assert sorted(plan.groups[0].nodes) == ["workers-0", "workers-1"]
        _code, out, _err = replant(*given, "--control-plane-gates", "CSIMigrationAWS=false")
        assert json.loads(out)["controlPlane"]["gates"] == {"CSIMigrationAWS": False}
        assert seed.audit.writes == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--shoot", "nobody"), "There is no Cluster nobody there"),
        (("--shoot", "asleep"), "is hibernated: wake it first"),
        (("--shoot", "bare"), "Cluster bare embeds no Shoot"),
        (("--shoot", NAMESPACE, "-f", "x"), "choose one"),
    ],
)
def test_there_is_no_plan_for_what_is_no_shoot(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    with migrating(tmp_path) as (seed, _kubeconfig):
        code, _out, err = replant("plan", "enable", *arguments, *config(seed))
        assert (code, said in err) == (1, True), err


def test_apply_looks_for_runs_and_gates_where_they_are(tmp_path: Path) -> None:
    with migrating(tmp_path, switched="false") as (seed, kubeconfig):
        to_shoot = ("--shoot", NAMESPACE, *config(seed))
        _code, plan, _err = replant(
            "plan", "enable", *to_shoot, "--one-pod-per-volume", "-o", "yaml"
        )
        code, _out, err = replant(
            "apply", "-", "--yes", "--kubeconfig", str(kubeconfig), stdin=plan.encode()
        )
        assert (code, "name the shoot with --shoot" in err) == (1, True), err
        # Nobody does what is to be done, so it is stopped, and says how to go on.
        code, _out, err = replant(
            "apply", "-", "--yes", *to_shoot, "--timeout", "1", stdin=plan.encode()
        )
        assert code == 4, err
        assert "Shoot garden-dev/crazy: have its version" in err
        assert f"replant apply --shoot {NAMESPACE} --resume" in err
        assert seed.audit.writes == []
        code, _out, err = replant("apply", "--resume", "--yes", "--kubeconfig", str(kubeconfig))
        assert (code, "name the shoot with --shoot" in err) == (1, True), err


def test_the_actuator_wants_a_shoot() -> None:
    code, _out, err = replant("apply", "plan.yaml", "--actuator", "gardener")
    assert (code, "--actuator gardener needs --shoot" in err) == (1, True)
