"""Which migrations are disturbed, and by what weather."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from typing import Any

import yaml

from replant.gates.featuresets import CONTROL_PLANE_SET, NODE_SET
from replant.plan.classes import AskedClasses, ClassWay
from replant.plan.inline import AskedInline
from replant.plan.model import Goal, NodeMethod
from replant.platforms.openshift_changes import Rules
from replant.routing import AttachController
from tests.execute.converting import MIGRATED
from tests.execute.living import small
from tests.execute.test_inline import workload
from tests.faults.injecting import Weather
from tests.faults.stories import Migration

EBS, PORTWORX = "kubernetes.io/aws-ebs", "kubernetes.io/portworx-volume"

ENABLE = Migration("enable", small(), Goal.ENABLE, EBS)
UNDO = Migration("undo of enable", small(), Goal.ENABLE, EBS, undo=True)
COMPLETE = Migration("complete", small(), Goal.COMPLETE, EBS, first=(Goal.ENABLE,))

WEATHERS = (
    *(Weather(seed, stale=0.5, lag=lag) for seed, lag in enumerate((0.5, 2.0, 5.0, 9.0))),
    *(Weather(seed, stale=1.0, lag=lag) for seed, lag in enumerate((1.0, 3.0))),
    *(Weather(seed, dropped=dropped) for seed, dropped in enumerate((0.05, 0.2, 0.5))),
    *(Weather(seed, broken=0.2, expired=0.1) for seed in range(2)),
    *(Weather(seed, stale=0.3, lag=3.0, dropped=0.1, broken=0.05) for seed in range(4)),
)


CONVERT = Migration("convert", small(), Goal.CONVERT, EBS, first=(Goal.ENABLE,))

CONVERT_ALL = Migration(
    "convert with twins and templates",
    small(
        workloads=[{"name": "db", "replicas": 1, "storageClass": "gp2"}],
        objects=[workload("StatefulSet")],
        **MIGRATED,
    ),
    Goal.CONVERT,
    EBS,
    choices={
        "inline": AskedInline(convert=True),
        "classes": AskedClasses(ClassWay.TWIN, "-csi"),
    },
)
"""All that a conversion can do besides replacing volumes."""


def on_openshift(sets: tuple[str, ...], adc: AttachController) -> Migration:
    """The least that has an order: one node of each kind, whose operators do the work."""
    scenario = small(
        2, kubernetesVersion="1.20.15", openshift={"featureSets": sets}, adc=adc,
        workloads=[{"name": "db", "replicas": 2, "storageClass": "gp2"}],
    )  # fmt: skip
    scenario["controlPlane"] |= {"gates": {}, "replicas": 1}
    scenario["pools"][0]["gates"] = {}
    return Migration(
        f"enable on OpenShift, {'with sets' if sets else 'with custom gates'}",
        scenario,
        Goal.ENABLE,
        EBS,
        choices={
            "wanted": {"platform": "openshift", "attach_controller": adc},
            "method": NodeMethod.PLATFORM,
        },
        openshift=Rules(order_free=adc is AttachController.NODE_DRIVEN, no_upgrade=True),
    )


OPENSHIFT = on_openshift((CONTROL_PLANE_SET, NODE_SET), AttachController.UPSTREAM)
OPENSHIFT_CUSTOM = on_openshift((), AttachController.UPSTREAM)
"""Where pools are held, and there is no way back once nodes have the gates."""

SAMPLED = 4
"""Of the migrations that are not disturbed at every write, every so many-th."""


def small_migrations() -> Iterator[Migration]:
    """Every goal, and the undo of each, on few nodes: one as a whole, samples of the others."""
    yield ENABLE
    yield CONVERT
    yield replace(CONVERT, name="undo of convert", undo=True)
    yield CONVERT_ALL
    yield replace(CONVERT_ALL, name=f"undo of {CONVERT_ALL.name}", undo=True)
    yield from (replace(it, every=SAMPLED) for it in _others())


def _others() -> Iterator[Migration]:
    yield UNDO
    yield COMPLETE
    yield replace(OPENSHIFT, reduced=True)
    yield replace(COMPLETE, name="undo of complete", undo=True)
    secure = Migration(
        "enable with secrets", shipped("portworx-secure"), Goal.ENABLE, PORTWORX, reduced=True
    )
    disable = Migration("disable", small(), Goal.DISABLE, EBS, (Goal.ENABLE,), reduced=True)
    for migration in (disable, secure):
        yield migration
        yield replace(migration, name=f"undo of {migration.name}", undo=True)


def twenty_nodes() -> Iterator[Migration]:
    """The scenario of twenty nodes, and the undo of its migration."""
    scenario = shipped("aws-20-nodes")
    yield Migration("enable on 20 nodes", scenario, Goal.ENABLE, EBS)
    yield Migration("undo of enable on 20 nodes", scenario, Goal.ENABLE, EBS, undo=True)


def shipped(name: str) -> dict[str, Any]:
    """A scenario that comes with Replant."""
    text = (resources.files("replant.sandbox") / "scenarios" / f"{name}.yaml").read_text()
    found: dict[str, Any] = yaml.safe_load(text)
    return found
