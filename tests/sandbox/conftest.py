from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from replant.sandbox.server import Sandbox, open_port, serving


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A sandbox of its own for a file's tests, on a port of this machine."""
    with closing(open_port(0)) as listening, serving(Sandbox(), listening) as address:
        yield address


@pytest.fixture(scope="module")
def http(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
        yield client
