"""``replant apply --report``: a page however the run ends, and none that could not be written."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import REPLANT, replant
from tests.execute.living import sandbox_of, small


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[str]]:
    """The options that lead to a cluster, after a plan for it was written to a file."""
    with sandbox_of(small(), tmp_path) as kubeconfig:
        options = ["--kubeconfig", str(kubeconfig)]
        _, plan, _ = replant("plan", "enable", "-o", "yaml", *options)
        (tmp_path / "plan.yaml").write_text(plan)
        yield ["--yes", "--actuator", "sandbox", *options]


def test_a_run_that_is_stopped_and_resumed_has_a_page_each_time(
    cluster: list[str], tmp_path: Path
) -> None:
    report = tmp_path / "run.html"
    plan = str(tmp_path / "plan.yaml")
    command = [str(REPLANT), "apply", plan, "--report", str(report), *cluster]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as applying:
        assert applying.stderr is not None
        for line in applying.stderr:
            if "1 of 4 nodes" in line:
                applying.send_signal(signal.SIGINT)
        assert applying.wait() == 4
    stopped = report.read_text()
    assert "<h1>Stopped</h1>" in stopped
    assert "It was interrupted." in stopped
    code, _, said = replant("apply", "--resume", "--report", str(report), *cluster)
    assert code == 0
    assert f"The report is in {report}." in said
    done = report.read_text()
    assert "<h1>Done</h1>" in done
    assert "Another process went on with it." in done
    assert "<dt>of 4 nodes switched</dt><dd>4</dd>" in done
    assert sorted(it.name for it in tmp_path.iterdir()) == ["kubeconfig", "plan.yaml", "run.html"]


@pytest.mark.parametrize("where", ["absent/run.html", "folder", "pipe"])
def test_nothing_is_done_if_the_page_could_not_be_written(
    where: str, cluster: list[str], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    report = str(tmp_path / where)
    plan = str(tmp_path / "plan.yaml")
    code, _, said = replant("apply", plan, "--report", report, *cluster)
    assert code == 1
    assert report in said
    code, _, said = replant("apply", "--resume", *cluster)
    assert "The journal holds none." in said


def test_a_page_that_is_there_already_is_replaced_also_behind_a_link(tmp_path: Path) -> None:
    from replant.cli.whole_files import WholeFile

    (tmp_path / "run.html").write_text("before")
    (tmp_path / "link").symlink_to("run.html")
    file = WholeFile(str(tmp_path / "link"))
    file.refuse_unwritable()
    assert (tmp_path / "run.html").read_text() == "before"
    file.write("after")
    assert (tmp_path / "run.html").read_text() == "after"
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 2
