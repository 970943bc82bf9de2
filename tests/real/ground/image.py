"""The one image that pods run, made on the spot from Debian's static busybox."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

NAME = "replant.test/busybox:1"

REST = "trap exit TERM; sleep infinity & wait"
"""What it does unless told otherwise. The first process of a container must want to hear SIGTERM;
one that does not keeps whoever deletes its pod waiting for the whole grace period."""


def write(busybox: Path, archive: Path) -> None:
    """Write the image as an archive that `ctr images import` takes."""
    layer = _layer(busybox)
    config = {
        "architecture": _architecture(),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["sh", "-c", REST]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        _add(tar, "layer.tar", layer)
        _add(tar, "config.json", json.dumps(config).encode())
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _layer(busybox: Path) -> bytes:
    """The root of a container: busybox under each of its names."""
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for folder in ("bin", "etc", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        _add(tar, "bin/busybox", busybox.read_bytes())
        for name in set(names.split()) - {"busybox"}:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return content.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755
    tar.addfile(entry, io.BytesIO(content))


def _architecture() -> str:
    """As Go calls it, since that is how containerd looks for an image that fits."""
    asked = subprocess.run(["go", "env", "GOHOSTARCH"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()
