"""The same requests to real Kubernetes and to the sandbox, and the same answers."""

from __future__ import annotations

from contextlib import closing

import httpx
import pytest

from replant.sandbox.server import Sandbox, open_port, serving
from tests.real import records
from tests.real.ground import programs
from tests.real.ground.controlplane import ControlPlane
from tests.sandbox.conformance import DEFINITIONS, PODS, PVCS, STORIES, tell
from tests.sandbox.refused import REFUSED

Answers = dict[str, list[object]]

NEWER = {
    # Columns for fields that the old one does not have, or does not show.
    ("storage", "GET /api/v1/namespaces/NS/persistentvolumeclaims"),
    ("kinds", "GET /api/v1/namespaces/NS/serviceaccounts/k"),
    ("kinds", "GET /apis/batch/v1/namespaces/NS/jobs/k"),
    ("kinds", "GET /apis/batch/v1/namespaces/NS/cronjobs/k"),
    # Told by another cause.
    ("storage", "PATCH /apis/storage.k8s.io/v1/storageclasses/story-s"),
    # A default of a field that the old one does not have.
    ("workloads", "POST /apis/apps/v1/namespaces/NS/statefulsets"),
    # What is not said is no longer also told to be said badly, or to be too little.
    *(
        ("refused-storage", f"POST {path}?dryRun=All&fieldManager={what}")
        for path, what in (
            ("/api/v1/persistentvolumes", "csi-empty"),
            ("/api/v1/persistentvolumes", "csi-without-driver"),
            ("/apis/storage.k8s.io/v1/volumeattachments", "empty"),
            ("/apis/storage.k8s.io/v1/volumeattachments", "specless"),
            ("/apis/storage.k8s.io/v1/csinodes", "driver-without-a-name"),
        )
    ),
    *(
        ("refused-storage", f"PATCH {PVCS}/of-{name}?fieldManager=shrunk-unbound")
        for name in ("story-grows", "story-stays", "none")
    ),
    # The limit is named.
    ("refused-workloads", f"POST {PODS}?dryRun=All&fieldManager=request-above-limit"),
}
"""Where the newest differs from the old one, which the sandbox passes for."""


@pytest.mark.parametrize("which", ["old", "new"])
def test_the_sandbox_answers_as_real_kubernetes_does(
    which: str, request: pytest.FixtureRequest
) -> None:
    plane: ControlPlane = request.getfixturevalue(which)
    with plane.api.client() as http:
        real = answers(http, plane)
    records.check(f"api-{plane.version}", real)
    with (
        closing(open_port(0)) as listening,
        serving(Sandbox(), listening) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=30) as http,
    ):
        ours = answers(http)
    newer = NEWER if plane.version != programs.OLD else set()
    assert differences(real, ours) == newer


def answers(http: httpx.Client, plane: ControlPlane | None = None) -> Answers:
    seen: Answers = {}
    for story in (*STORIES, *REFUSED):
        seen[story.name] = tell(http, story)
        if story is DEFINITIONS and plane:
            # It takes real Kubernetes a moment to serve what was defined.
            plane.wait_served("/apis/story.example.com/v1/widgets")
            plane.wait_served("/apis/schema.example.com/v1/gadgets")
    return seen


def differences(real: Answers, ours: Answers) -> set[tuple[str, str]]:
    return {
        (name, it["asked"])  # type: ignore[index]
        for name in real
        for it, other in zip(real[name], ours[name], strict=True)
        if it != other
    }
