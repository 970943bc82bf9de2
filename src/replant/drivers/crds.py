"""The CustomResourceDefinitions of the drivers' CRs: one of each, called ``cluster``."""

from __future__ import annotations

from typing import Any

from replant.drivers.catalog import CR_NAME, DRIVERS, Driver
from replant.drivers.kinds import GROUP, VERSIONS, made
from replant.drivers.settings import LOG_LEVELS, Adoption, Credentials, DefaultClass, State
from replant.objects import Object

Schema = dict[str, Any]


def crd(driver: Driver) -> Object:
    """The CRD of a driver's CR."""
    names = {
        "kind": driver.kind,
        "listKind": f"{driver.kind}List",
        "plural": driver.plural,
        "singular": driver.kind.lower(),
    }
    return made(
        "CustomResourceDefinition",
        f"{driver.plural}.{GROUP}",
        spec={
            "group": GROUP,
            "names": names,
            "scope": "Cluster",
            "versions": [_version(it, driver) for it in VERSIONS],
        },
    )


def crds() -> list[Object]:
    """All of them."""
    return [crd(it) for it in DRIVERS.values()]


def default_cr(driver: Driver) -> Object:
    """The CR that is made where there is none: it is never written again."""
    return {
        "apiVersion": f"{GROUP}/{VERSIONS[0]}",
        "kind": driver.kind,
        "metadata": {"name": CR_NAME},
        "spec": {
            "managementState": State.MANAGED.value,
            "logLevel": "Normal",
            "operatorLogLevel": "Normal",
        },
    }


def _version(name: str, driver: Driver) -> Object:
    return {
        "name": name,
        "served": True,
        "storage": name == VERSIONS[0],
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(it) for it in ("Available", "Progressing", "Degraded")]
        + [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
        "schema": {"openAPIV3Schema": _schema(driver)},
    }


def _column(condition: str) -> Object:
    path = f'.status.conditions[?(@.type=="{condition}")].status'
    return {"name": condition, "type": "string", "jsonPath": path}


def _schema(driver: Driver) -> Schema:
    return {
        "type": "object",
        "description": f"Asks for the CSI driver {driver.name}.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            # A schema may restrict an object's name: there is one driver of a kind in a cluster.
            "metadata": {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": [CR_NAME]}},
            },
            "spec": _spec(driver),
            "status": _STATUS,
        },
    }


def _spec(driver: Driver) -> Schema:
    properties: Schema = {
        "managementState": _choice(State, "Unmanaged: hands off. Removed: only optional drivers."),
        "logLevel": {**_LOG_LEVEL, "description": "Of the driver's containers."},
        "operatorLogLevel": {**_LOG_LEVEL, "description": "Of the operator."},
        "observedConfig": _ANYTHING,
        "unsupportedConfigOverrides": _ANYTHING,
        "credentials": _choice(
            Credentials, "Secret: a secret is waited for. Node: the machine has the rights."
        ),
        "adoption": _choice(
            Adoption, "Of a driver that Helm or a person has installed: Leave it, or Adopt it."
        ),
        "replicas": {"type": "integer", "minimum": 0, "maximum": 9},
        "storageClassState": _choice(State, "Of the StorageClasses that come with the driver."),
        "defaultStorageClass": _choice(
            DefaultClass, "in-tree: the default class stays. csi: the driver's becomes it."
        ),
    }
    if driver.kind == "ManilaDriver":
        properties["shareTypes"] = {"type": "array", "items": {"type": "string"}}
    if driver.kind == "VSphereDriver":
        properties["storagePolicyName"] = {"type": "string"}
    return {
        "type": "object",
        "properties": properties,
        # A CR that an older operator was given, or a newer one, keeps what it says.
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _choice(choices: type[State | DefaultClass | Adoption | Credentials], says: str) -> Schema:
    return {"type": "string", "description": says, "enum": ["", *(it.value for it in choices)]}


_ANYTHING: Schema = {
    "type": "object",
    "nullable": True,
    "x-kubernetes-preserve-unknown-fields": True,
}
_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "integer", "format": "int64"}
_LOG_LEVEL: Schema = {"type": "string", "enum": ["", *LOG_LEVELS]}
_STATUS: Schema = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {
        "observedGeneration": _NUMBER,
        "version": _TEXT,
        "readyReplicas": {"type": "integer", "format": "int32"},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {
                    "type": _TEXT,
                    "status": _TEXT,
                    "reason": _TEXT,
                    "message": _TEXT,
                    "lastTransitionTime": {"type": "string", "format": "date-time"},
                },
            },
        },
        "generations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "group": _TEXT,
                    "resource": _TEXT,
                    "namespace": _TEXT,
                    "name": _TEXT,
                    "lastGeneration": _NUMBER,
                    "hash": _TEXT,
                },
            },
        },
    },
}
