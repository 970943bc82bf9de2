"""``python -m replant``: the command, wherever it is installed."""

from __future__ import annotations

from replant.cli.main import run

run()
