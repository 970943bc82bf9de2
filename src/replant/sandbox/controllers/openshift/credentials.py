"""The cloud-credential operator: who asks for credentials is given a Secret."""

from __future__ import annotations

import base64
from functools import partial

from replant.objects import Object
from replant.sandbox.controllers.base import Controller, Key, Queue, World, key_of
from replant.sandbox.controllers.openshift.objects import CREDENTIALS
from replant.sandbox.controllers.openshift.operators import served
from replant.sandbox.resources import NAMESPACES, SECRETS
from replant.sandbox.shelves import DELETED, Event

GRANTING = 5.0
"""Seconds in which a cloud makes a role."""


_KEYS = {
    "AWSProviderSpec": ("aws_access_key_id", "aws_secret_access_key", "credentials"),
    "GCPProviderSpec": ("service_account.json",),
    "OpenStackProviderSpec": ("clouds.yaml", "clouds.conf"),
    "AzureProviderSpec": ("azure_client_id", "azure_client_secret", "azure_tenant_id"),
    "VSphereProviderSpec": ("vcenter.username", "vcenter.password"),
}
"""What its Secrets have, by the cloud: not always what drivers read."""


class CloudCredentials(Controller):
    """Answers CredentialsRequests, and makes Secrets again that are gone."""

    hears_all = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._requests = served(world, CREDENTIALS, "CredentialsRequest")
        self._asked: Queue[Key] = Queue()

    def heard(self, event: Event) -> None:
        """Note requests, and what they may wait for or have lost."""
        resource = event.entry.resource
        if resource == self._requests:
            self._asked.add(key_of(event.entry))
        elif resource is NAMESPACES or (resource is SECRETS and event.type == DELETED):
            self._asked.add_all(key_of(it) for it in self.store.entries(self._requests))

    def work(self) -> bool:
        """Grant after a while what is asked for."""
        if not self._asked:
            return False
        for key in self._asked.take():
            if self._is_open(key):
                self.world.clock.after(GRANTING, partial(self._grant, key))
        return True

    def _wanted(self, key: Key) -> Key | None:
        """The Secret that is asked for, if there is a place for it."""
        found = self.store.find(self._requests, key[1], key[0])
        wanted = (found.value().get("spec") or {}).get("secretRef") or {} if found else {}
        namespace, name = wanted.get("namespace", ""), wanted.get("name", "")
        there = namespace and name and self.store.find(NAMESPACES, namespace)
        return (namespace, name) if there else None

    def _is_open(self, key: Key) -> bool:
        wanted = self._wanted(key)
        if wanted is None:
            return False
        request = self.store.get(self._requests, key[1], key[0])
        said = (request.get("status") or {}).get("provisioned")
        return not (said and self.store.find(SECRETS, wanted[1], wanted[0]))

    def _grant(self, key: Key) -> None:
        wanted = self._wanted(key)
        if wanted is None or not self._is_open(key):
            return
        if not self.store.find(SECRETS, wanted[1], wanted[0]):
            given = base64.b64encode(f"of {key[1]}".encode()).decode()
            metadata = {"name": wanted[1], "namespace": wanted[0]}
            request = self.store.get(self._requests, key[1], key[0])
            kind = (request["spec"].get("providerSpec") or {}).get("kind", "")
            data = dict.fromkeys(_KEYS.get(kind, ("credentials",)), given)
            self.store.create(SECRETS, {"metadata": metadata, "data": data})

        def say(request: Object) -> None:
            generation = request["metadata"].get("generation", 1)
            request["status"] = {"provisioned": True, "lastSyncGeneration": generation}

        self.world.change(self._requests, key, say, "status")
