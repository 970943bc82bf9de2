"""The demonstration: every act of it comes out as it says, and nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from pathlib import Path

import click
import pytest
import yaml

from replant.cli import demo_acts
from replant.cli.demo_stage import Stage
from tests.cli.shell import REPLANT, replant

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the demonstration makes its own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.mark.workflow("demo")
def test_every_act_ends_as_it_should(tmp_path: Path, temporary: Path) -> None:
    report = tmp_path / "report.html"
    code, out, err = replant("demo", "--report", str(report))
    assert code == 0, out + err
    for act in range(1, demo_acts.ACTS + 1):
        assert f"== {act} of {demo_acts.ACTS}: " in out
    assert "Proof: safe." in out
    assert "stopped: It was interrupted." in err
    assert "of 20 migrated; not yet: " in out
    assert ": undone in " in out
    assert "$ kill -9 " in out
    assert ": done in " in out
    assert "Yanked: the in-tree plugin detaches the disk" in out
    assert "gaps of " in out
    assert "no disk yanked." in out
    assert "disks yanked under running databases." in out
    page = report.read_text()
    assert "<h1>Done</h1>" in page
    assert "The process was gone without a word." in page
    assert "\x1b" not in out + err
    assert list(temporary.iterdir()) == []


def test_it_can_be_interrupted_and_leaves_nothing(tmp_path: Path, temporary: Path) -> None:
    command = [str(REPLANT), "demo", "--report", str(tmp_path / "report.html")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("$ replant scan"):
                break
        (folder,) = temporary.iterdir()
        serving = (folder / "kubeconfig.log").read_text()
        demo.send_signal(signal.SIGTERM)
        _, err = demo.communicate()
    assert demo.returncode == 128 + signal.SIGINT
    assert err.endswith("interrupted\n")
    assert list(temporary.iterdir()) == []
    port = serving.partition("http://127.0.0.1:")[2].partition(";")[0]
    code, _, said = _asked(tmp_path, port)
    assert code == 1
    assert "No sandbox answers" in said


def _asked(folder: Path, port: str) -> tuple[int, str, str]:
    """What comes of a question to a sandbox that should be gone."""
    from replant.sandbox.server import write_kubeconfig

    write_kubeconfig(folder / "kubeconfig", int(port))
    return replant("sandbox", "disks", "--kubeconfig", str(folder / "kubeconfig"))


def test_nothing_is_begun_if_the_report_could_not_be_written(
    tmp_path: Path, temporary: Path
) -> None:
    report = tmp_path / "absent" / "report.html"
    code, out, err = replant("demo", "--report", str(report))
    assert (code, out) == (1, "")
    assert str(report) in err
    assert list(temporary.iterdir()) == []


def test_the_wrong_order_is_the_example_s() -> None:
    example = (EXAMPLES / "orders" / "no-drain.yaml").read_text()
    assert yaml.safe_load(demo_acts.WRONG_ORDER) == yaml.safe_load(example)


def test_a_sandbox_that_dies_is_named(temporary: Path) -> None:
    with Stage(demo_acts.PACES["fast"], 1) as stage:
        cluster = stage.sandbox("kubeconfig", demo_acts.SCENARIO)
        stage.await_("the sandbox to be up", cluster.is_up)
        assert cluster.ask("/sandbox")["nodes"] > 1
        cluster.process.kill()
        cluster.process.wait()
        ended = "the sandbox has ended, with the exit code -9"
        with pytest.raises(click.ClickException, match=ended):
            cluster.ask("/sandbox")
        stage.use(cluster)
        with pytest.raises(click.ClickException, match=ended):
            stage.run("sandbox", "disks", "--kubeconfig", str(cluster.kubeconfig))
    assert list(temporary.iterdir()) == []
