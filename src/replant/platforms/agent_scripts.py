"""What an agent does on its node, as scripts for sh and what busybox has, and what they say."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

NOT_THERE, CHANGED, PUT_BACK, NOT_WRITTEN = 10, 11, 12, 13
"""What an agent's exit code says; its message says more."""

_COMMON = """
set -eu
say() { echo "$1" > "$SAYS"; exit "$2"; }
file=$HOST$FILE
due=$HOST$STATE/restart-due
[ -e "$file" ] || say "there is no such file" 10
[ -f "$file" ] && [ ! -L "$file" ] || say "it is not a regular file" 10
"""

READ = (
    _COMMON
    + """
echo "-- content"
base64 < "$file"
echo "-- kubelet"
for process in "$HOST"/proc/[0-9]*; do
    if [ "$(cat "$process/comm" 2>/dev/null)" = kubelet ]; then
        base64 < "$process/cmdline"
        break
    fi
done
echo "-- due"
if [ -e "$due" ]; then echo true; fi
echo "-- end"
"""
)
"""The file, the arguments of the node's kubelet, and whether that was never restarted after a
change. A dash is no part of base64."""

WRITE = (
    _COMMON
    + """
trap '' TERM
digest() { sha256sum < "$1" | cut -d ' ' -f 1; }
on_host() { PATH=/usr/sbin:/usr/bin:/sbin:/bin $ENTER /bin/sh -c "$1"; }
stays_up() {
    left=30; good=0
    while [ "$good" -lt 5 ]; do
        [ "$left" -gt 0 ] || return 1
        left=$((left - 1))
        if on_host "$CHECK"; then good=$((good + 1)); else good=0; fi
        sleep "$PAUSE"
    done
}
temp=$HOST$ASIDE/.replant-${FILE##*/}
[ "$(stat -c %d "${file%/*}")" = "$(stat -c %d "$HOST$ASIDE")" ] ||
    say "its folder and $ASIDE are not on the same file system" 13
backup=
now=$(digest "$file")
if [ "$now" != "$NEW" ]; then
    [ "$now" = "$OLD" ] || say "somebody has changed it meanwhile" 11
    mkdir -p "$HOST$STATE/backup"
    chmod 700 "$HOST$STATE/backup"
    backup=$STATE/backup/$(date -u +%Y%m%dT%H%M%SZ)-${FILE##*/}
    while [ -e "$HOST$backup" ]; do backup=$backup.1; done
    cp -p "$file" "$HOST$backup"
    dd if="$file" of="$HOST$backup" conv=fsync 2>/dev/null
    cp -p "$file" "$temp"
    echo "$CONTENT" | base64 -d | dd of="$temp" conv=fsync 2>/dev/null
    if [ "$(digest "$temp")" != "$NEW" ]; then
        rm -f "$temp"
        say "it could not be written whole, and is as it was" 13
    fi
    if [ -n "$RESTART" ] && [ ! -e "$due" ]; then echo "$backup" > "$due"; fi
    mv -f "$temp" "$file"
fi
if [ -n "$RESTART" ]; then
    if [ -e "$due" ]; then backup=$(cat "$due"); fi
    if ! { on_host "$RESTART" && stays_up; }; then
        [ -n "$backup" ] || say "the kubelet does not stay up" 12
        cp -p "$HOST$backup" "$temp"
        mv -f "$temp" "$file"
        # Between two starts there may be nothing to restart; what counts is that it stays up.
        on_host "$RESTART" || true
        stays_up || say "the kubelet does not stay up, not even with the file as it was" 12
        rm -f "$due"
        say "the kubelet does not stay up with it; the file is as it was" 12
    fi
    rm -f "$due"
fi
say "$backup" 0
"""
)
"""Keeps a copy, writes beside the file's folder (kubelet runs whatever is in that of manifests) and
renames; restarts the kubelet, and puts the copy back if it does not stay up. That a restart is due
is written down first, with the last copy that a kubelet is known to have run with, so that whoever
comes after one that was killed knows."""


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A file of a node, as an agent read it."""

    content: bytes
    kubelet: tuple[str, ...]
    """The arguments that the node's kubelet was started with, none if none was seen."""
    restart_due: bool
    """Whether the kubelet's file was changed, and the kubelet not restarted since."""


def what_was_read(said: str) -> NodeFile:
    """What an agent has read; KeyError or ValueError if that is not all of it."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in said.splitlines():
        if line.startswith("-- "):
            lines = sections.setdefault(line.removeprefix("-- "), [])
        else:
            lines.append(line)
    sections["end"]
    arguments = _decoded(sections["kubelet"]).decode(errors="replace").split("\0")
    return NodeFile(
        _decoded(sections["content"]),
        tuple(it for it in arguments if it),
        bool(sections["due"]),
    )


def _decoded(lines: list[str]) -> bytes:
    try:
        return base64.b64decode("".join(lines), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
