"""What is served, as clients ask for it: old discovery, the aggregated one, versions and health."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from replant.objects import Object
from replant.sandbox.api import answers
from replant.sandbox.api.asking import Format
from replant.sandbox.resources import NAMESPACES, Registry, Resource

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_CUSTOM_VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
_SUBRESOURCE_VERBS = {
    "eviction": ["create"],
    "binding": ["create"],
    "finalize": ["update"],
}
_SUBRESOURCE_KINDS = {
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "scale": ("autoscaling", "v1", "Scale"),
}
_PREFERRED = ["apps", "batch", "policy", "storage.k8s.io"]
AGGREGATED = "apidiscovery.k8s.io"


def not_there() -> Response:
    """What the real server says where it serves nothing at all."""
    return PlainTextResponse("404 page not found\n", 404)


def health() -> Response:
    """All is well."""
    return PlainTextResponse("ok")


def version(said: str) -> Response:
    """Which Kubernetes this passes for."""
    major, minor, *_rest = said.split(".")
    return answers.value(
        {
            "major": major,
            "minor": minor,
            "gitVersion": f"v{said}",
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "replant",
            "platform": "linux/amd64",
        }
    )


def core_versions(registry: Registry, request: Request) -> Response:
    """``/api``."""
    if shape := _aggregated(request):
        return _groups(registry, [""], shape)
    return answers.value({"kind": "APIVersions", "versions": ["v1"]} | _addresses(request))


def groups(registry: Registry, request: Request) -> Response:
    """``/apis``."""
    named = sorted(registry.groups(), key=lambda it: (it not in _PREFERRED, it))
    if shape := _aggregated(request):
        return _groups(registry, named, shape)
    listed = [_group(registry, name) for name in named]
    return answers.value({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


def group(registry: Registry, name: str) -> Response:
    """``/apis/GROUP``."""
    if name not in registry.groups():
        return not_there()
    return answers.value({"kind": "APIGroup", "apiVersion": "v1", **_group(registry, name)})


def resources(registry: Registry, name: str, version: str) -> Response:
    """``/api/v1`` and ``/apis/GROUP/VERSION``."""
    served = [it for it in registry if (it.group, it.version) == (name, version)]
    if not served:
        return not_there()
    listed = [entry for it in served for entry in _resource(it)]
    said: Object = {"kind": "APIResourceList", "groupVersion": served[0].api_version}
    if name:
        said["apiVersion"] = "v1"
    return answers.value({**said, "resources": listed})


def _addresses(request: Request) -> Object:
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}
    return {"serverAddressByClientCIDRs": [address]}


def _group(registry: Registry, name: str) -> Object:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in registry.versions(name)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _verbs(resource: Resource) -> list[str]:
    if not resource.stored:
        return ["create"]
    if resource is NAMESPACES:
        return [verb for verb in _VERBS if verb != "deletecollection"]
    return _CUSTOM_VERBS if resource.custom else _VERBS


def _subresource_verbs(name: str) -> list[str]:
    return _SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"])


def _resource(resource: Resource) -> list[Object]:
    own: Object = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        own["shortNames"] = list(resource.short_names)
    if resource.categories:
        own["categories"] = list(resource.categories)
    listed = [own]
    for name in resource.subresources:
        group, version, kind = _SUBRESOURCE_KINDS.get(
            name, (resource.group, resource.version, resource.kind)
        )
        below: Object = {"name": f"{resource.plural}/{name}", "singularName": ""}
        below |= {"namespaced": resource.namespaced, "kind": kind}
        if group != resource.group:
            below |= {"group": group, "version": version}
        listed.append(below | {"verbs": _subresource_verbs(name)})
    return listed


# Aggregated


def _aggregated(request: Request) -> str:
    """The version of the aggregated discovery that is asked for first, if it is."""
    for choice in request.headers.get("accept", "").split(","):
        parts = {part.strip() for part in choice.split(";")}
        if f"g={AGGREGATED}" in parts and "as=APIGroupDiscoveryList" in parts:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in parts:
                    return version
    return ""


def _groups(registry: Registry, named: list[str], version: str) -> Response:
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {},
            "versions": [
                {
                    "version": each,
                    "resources": [
                        _discovered(it) for it in registry if (it.group, it.version) == (name, each)
                    ],
                    "freshness": "Current",
                }
                for each in registry.versions(name)
            ],
        }
        for name in named
    ]
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": f"{AGGREGATED}/{version}"}
    media = f"application/json;g={AGGREGATED};v={version};as=APIGroupDiscoveryList"
    answer = answers.value({**kind, "metadata": {}, "items": items}, Format())
    answer.headers["content-type"] = media
    return answer


def _discovered(resource: Resource) -> Object:
    found: Object = {
        "resource": resource.plural,
        "responseKind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        found["shortNames"] = list(resource.short_names)
    if resource.categories:
        found["categories"] = list(resource.categories)
    below = []
    for name in resource.subresources:
        own = (resource.group, resource.version, resource.kind)
        group, version, kind = _SUBRESOURCE_KINDS.get(name, own)
        below.append(
            {
                "subresource": name,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "verbs": _subresource_verbs(name),
            }
        )
    if below:
        found["subresources"] = below
    return found
