"""The same document as JSON's, in YAML that kubectl and people read alike."""

from __future__ import annotations

from replant.inventory.findings import ScanResult
from replant.manifests import yamltext
from replant.report.json_document import document


def render(result: ScanResult) -> str:
    """One YAML document."""
    return yamltext.dump(document(result))
