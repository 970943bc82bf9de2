"""A plan that replaces volumes is proved as a whole: its switches, and each volume's way."""

from __future__ import annotations

import json

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from replant.plan.courses import proved
from replant.plan.model import Plan, RestoreVolumes, SwapVolumes, VolumeSwap
from replant.plan.undo import undo_plan
from replant.swap.search import verify_swap
from tests.cli.shell import replant as shell
from tests.plan.clusters import planned

VOLUME = VolumeSwap(name="data", driver="ebs.csi.aws.com", handle="vol-1", claim="shop/data")


def with_volumes(kind: type[SwapVolumes | RestoreVolumes]) -> Plan:
    step = kind(id="swap", title="Swap", why="", done_when="", undo="", volumes=(VOLUME,))
    return replace(planned("enable"), steps=(step,), proof=None)


@pytest.mark.parametrize(("kind", "back"), [(SwapVolumes, False), (RestoreVolumes, True)])
def test_the_states_of_both_searches_are_added_up(
    kind: type[SwapVolumes | RestoreVolumes], back: bool
) -> None:
    plan = with_volumes(kind)
    alone = proved(replace(plan, steps=()))
    proof = proved(plan)
    assert proof.safe
    assert proof.states == alone.states + verify_swap(back=back).states


def test_the_way_back_is_proved_as_one() -> None:
    plan = with_volumes(SwapVolumes)
    proof = undo_plan(plan, "swap").proof
    assert proof is not None
    assert proof.states == proved(with_volumes(RestoreVolumes)).states


def test_verify_tells_the_same_of_a_plan_in_a_file() -> None:
    plan = with_volumes(SwapVolumes)
    code, out, err = shell(
        "verify", "-", "-o", "json", stdin=json.dumps(to_builtins(plan)).encode()
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["states"] == proved(plan).states
