"""What components of a shoot are told at each stage: flags and gates.

Told again, nothing changes: what comes out depends on the stage and on what else was there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from replant.errors import InputError
from replant.gardener.commandline import (
    ADMISSION_OFF,
    ADMISSION_ON,
    CLOUD_CONFIG,
    CLOUD_PROVIDER,
    VOLUME_PLUGIN,
    CommandLine,
)
from replant.gardener.providers import Provider
from replant.gardener.shoots import Stage, part
from replant.gates.history import gate_at
from replant.gates.plugins import BASE_GATE
from replant.gates.versions import Version
from replant.objects import Object, name_of

EXTERNAL = "external"
LABEL_ADMISSION = "PersistentVolumeLabel"
LABEL_ADMISSION_GONE = Version(1, 31)
"""The first version without that admission plugin. Named there, the API server does not start."""
CLOUD_CONFIG_PATH = "/etc/kubernetes/cloudprovider/cloudprovider.conf"
"""Where provider extensions mount the cloud's configuration."""


def gates(provider: Provider, stage: Stage, version: Version) -> dict[str, bool | None]:
    """Every gate of the provider's migration: on, or None where it must not be given.

    A gate that a version does not have would keep the component from starting.
    """
    redirecting = (BASE_GATE, *(it.migration_gate for it in provider.plugins))
    off = [gate for it in provider.plugins for gate in it.off_gates]
    wanted: set[str] = set()
    if stage is not Stage.NOT_USED:
        wanted.update(redirecting)
    if stage is Stage.COMPLETE:
        wanted.update(off)
    return {
        gate: True if gate in wanted and gate_at(gate, version) else None
        for gate in (*redirecting, *off)
    }


def told_deployment(
    deployment: Object,
    provider: Provider,
    stage: Stage,
    version: Version,
    cloud_config: str = CLOUD_CONFIG_PATH,
) -> Object:
    """A Deployment of the control plane as it should be; the same one where nothing changes.

    One of another name is none of ours. InputError if it has no container of its own name.
    """
    name = part(deployment, "metadata", "name")
    flags = _FLAGS.get(name) if isinstance(name, str) else None
    if flags is None:
        return deployment
    spec = deployment.get("spec", {})
    pod = part(spec, "template", "spec")
    containers = part(pod, "containers")
    number = _own_container(containers, name)
    if number is None or not isinstance(containers, list) or not isinstance(pod, dict):
        raise InputError(f"it has no container {name}", source=name_of(deployment, "Deployment"))
    container = containers[number]
    line = CommandLine(container.get("command") or (), container.get("args") or ())
    flags(line, provider, stage, version, cloud_config)
    line.gates(gates(provider, stage, version))
    told = {**container, "command": line.command, "args": line.args}
    told = {key: value for key, value in told.items() if value or key in container}
    if told == container:
        return deployment
    pod = {**pod, "containers": [*containers[:number], told, *containers[number + 1 :]]}
    return {**deployment, "spec": {**spec, "template": {**spec["template"], "spec": pod}}}


def told_kubelet_flags(words: Sequence[str], provider: Provider, stage: Stage) -> list[str]:
    """A kubelet's command line as it should be."""
    line = CommandLine(words, ())
    line.set(CLOUD_PROVIDER, provider.cloud if stage is Stage.NOT_USED else EXTERNAL)
    return line.command


def told_kubelet_config(
    config: Mapping[str, object], provider: Provider, stage: Stage, version: Version
) -> dict[str, object]:
    """A KubeletConfiguration as it should be; the version is the kubelet's own.

    A node that has any of it was drained before: it is given all gates at once.
    """
    if stage is Stage.IN_PROGRESS:
        stage = Stage.COMPLETE
    given = config.get("featureGates")
    merged: dict[str, object] = dict(given) if isinstance(given, Mapping) else {}
    for gate, on in gates(provider, stage, version).items():
        if on is None:
            merged.pop(gate, None)
        else:
            merged[gate] = on
    told = {key: value for key, value in config.items() if key != "featureGates"}
    return {**told, "featureGates": merged} if merged or "featureGates" in config else told


def _api_server(
    line: CommandLine, provider: Provider, stage: Stage, version: Version, cloud_config: str
) -> None:
    if stage is Stage.COMPLETE:
        line.remove(CLOUD_PROVIDER)
        line.remove(CLOUD_CONFIG)
        wanted, other = ADMISSION_OFF, ADMISSION_ON
    else:
        line.set(CLOUD_PROVIDER, provider.cloud)
        line.set(CLOUD_CONFIG, cloud_config)
        wanted, other = ADMISSION_ON, ADMISSION_OFF
    line.take_from(other, LABEL_ADMISSION)
    if version < LABEL_ADMISSION_GONE:
        line.add_to(wanted, LABEL_ADMISSION)
    else:
        line.take_from(wanted, LABEL_ADMISSION)


def _controllers(
    line: CommandLine, provider: Provider, stage: Stage, _version: Version, cloud_config: str
) -> None:
    line.set(CLOUD_PROVIDER, EXTERNAL)
    if stage is Stage.COMPLETE:
        line.remove(CLOUD_CONFIG)
        line.remove(VOLUME_PLUGIN)
    else:
        line.set(CLOUD_CONFIG, cloud_config)
        line.set(VOLUME_PLUGIN, provider.cloud)


def _scheduler(
    line: CommandLine, provider: Provider, stage: Stage, version: Version, cloud_config: str
) -> None:
    """It has gates alone."""


_FLAGS: dict[str, Callable[[CommandLine, Provider, Stage, Version, str], None]] = {
    "kube-apiserver": _api_server,
    "kube-controller-manager": _controllers,
    "kube-scheduler": _scheduler,
}


def _own_container(containers: object, name: object) -> int | None:
    """The place of the container that is named after its Deployment."""
    for number, container in enumerate(containers if isinstance(containers, list) else ()):
        if part(container, "name") == name:
            return number
    return None
