"""OpenShift's FeatureGate: what it still says of the migration when that means nothing."""

from __future__ import annotations

from collections.abc import Iterator

from replant.gates.featuresets import CONTROL_PLANE_SET, CUSTOM, NODE_SET, are_inert
from replant.gates.history import gate_at, known_gates
from replant.gates.versions import Version
from replant.inventory.checks.view import View
from replant.inventory.findings import Finding, ObjectRef, Severity
from replant.inventory.platform_records import FeatureGateSpec


def findings(view: View) -> Iterator[Finding]:
    """At most one; nothing on clusters that are not OpenShift."""
    features, server = view.inventory.feature_gate, view.server
    if features is None or server is None:
        return
    spec = features.spec or FeatureGateSpec()
    ref = ObjectRef("FeatureGate", features.metadata.name)
    if spec.feature_set in (CONTROL_PLANE_SET, NODE_SET):
        yield from _set(spec.feature_set, server, ref)
    if spec.feature_set == CUSTOM and (gone := _gone(spec, server)):
        yield Finding(
            "RP602",
            Severity.WARNING,
            ref,
            f"It lists {', '.join(gone)}, which Kubernetes {server.of_minor} does not know.",
            "Take them out of spec.customNoUpgrade: oc edit featuregate cluster",
        )


def _set(feature_set: str, server: Version, ref: ObjectRef) -> Iterator[Finding]:
    if not are_inert(server):
        return
    at = server.of_minor
    if not are_inert(server.previous_minor()):
        yield Finding(
            "RP602",
            Severity.INFO,
            ref,
            f"{feature_set} does nothing at {at}: all of its gates are on for good. It keeps "
            "volumes redirected if the cluster is downgraded, and goes with the next release.",
        )
        return
    yield Finding(
        "RP602",
        Severity.WARNING,
        ref,
        f"{feature_set} does nothing since the release before {at}: all of its gates are on for "
        "good. A later release does not know it any more.",
        """oc patch featuregate cluster --type merge -p '{"spec":{"featureSet":""}}'""",
    )


def _gone(spec: FeatureGateSpec, server: Version) -> list[str]:
    lists = spec.custom_no_upgrade
    named = (*(lists.enabled or ()), *(lists.disabled or ())) if lists else ()
    return [it for it in named if it in known_gates() and gate_at(it, server) is None]
