"""Azure file shares."""

from __future__ import annotations

from replant.objects import Object
from replant.translate.drafts import ClassDraft, VolumeDraft
from replant.translate.fields import Fields, sparse
from replant.translate.plugin import READ_WRITE_MANY, InlineVolume, Plugin

RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group"

_DEFAULT_NAMESPACE = "default"
_SECRET_START, _SECRET_END = "azure-storage-account-", "-secret"


class AzureFile(Plugin):
    """``azure-file``: the handle is GROUP#ACCOUNT#SHARE#VOLUME#SECRET-NAMESPACE."""

    name = "kubernetes.io/azure-file"
    driver = "file.csi.azure.com"
    source = "azureFile"

    def pv_to_csi(self, source: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        namespace = source.maybe_text("secretNamespace")
        if namespace is None:
            claim = draft.spec.structure("claimRef")
            namespace = claim.text("namespace") if claim else ""
        if not namespace:
            source.refuse("secretNamespace", "is missing, and no claimRef names a namespace")
        return self._csi(source, draft.annotations.get(RESOURCE_GROUP, ""), draft.name, namespace)

    def pv_to_in_tree(self, csi: Fields, draft: VolumeDraft) -> Object:
        """See Plugin."""
        attributes = {k.lower(): v for k, v in csi.text_map("volumeAttributes").items()}
        share = attributes.get("sharename", "")
        secret = attributes.get("secretname", "")
        namespace = attributes.get("secretnamespace")
        stage = csi.structure("nodeStageSecretRef")
        if stage and stage.text("name"):
            secret, namespace = stage.text("name"), stage.text("namespace")
        handle = csi.required_text("volumeHandle")
        if not share or not secret:
            parts = handle.split("#")
            if len(parts) < 3:
                csi.refuse("volumeHandle", "needs two # to name the account and the share")
            group, account, handle_share = parts[:3]
            share = share or handle_share
            secret = secret or f"{_SECRET_START}{account}{_SECRET_END}"
            if group:
                draft.annotate({RESOURCE_GROUP: group})
        return {
            **sparse(readOnly=csi.flag("readOnly")),
            "secretName": secret,
            "secretNamespace": _DEFAULT_NAMESPACE if namespace is None else namespace,
            "shareName": share,
        }

    def inline_to_csi(self, source: Fields, volume: str, namespace: str) -> InlineVolume:
        """See Plugin."""
        csi = self._csi(source, "", volume, namespace or _DEFAULT_NAMESPACE)
        return InlineVolume(csi["volumeHandle"], csi, READ_WRITE_MANY)

    def class_to_csi(self, draft: ClassDraft) -> None:
        """See Plugin. The driver takes every in-tree parameter as it is."""

    def _csi(self, source: Fields, group: str, volume: str, namespace: str) -> Object:
        secret = source.required_text("secretName")
        share = source.required_text("shareName")
        return {
            "driver": self.driver,
            "volumeHandle": f"{group}#{_account(secret)}#{share}#{volume}#{namespace}",
            **sparse(readOnly=source.flag("readOnly")),
            "volumeAttributes": {"sharename": share},
            "nodeStageSecretRef": {"name": secret, "namespace": namespace},
        }


def _account(secret: str) -> str:
    """The storage account of a secret that follows the usual naming, else the secret's name."""
    start = secret.find(_SECRET_START)
    end = secret.rfind(_SECRET_END)
    first = start + len(_SECRET_START)
    return secret[first:end] if start >= 0 and end > first else secret
