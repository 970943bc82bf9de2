"""What a repository has to change, as a stream of YAML that says how to roll it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap

from replant.errors import printable
from replant.manifests import yamltext
from replant.plan.repository import Manifest, RepositoryChanges

_WIDTH = 98

_HEAD = """\
What a repository has to say once its volumes are native CSI ones.

A GitOps tool cannot roll this out: Kubernetes lets nobody change what a PersistentVolume or a
StorageClass is, and a tool that deletes a volume and makes it again does not hold its disk
meanwhile, nor its claim. So let Replant do it, and have the repository say what it has done:

1. Pause the tool: Argo CD: no automated sync of the application; Flux: flux suspend; Helm: no
   upgrade meanwhile.
2. replant convert --accept-owners --dry-run=false, with the same options but for -o. It writes down
   every volume, holds it (Retain) while it is replaced, and gives it its policy back.
3. Push these manifests in place of the old ones. What is only a patch belongs into the manifest of
   its workload; rolled out without step 2, its pods may wait for a disk that another node has.
4. Resume the tool: it finds what the repository says, and changes nothing.
"""


def text(changes: RepositoryChanges) -> str:
    """The whole stream."""
    return "".join(_parts(changes))


def _parts(changes: RepositoryChanges) -> Iterator[str]:
    manifests = (*changes.volumes, *changes.added, *changes.patches, *changes.classes)
    yield "".join(f"# {line}".rstrip() + "\n" for line in _HEAD.splitlines())
    if not manifests:
        yield "#\n# Nothing that was asked for changes.\n"
    if changes.left:
        yield "#\n"
        yield from _comments(f"Stays as it is: {it}" for it in changes.left)
    for manifest in manifests:
        yield from _document(manifest)


def _document(manifest: Manifest) -> Iterator[str]:
    yield "---\n"
    yield from _comments(manifest.notes)
    yield yamltext.dump(manifest.obj)


def _comments(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        # Whatever a name has in it stays a comment: it has no line ends by then.
        lines = wrap(printable(sentence), _WIDTH, break_long_words=False, break_on_hyphens=False)
        yield "".join(f"# {line}\n" for line in lines)
