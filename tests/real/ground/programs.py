"""The programs of the proving ground, built once into a cache of the user's.

A folder of the cache is named after everything that went into it, and appears whole or not at
all, so a build that was killed half-way is simply done again. `python -m
tests.real.ground.programs` builds all that is not there, and prints what it does.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.real.ground import needs

REAL = Path(__file__).parents[1]
OLD = "1.24.17"
"""Most migration gates can still be switched, and every in-tree plugin is still there."""
NEW = "1.36.3"
"""A cluster of today."""

KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
APT = ("-o", "Dir::State::lists=WORK/lists", "-o", "Dir::Cache=WORK")
"""The machine's own lists of packages stay as they are."""
DEBIAN = ("containerd", "runc", "busybox-static")
"""Unpacked into the cache rather than installed: nothing of the machine's own is touched."""


GO_FLAGS = ("-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false")
"""Nobody debugs these programs: a sixth of the compiler's time goes into what a debugger needs."""
GO_ENVIRONMENT = {"GOGC": "400"}
"""The compiler's own garbage collector runs less often: a further sixth of its time."""

UNUSED = 30 * 24 * 3600
"""Seconds after which what nobody uses is removed; another checkout may use what this does not."""


class Unavailable(Exception):
    """A program cannot be had; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class Recipe:
    """One folder of the cache: what goes in, and how it is made."""

    name: str
    inputs: tuple[Path, ...]
    commands: tuple[tuple[str, ...], ...]
    """Run in the folder of the first input, or in WORK, which is gone afterwards; OUT stands for
    where the programs go."""
    programs: tuple[str, ...]
    made_by: str = ""
    """What else decides about the outcome: a compiler, a release."""
    space: int = 2 * 10**9
    """Bytes of disk that making it may take, caches of the compiler included."""

    @property
    def folder(self) -> Path:
        digest = hashlib.sha256(repr((self.commands, self.made_by)).encode())
        for path in self.inputs:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return cache_folder() / f"{self.name}-{digest.hexdigest()[:12]}"

    def program(self, name: str) -> Path:
        return self.folder / name


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "replant"


@cache
def go_version() -> str:
    asked = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def _go_build(*what: str, stamp: str = "") -> tuple[str, ...]:
    flags = f"-s -w {stamp}".strip()
    return ("go", "build", *GO_FLAGS, "-ldflags", flags, "-o", "OUT", *what)


def _module(folder: Path) -> tuple[Path, ...]:
    found = (path for path in folder.rglob("*") if path.suffix in {".go", ".mod", ".sum"})
    return tuple(sorted(found, key=lambda path: (path.name != "go.mod", path)))


def kubernetes(version: str) -> Recipe:
    """The control plane and the kubelet, with every in-tree plugin that the version still has.

    They are built without the tag `providerless`, all four alike: the packages that they share
    are then compiled once, and the kubelet can mount in-tree too.
    """
    major, minor, _patch = version.split(".")
    stamp = " ".join(
        f"-X k8s.io/{package}.{variable}={value}"
        for package in ("component-base/version", "client-go/pkg/version")
        for variable, value in (
            ("gitVersion", f"v{version}"),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "clean"),
        )
    )
    return Recipe(
        f"kubernetes-{version}",
        _module(REAL / "controlplane" / version),
        (_go_build("tool", stamp=stamp),),
        KUBERNETES,
        go_version(),
        needs.KUBERNETES_SPACE,
    )


def etcd() -> Recipe:
    return Recipe(
        "etcd",
        _module(REAL / "etcd"),
        (_go_build("tool"), ("mv", "OUT/server", "OUT/etcd")),
        ("etcd",),
        go_version(),
    )


def csi() -> Recipe:
    return Recipe(
        "csi",
        _module(REAL / "csi"),
        (_go_build("tool", "./..."),),
        ("driver", "attacher", "csi-sanity"),
        go_version(),
    )


def provisioner() -> Recipe:
    """The provisioner that drivers ship with, in a module of its own: it wants older libraries."""
    return Recipe(
        "provisioner",
        _module(REAL / "provisioner"),
        (_go_build("tool"),),
        ("csi-provisioner",),
        go_version(),
    )


def reference() -> Recipe:
    """The reference translator: as of today, and the last that knew rbd."""
    return Recipe(
        "reference",
        _module(REAL / "reference"),
        (
            ("go", "build", *GO_FLAGS, "-o", "OUT/reference", "."),
            ("go", "build", *GO_FLAGS, "-o", "OUT/rbd", "-modfile=rbd.mod", "-tags=rbd", "."),
        ),
        ("reference", "rbd"),
        go_version(),
    )


GARDENER = ("clusters", "controlplanes")


def gardener() -> Recipe:
    """What a seed of Gardener defines, from its own module; none of its code is built."""
    files = tuple(f"10-crd-extensions.gardener.cloud_{it}.yaml" for it in GARDENER)
    folder = "$(go list -m -f '{{.Dir}}' github.com/gardener/gardener)/example/seed-crds"
    copied = " ".join(f"{folder}/{it}" for it in files)
    return Recipe(
        "gardener",
        _module(REAL / "gardener"),
        (
            ("go", "mod", "download", "github.com/gardener/gardener"),
            ("sh", "-c", f"cp -t OUT {copied}"),
        ),
        files,
    )


_MANIFESTS = "zz_generated.crd-manifests"
OPENSHIFT = {
    "featuregates": f"config/v1/{_MANIFESTS}/0000_10_config-operator_01_featuregates",
    "clusteroperators": f"config/v1/{_MANIFESTS}/"
    "0000_00_cluster-version-operator_01_clusteroperators",
    "kubeapiservers": f"operator/v1/{_MANIFESTS}/0000_20_kube-apiserver_01_kubeapiservers-Default",
    "kubecontrollermanagers": f"operator/v1/{_MANIFESTS}/"
    "0000_25_kube-controller-manager_01_kubecontrollermanagers",
    "kubeschedulers": f"operator/v1/{_MANIFESTS}/0000_25_kube-scheduler_01_kubeschedulers",
    "machineconfigpools": f"machineconfiguration/v1/{_MANIFESTS}/"
    "0000_80_machine-config_01_machineconfigpools",
}
"""Where OpenShift's module has its definitions, by what they define."""


def openshift() -> Recipe:
    """OpenShift's definitions, as its module has them: nothing is compiled."""
    module = "$(go list -m -f '{{.Dir}}' github.com/openshift/api)"
    copies = (f"cp {module}/{it}.crd.yaml OUT/{name}" for name, it in OPENSHIFT.items())
    return Recipe(
        "openshift",
        _module(REAL / "openshift"),
        (
            ("go", "mod", "download", "github.com/openshift/api"),
            *(("sh", "-ec", it) for it in copies),
        ),
        tuple(OPENSHIFT),
    )


def debian() -> Recipe:
    return Recipe(
        "debian",
        (),
        (
            ("mkdir", "-p", "WORK/lists/partial"),
            ("apt-get", "update", "-qq", *APT),
            # runc's library may not be on the machine, nor be there in the version that it wants.
            ("apt-get", "download", "-qq", *APT, *DEBIAN, "libseccomp2"),
            ("sh", "-c", "for package in *.deb; do dpkg-deb -x $package tree; done"),
            # Where in the tree a program is depends on the release.
            ("sh", "-c", "cp -t OUT $(find tree -type f -path '*bin/*')"),
            ("sh", "-c", "cp -Lt OUT $(find tree -name libseccomp.so.2)"),
        ),
        ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "busybox", "libseccomp.so.2"),
        f"{platform.machine()} {platform.freedesktop_os_release()}",
    )


def recipes() -> tuple[Recipe, ...]:
    """All that is to be built here: what the user has given is not."""
    own = [kubernetes(version) for version in (OLD, newest()) if not_given(version)]
    return (etcd(), reference(), csi(), provisioner(), gardener(), openshift(), debian(), *own)


def ensure_all(say: Callable[[str], None]) -> None:
    for recipe in recipes():
        ensure(recipe, say)


def given() -> Path | None:
    """The folder of ready-made programs that the user named, as the ecosystem does."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(named) if named else None


@cache
def given_version() -> str:
    """The Kubernetes version in the user's folder, or nothing if it has no kube-apiserver."""
    folder = given()
    if folder is None or not (folder / "kube-apiserver").exists():
        return ""
    asked = subprocess.run(
        [folder / "kube-apiserver", "--version"], capture_output=True, text=True, check=True
    )
    return re.sub(r"^Kubernetes v", "", asked.stdout.strip())


def newest() -> str:
    """The version that stands for clusters of today: the user's, if it is not the old one."""
    return given_version() if given_version() not in {"", OLD} else NEW


def not_given(version: str) -> list[str]:
    """The programs of a version that the user has not given, so that they must be built."""
    folder = given()
    if folder is None or version != given_version():
        return list(KUBERNETES)
    lacking = [name for name in KUBERNETES if not (folder / name).exists()]
    if lacking and version not in {OLD, NEW}:
        raise Unavailable(
            f"KUBEBUILDER_ASSETS has Kubernetes {version} but no {', '.join(lacking)}: put them "
            f"there, or unset the variable to have {NEW} built."
        )
    return lacking


def program(version: str, name: str) -> Path:
    """Where a program of that Kubernetes version is: given by the user, or built."""
    folder = given()
    if folder and (folder / name).exists() and (name == "etcd" or version == given_version()):
        return folder / name
    return (etcd() if name == "etcd" else kubernetes(version)).program(name)


def ensure(recipe: Recipe, say: Callable[[str], None]) -> None:
    """Build what is not there yet. One build at a time, whoever asks."""
    if recipe.folder.exists():
        os.utime(recipe.folder)
        return
    cache_folder().mkdir(parents=True, exist_ok=True)
    with _alone(cache_folder() / "lock"):
        _clear_half_built(say)
        if not recipe.folder.exists():
            _build(recipe, say)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _clear_half_built(say: Callable[[str], None]) -> None:
    for folder in cache_folder().glob("building-*"):
        say(f"removing {folder.name}: a build that was stopped half-way")
        shutil.rmtree(folder)


def _build(recipe: Recipe, say: Callable[[str], None]) -> None:
    if lack := needs.lack_of_space(cache_folder(), recipe.space):
        raise Unavailable(lack)
    for old in cache_folder().glob(f"{recipe.name}-????????????"):
        if time.time() - old.stat().st_mtime > UNUSED:
            say(f"removing {old.name}: nobody has used it for a month")
            shutil.rmtree(old)
    say(f"building {recipe.name}: {', '.join(recipe.programs)}")
    started = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="building-", dir=cache_folder()))
    out = work / "out"
    out.mkdir()
    for command in recipe.commands:
        places = (part.replace("OUT", str(out)).replace("WORK", str(work)) for part in command)
        _run(list(places), recipe, work)
    if lost := [name for name in recipe.programs if not (out / name).exists()]:
        raise Unavailable(f"Building {recipe.name} gave no {', '.join(lost)}.")
    out.rename(recipe.folder)
    shutil.rmtree(work)
    say(f"built {recipe.name} in {time.monotonic() - started:.0f} s")


def _run(command: list[str], recipe: Recipe, work: Path) -> None:
    where = recipe.inputs[0].parent if recipe.inputs else work
    environment = {**os.environ, **GO_ENVIRONMENT}
    done = subprocess.run(
        command, cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or ["no reason given"]
        raise Unavailable(f"{' '.join(command[:2])} for {recipe.name} failed: {why[0]}")


def main() -> int:
    if lacking := needs.missing():
        print(f"The proving ground needs {', '.join(lacking)}.", file=sys.stderr)
        return 1
    try:
        ensure_all(lambda line: print(line, file=sys.stderr, flush=True))
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The programs are in {cache_folder()}.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
