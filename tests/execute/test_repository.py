"""What ``-o patch`` says beforehand is what a conversion leaves: a GitOps tool finds no change."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import yaml

from replant.objects import Object
from replant.plan.classes import AskedClasses, ClassWay
from replant.plan.convert import Asked
from replant.plan.inline import AskedInline
from replant.plan.repository import repository_changes
from replant.report import patches
from tests.execute.converting import MIGRATED, conversion, inventory_of
from tests.execute.living import ground, sandbox_of, small
from tests.execute.test_inline import RECREATE, workload

ASKED: dict[str, Any] = {
    "classes": AskedClasses(ClassWay.REPLACE),
    "inline": AskedInline(convert=True),
}


def test_a_tool_that_is_resumed_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "native.yaml"

    def kubectl(*arguments: str) -> str:
        command = ["kubectl", "--kubeconfig", str(kubeconfig), *arguments]
        done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
        return done.stdout

    async def story() -> None:
        async with ground(kubeconfig) as it:
            await it.timing.sleep(120)
            inventory = await inventory_of(it)
            file.write_text(patches.text(repository_changes(Asked(**ASKED), inventory)))
            await it.applying().begin(await conversion(it, **ASKED), {})
            await it.timing.sleep(60)

    scenario = small(objects=[workload(**RECREATE)], **MIGRATED)
    with sandbox_of(scenario, tmp_path) as kubeconfig:
        asyncio.run(story())
        documents: list[Object] = [it for it in yaml.safe_load_all(file.read_text()) if it]
        kinds = {it["kind"] for it in documents}
        assert kinds == {"PersistentVolume", "PersistentVolumeClaim", "Deployment", "StorageClass"}
        for document in documents:
            one = tmp_path / "one.yaml"
            one.write_text(yaml.safe_dump(document))
            name, namespace = document["metadata"]["name"], document["metadata"].get("namespace")
            where = ("-n", namespace) if namespace else ()
            get = ("get", document["kind"], name, *where, "-o", "yaml")
            before = yaml.safe_load(kubectl(*get))
            kubectl(
                "patch",
                document["kind"],
                name,
                *where,
                "--type=strategic",
                "--patch-file",
                str(one),
            )
            after = yaml.safe_load(kubectl(*get))
            assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
