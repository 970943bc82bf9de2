"""Kubernetes versions, as servers and people write them."""

from __future__ import annotations

import re
from typing import NamedTuple

_WRITTEN = re.compile(r"v?(\d+)\.(\d+)\+?(?:\.(\d+))?(?:[-+].*)?")

_LATER_THAN_ANY = 999


class Version(NamedTuple):
    """A version to be compared; a minor alone stands for its first patch."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read 1.24, v1.24.17, 1.27.3-gke.100 or 1.25+; ValueError for anything else."""
        found = _WRITTEN.fullmatch(text.strip())
        if not found:
            raise ValueError(f"{text!r} is not a Kubernetes version such as 1.24 or v1.24.17")
        major, minor, patch = found.groups(default="0")
        return cls(int(major), int(minor), int(patch))

    def next_minor(self) -> Version:
        """The minor after this one."""
        return Version(self.major, self.minor + 1)

    def previous_minor(self) -> Version:
        """The minor before this one."""
        return Version(self.major, self.minor - 1)

    @property
    def first_patch(self) -> Version:
        """The first release of this minor."""
        return Version(self.major, self.minor)

    @property
    def newest_patch(self) -> Version:
        """The last release of this minor, whichever that is: later than any that we know."""
        return Version(self.major, self.minor, _LATER_THAN_ANY)

    @property
    def supported_skew(self) -> int:
        """By how many minors a kubelet may be older than an API server of this version."""
        return 3 if self >= Version(1, 28) else 2

    @property
    def of_minor(self) -> str:
        """Without the patch, such as 1.24."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"
