"""The one table of plugins, and the names by which they are found."""

from __future__ import annotations

from replant.errors import TranslationError, shown
from replant.translate.aws_ebs import AwsEbs
from replant.translate.azure_disk import AzureDisk
from replant.translate.azure_file import AzureFile
from replant.translate.cinder import Cinder
from replant.translate.gce_pd import GcePd
from replant.translate.plugin import Plugin
from replant.translate.portworx import Portworx
from replant.translate.rbd import Rbd
from replant.translate.vsphere import Vsphere

PREFIX = "kubernetes.io/"

PLUGINS: tuple[Plugin, ...] = (
    AwsEbs(),
    GcePd(),
    Cinder(),
    AzureDisk(),
    AzureFile(),
    Vsphere(),
    Portworx(),
    Rbd(),
)

BY_NAME = {plugin.name: plugin for plugin in PLUGINS}
BY_DRIVER = {plugin.driver: plugin for plugin in PLUGINS}
BY_SOURCE = {plugin.source: plugin for plugin in PLUGINS}


def by_name(name: object) -> Plugin:
    """The plugin of that name, with or without ``kubernetes.io/``."""
    if isinstance(name, str):
        plugin = BY_NAME.get(name) or BY_NAME.get(PREFIX + name)
        if plugin:
            return plugin
    raise _unknown("in-tree plugin", name)


def by_driver(driver: object) -> Plugin:
    """The plugin that the CSI driver of that name takes over."""
    plugin = BY_DRIVER.get(driver) if isinstance(driver, str) else None
    if plugin:
        return plugin
    raise _unknown("CSI driver", driver)


def _unknown(what: str, name: object) -> TranslationError:
    called = shown(name) if isinstance(name, str) else f"a {type(name).__name__}"
    known = ", ".join(BY_NAME if what == "in-tree plugin" else BY_DRIVER)
    return TranslationError(f"is not a known {what}; known are {known}", obj=called)
