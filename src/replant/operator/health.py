"""Whether an operator is well, and what it has done: for probes and for Prometheus, in plain HTTP.

Its text format is a few lines, so no library is needed for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from replant.operator.webhooks import Listener, listening, until_stopped

HEALTH, READY, METRICS = "/healthz", "/readyz", "/metrics"
LOOKS = "replant_gardener_looks_total"
WRITES = "replant_gardener_writes_total"
ATTENDED = "replant_gardener_shoots_attended"
_CONTENT = "text/plain; version=0.0.4; charset=utf-8"

_SAID = {
    LOOKS: ("counter", "Looks at a Cluster, by how they ended."),
    WRITES: ("counter", "Writes to seeds and shoots, Events aside, by what was written."),
    ATTENDED: ("gauge", "Shoots that are looked at now, or will be again."),
}


class Tally:
    """Counts what is done."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self.attended: Callable[[], int] = lambda: 0

    def looked(self, outcome: str) -> None:
        """A look at a Cluster has ended: done, waits or failed."""
        self._counts[LOOKS, f'outcome="{outcome}"'] += 1

    def wrote(self, what: str) -> None:
        """Something was written."""
        self._counts[WRITES, f'what="{what}"'] += 1

    def text(self) -> str:
        """All counts, as Prometheus reads them."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, (kind, meaning) in _SAID.items():
            yield f"# HELP {name} {meaning}"
            yield f"# TYPE {name} {kind}"
            for (counted, labels), count in sorted(self._counts.items()):
                if counted == name:
                    yield f"{name}{{{labels}}} {count}"
        yield f"{ATTENDED} {self.attended()}"


def application(is_ready: Callable[[], bool], tally: Tally) -> Starlette:
    """What answers at each path."""

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("ok")  # that it answers at all is what counts

    async def ready(_request: Request) -> Response:
        return PlainTextResponse("ok") if is_ready() else PlainTextResponse("not yet", 503)

    async def metrics(_request: Request) -> Response:
        return Response(tally.text(), media_type=_CONTENT)

    paths = {HEALTH: healthy, READY: ready, METRICS: metrics}
    return Starlette(routes=[Route(path, endpoint) for path, endpoint in paths.items()])


async def serve(
    app: Starlette,
    where: Listener,
    *,
    stop: asyncio.Event,
    opened: Callable[[int], None] = lambda _port: None,
) -> None:
    """Answer until stopped."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", ws="none",
        timeout_graceful_shutdown=5,
    )  # fmt: skip
    with listening(where) as port:
        opened(port.getsockname()[1])
        await until_stopped(config, port, stop)
