"""The model against facts that were read from the sources of Kubernetes: see sources.json.

Two versions of Kubernetes are asked on the proving ground, and one cloud is there. What concerns
other versions and plugins is here.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replant.core.routing.dangling import attach_may_detach, driver_attach_detaches
from replant.gates.versions import Version
from tests.routing.worlds import PLUGINS

FACTS = json.loads((Path(__file__).parent / "sources.json").read_text())


@pytest.mark.parametrize("plugin", PLUGINS)
def test_an_attach_that_fails_names_the_node_that_has_the_disk(plugin: str) -> None:
    since = FACTS["danglingAttachSince"]["versions"].get(plugin)
    asked = ["1.17", "1.18.20", "1.19.15", "1.19.16", "1.20", "1.24.17"]
    for version in map(Version.parse, asked):
        expected = since is not None and version >= Version.parse(since)
        assert attach_may_detach(plugin, version) is expected
    takes = plugin in FACTS["driversThatTakeDisks"]["plugins"]
    assert driver_attach_detaches(plugin) is takes
