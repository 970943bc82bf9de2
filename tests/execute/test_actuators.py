from __future__ import annotations

import pytest

from replant.execute.actuators import Replica, Wanted, differences, is_so

ADMISSION = "enable-admission-plugins"
LABELS = "PersistentVolumeLabel"
WITHOUT = Wanted({}, remove_flags={ADMISSION: LABELS})
WITH = Wanted({}, add_flags={ADMISSION: LABELS})


@pytest.mark.parametrize(
    ("flags", "wanted", "so"),
    [
        ({ADMISSION: f"NodeRestriction,{LABELS}"}, WITHOUT, False),
        ({ADMISSION: "NodeRestriction"}, WITHOUT, True),
        ({}, WITHOUT, True),
        ({ADMISSION: "NodeRestriction"}, WITH, False),
        ({ADMISSION: f"{LABELS},NodeRestriction"}, WITH, True),
        ({}, WITH, False),
        ({"cloud-provider": "aws"}, Wanted({}, remove_flags={"cloud-provider": "aws"}), False),
        ({"cloud-provider": "aws"}, Wanted({}, add_flags={"cloud-provider": "aws"}), True),
        ({"cloud-provider": "gce"}, Wanted({}, add_flags={"cloud-provider": "aws"}), False),
        (None, WITH, True),
    ],
)
def test_of_a_flag_that_is_a_list_only_the_items_of_a_step_count(
    flags: dict[str, str] | None, wanted: Wanted, so: bool
) -> None:
    replica = Replica("one", {}, flags)
    assert is_so((replica,), wanted) is so
    assert bool(differences(replica, wanted)) is not so
