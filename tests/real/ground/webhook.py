"""An admission webhook that lets nobody create PersistentVolumes, but for dry runs."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

from tests.real.ground.api import Api, Object
from tests.real.ground.processes import Stoppable

LOOPBACK = "127.0.0.1"
NAME = "denies-volumes.replant.test"


class Denying(Stoppable):
    """It is called for as long as it is there."""

    def __init__(self, api: Api, folder: Path) -> None:
        folder.mkdir()
        self._api = api
        authority = trustme.CA()
        issued = authority.issue_cert(LOOPBACK)
        served = folder / "webhook.pem"
        issued.private_key_and_cert_chain_pem.write_to_path(served)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(served)
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
        api.create(_configuration(self._server.server_address[1], bundle))

    def allow(self) -> None:
        """Deny nothing any more."""
        self._api.delete("ValidatingWebhookConfiguration", NAME)

    def stop(self) -> None:
        if self._api.find("ValidatingWebhookConfiguration", NAME):
            self.allow()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        answer: Object = {"uid": asked["uid"], "allowed": bool(asked.get("dryRun"))}
        if not answer["allowed"]:
            answer["status"] = {"code": 403, "message": "no PersistentVolume may be created"}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        told = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is to be told of requests."""


def _configuration(port: int, bundle: str) -> Object:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["persistentvolumes"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": NAME,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "clientConfig": {"url": f"https://{LOOPBACK}:{port}/", "caBundle": bundle},
                "rules": [rule],
            }
        ],
    }
