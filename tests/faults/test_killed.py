"""The command itself, killed by the operating system at moments that nobody chose."""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.shell import REPLANT, replant
from tests.execute.living import ground, sandbox_of, small

KILLS = 2


@pytest.mark.wall_clock("the operating system kills at moments that nobody chose")
def test_a_command_that_is_killed_again_and_again_is_resumed(tmp_path: Path) -> None:
    chance = random.Random(20)  # noqa: S311 - it is to be repeated
    with sandbox_of(small(), tmp_path) as kubeconfig:
        to = ("--kubeconfig", str(kubeconfig))
        code, plan, _ = replant("plan", "enable", "--plugin", "aws-ebs", "-o", "yaml", *to)
        assert code == 0
        (tmp_path / "plan.yaml").write_text(plan)
        how = ("--yes", "--actuator", "sandbox", *to)

        def command() -> tuple[str, ...]:
            begun = asyncio.run(_runs(kubeconfig))
            return ("apply", "--resume" if begun else str(tmp_path / "plan.yaml"), *how)

        for _kill in range(KILLS):
            _kill_within(chance.uniform(0.1, 1.5), *command())
        if asyncio.run(_runs(kubeconfig)) != ["done"]:  # a fast machine may be there before a kill
            code, _, said = replant(*command())
            assert code == 0, said
        asyncio.run(_is_well(kubeconfig))


def _kill_within(seconds: float, *arguments: str) -> None:
    """Kill the command so many seconds after it has begun to work, unless it has ended by then."""
    with subprocess.Popen(
        [REPLANT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)  # it says what it does as soon as it does it
        time.sleep(seconds)
        process.kill()


async def _runs(kubeconfig: Path) -> list[str]:
    async with ground(kubeconfig) as it:
        return [run.state.value for run in await it.journals().runs()]


async def _is_well(kubeconfig: Path) -> None:
    async with ground(kubeconfig) as it:
        assert [run.state for run in await it.journals().runs()] == ["done"]
        for number in range(4):
            assert (await it.gates(f"workers-{number}"))["CSIMigrationAWS"]
        assert (await it.ask("/sandbox/writes"))["yanked"] == []
