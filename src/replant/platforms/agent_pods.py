"""The pods of agents: what is asked for, what they need around them, and how they do."""

from __future__ import annotations

import msgspec

from replant.cluster.ports import NAMESPACES, Resource
from replant.execute.namespace import NAMESPACE
from replant.objects import Object

ACCOUNT = "replant-agent"
LABEL = "replant.dev/agent"
SECURITY = "pod-security.kubernetes.io/enforce"
SERVICE_ACCOUNTS = Resource("ServiceAccount", "serviceaccounts", namespaced=True)

PATIENCE = 300.0
"""Seconds for an agent to come and go, with its image pulled and a kubelet restarted."""

GRACE = 120
"""Seconds in which one that is told to go ends what it has begun."""

STATE = "/var/lib/replant"


def agent_pod(
    name: str, node: str, image: str, script: str, given: dict[str, str], *, writes: bool
) -> Object:
    """An agent, bound to its node whatever taints that has."""
    told = {
        "HOST": "/host",
        "ENTER": "chroot /host",
        "STATE": STATE,
        "SAYS": "/dev/termination-log",
        "PAUSE": "1",
        **given,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {LABEL: "true", "app.kubernetes.io/managed-by": "replant"},
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": int(2 * PATIENCE),
            "terminationGracePeriodSeconds": GRACE,
            "priorityClassName": "system-node-critical",
            "tolerations": [{"operator": "Exists"}],
            "serviceAccountName": ACCOUNT,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostPID": True,
            # It needs no network, so it shall not wait for one.
            "hostNetwork": True,
            "containers": [
                {
                    "name": "agent",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", _literal(script)],
                    "env": [{"name": it, "value": _literal(text)} for it, text in told.items()],
                    "securityContext": {"privileged": True, "runAsUser": 0},
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "volumeMounts": [
                        {"name": "host", "mountPath": "/host", "readOnly": not writes}
                    ],
                }
            ],
            "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
        },
    }


def _literal(text: str) -> str:
    """A text in which Kubernetes finds no $(VARIABLE) of its own."""
    return text.replace("$", "$$")


def surroundings() -> list[tuple[Resource, Object]]:
    """An account of its own, since a new namespace has none while the controllers are away."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": {SECURITY: "privileged"},
        },
    }
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "automountServiceAccountToken": False,
    }
    return [(NAMESPACES, namespace), (SERVICE_ACCOUNTS, account)]


class Waiting(msgspec.Struct):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class Terminated(msgspec.Struct):
    """How a container ended."""

    exit_code: int = msgspec.field(name="exitCode", default=-1)
    message: str = ""
    reason: str = ""


class State(msgspec.Struct):
    """Whether an agent waits, or has ended."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class _Container(msgspec.Struct):
    state: State = msgspec.field(default_factory=State)


class _PodStatus(msgspec.Struct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    containers: list[_Container] = msgspec.field(name="containerStatuses", default_factory=list)


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    version: str = msgspec.field(name="resourceVersion")


class Pod(msgspec.Struct):
    """An agent's pod, as far as it tells how the agent does."""

    metadata: _Metadata
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    @property
    def state(self) -> State:
        """That of its only container."""
        return self.status.containers[0].state if self.status.containers else State()


class Pods(msgspec.Struct):
    """A list of agents' pods."""

    items: list[Pod]


def how_it_is(pod: Pod) -> str:
    """All that a pod says of itself, for a person."""
    waiting = pod.state.waiting
    parts = (waiting.reason, waiting.message) if waiting else ("", "")
    said = (pod.status.phase or "Pending", pod.status.reason, pod.status.message, *parts)
    return ": ".join(it for it in said if it)
