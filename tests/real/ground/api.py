"""Plain requests to an API server: objects go in and come out as dicts."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import httpx
import yaml

Object = dict[str, Any]

PATHS = {
    "Namespace": "api/v1/namespaces",
    "Node": "api/v1/nodes",
    "PersistentVolume": "api/v1/persistentvolumes",
    "PersistentVolumeClaim": "api/v1/persistentvolumeclaims",
    "Pod": "api/v1/pods",
    "ConfigMap": "api/v1/configmaps",
    "Event": "api/v1/events",
    "ServiceAccount": "api/v1/serviceaccounts",
    "StorageClass": "apis/storage.k8s.io/v1/storageclasses",
    "CSIDriver": "apis/storage.k8s.io/v1/csidrivers",
    "CSINode": "apis/storage.k8s.io/v1/csinodes",
    "VolumeAttachment": "apis/storage.k8s.io/v1/volumeattachments",
    "SelfSubjectRulesReview": "apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "ClusterRole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "apis/rbac.authorization.k8s.io/v1/roles",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1/rolebindings",
    "StatefulSet": "apis/apps/v1/statefulsets",
    "Deployment": "apis/apps/v1/deployments",
    "PodDisruptionBudget": "apis/policy/v1/poddisruptionbudgets",
    "Lease": "apis/coordination.k8s.io/v1/leases",
    "Secret": "api/v1/secrets",
    "CustomResourceDefinition": "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "MutatingWebhookConfiguration": (
        "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    ),
    "ValidatingWebhookConfiguration": (
        "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    ),
    "Cluster": "apis/extensions.gardener.cloud/v1alpha1/clusters",
    "ControlPlane": "apis/extensions.gardener.cloud/v1alpha1/controlplanes",
    "Shoot": "apis/core.gardener.cloud/v1beta1/shoots",
}


class Refused(Exception):
    """The API server said no."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(f"{answer.request.method} {answer.request.url}: {answer.text}")
        self.code = answer.status_code


class Api:
    """One user's view of one API server."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        if "client-certificate" in user:
            trust.load_cert_chain(user["client-certificate"], user["client-key"])
        self._server, self._trust = cluster["server"], trust
        self._headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        self._http = self.client()

    def client(self) -> httpx.Client:
        """For requests of one's own; the caller closes it."""
        return httpx.Client(
            base_url=self._server,
            headers=self._headers,
            verify=self._trust,
            trust_env=False,
            timeout=30,
        )

    def close(self) -> None:
        self._http.close()

    def ready(self) -> bool:
        try:
            return self._http.get("/readyz").is_success
        except httpx.TransportError:
            return False

    def text(self, path: str) -> str:
        return self._asked(self._http.get(path)).text

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        return self._json(self._http.get(_path(kind, namespace, name)))

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None if there is none."""
        try:
            return self.get(kind, name, namespace)
        except Refused as refusal:
            if refusal.code == httpx.codes.NOT_FOUND:
                return None
            raise

    def list(self, kind: str, namespace: str = "", **query: str) -> list[Object]:
        items: list[Object] = self._json(self._http.get(_path(kind, namespace), params=query))[
            "items"
        ]
        return items

    def create(self, obj: Object, **query: str) -> Object:
        path = _path(obj["kind"], obj["metadata"].get("namespace", ""))
        return self._json(self._http.post(path, json=obj, params=query))

    def create_status(self, obj: Object, status: Object) -> Object:
        """Create an object, then write the status that its owner would."""
        meta = self.create(obj)["metadata"]
        return self.patch(
            obj["kind"], meta["name"], {"status": status}, meta.get("namespace", ""), "status"
        )

    def patch(
        self, kind: str, name: str, change: Object, namespace: str = "", subresource: str = ""
    ) -> Object:
        return self._json(
            self._http.patch(
                _path(kind, namespace, name, subresource),
                json=change,
                headers={"Content-Type": "application/merge-patch+json"},
            )
        )

    def delete(self, kind: str, name: str, namespace: str = "", **options: Any) -> None:
        """Delete it; that it is gone already is fine."""
        answer = self._http.request("DELETE", _path(kind, namespace, name), json=options)
        if answer.status_code != httpx.codes.NOT_FOUND:
            self._asked(answer)

    def token(self, account: str, namespace: str) -> str:
        """A token of a service account, as a person would ask for it."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self._http.post(_path("ServiceAccount", namespace, account, "token"), json=request)
        token: str = self._json(answer)["status"]["token"]
        return token

    @staticmethod
    def _asked(answer: httpx.Response) -> httpx.Response:
        if not answer.is_success:
            raise Refused(answer)
        return answer

    def _json(self, answer: httpx.Response) -> Object:
        found: Object = self._asked(answer).json()
        return found


def _path(kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    group, _slash, plural = PATHS[kind].rpartition("/")
    parts = [group, "namespaces" if namespace else "", namespace, plural, name, subresource]
    return "/" + "/".join(part for part in parts if part)
