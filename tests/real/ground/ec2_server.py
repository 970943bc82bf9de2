"""moto's EC2 server, with a list of who changed which disk: `ec2_server PORT CALLS`.

A program of its own, so that a busy test never keeps the cloud waiting. In one thing it is made
stricter than moto, and like EC2: a disk that is attached cannot be attached again.
"""

from __future__ import annotations

import io
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import parse_qs

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
from werkzeug.wrappers import Response

from tests.real.ground.cloud import REGION

LISTED = {"AttachVolume", "DetachVolume", "CreateVolume", "DeleteVolume", "ModifyVolume"}
IN_USE = (
    "<Response><Errors><Error><Code>VolumeInUse</Code>"
    "<Message>{volume} is already attached to an instance</Message>"
    "</Error></Errors><RequestID>00000000-0000-0000-0000-000000000000</RequestID></Response>"
)


class Ec2:
    """Passes requests on. Those that change a disk go one by one, and are written down."""

    def __init__(self, calls: IO[str]) -> None:
        self._moto: Any = DomainDispatcherApplication(create_backend_app)
        self._calls = calls
        self._one_by_one = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        asked = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        if asked.get("Action") in LISTED:
            with self._one_by_one:
                return self._change(asked, environ)(environ, start)
        answered: Iterable[bytes] = self._moto(environ, start)
        return answered

    def _change(self, asked: dict[str, str], environ: dict[str, Any]) -> Response:
        if asked["Action"] == "AttachVolume" and _attached(asked.get("VolumeId", "")):
            answer = Response(IN_USE.format(volume=asked["VolumeId"]), 400, mimetype="text/xml")
        else:
            answer = Response.from_app(self._moto, environ, buffered=True)
        tags = {
            asked[key]: asked.get(f"{key[:-3]}Value", "") for key in asked if key[-4:] == ".Key"
        }
        call = {
            "time": time.time(),
            "action": asked["Action"],
            "volume": asked.get("VolumeId", ""),
            "claim": tags.get("kubernetes.io/created-for/pvc/name", ""),
            "instance": asked.get("InstanceId", ""),
            "caller": environ.get("HTTP_USER_AGENT", ""),
            "refused": answer.status_code >= HTTPStatus.BAD_REQUEST,
        }
        self._calls.write(json.dumps(call) + "\n")
        return answer


def _attached(volume: str) -> bool:
    known = ec2_backends[DEFAULT_ACCOUNT_ID][REGION].volumes.get(volume)
    return bool(known and known.attachment)


def main(port: int, calls: str) -> None:
    with open(calls, "a", buffering=1) as file:  # noqa: PTH123 - each line is to be read at once
        run_simple("127.0.0.1", port, Ec2(file), threaded=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
