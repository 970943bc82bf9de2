"""The flags of a component, as a container's command and arguments have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

FEATURE_GATES = "feature-gates"
CLOUD_PROVIDER, CLOUD_CONFIG = "cloud-provider", "cloud-config"
VOLUME_PLUGIN = "external-cloud-volume-plugin"
ADMISSION_ON, ADMISSION_OFF = "enable-admission-plugins", "disable-admission-plugins"

_CHANGED = tuple(
    f"--{it}"
    for it in (
        FEATURE_GATES,
        CLOUD_PROVIDER,
        CLOUD_CONFIG,
        VOLUME_PLUGIN,
        ADMISSION_ON,
        ADMISSION_OFF,
    )
)


class CommandLine:
    """Changes flags where they stand, adds new ones at the end, and leaves all else alone."""

    def __init__(self, command: Iterable[str], args: Iterable[str]) -> None:
        self.command, self.args = _joined(command), _joined(args)

    def set(self, flag: str, value: str) -> None:
        """Have a flag once, with this value."""
        found = False
        for words in (self.command, self.args):
            places = _places(words, flag)
            if places and not found:
                words[places.pop(0)] = f"--{flag}={value}"
                found = True
            words[:] = [word for place, word in enumerate(words) if place not in places]
        if not found:
            self._home.append(f"--{flag}={value}")

    def remove(self, flag: str) -> None:
        """Have a flag no longer."""
        for words in (self.command, self.args):
            words[:] = [word for word in words if not word.startswith(f"--{flag}=")]

    def add_to(self, flag: str, element: str) -> None:
        """Have an element in a list, which is made if need be."""
        elements = self._elements(flag)
        if element not in elements:
            elements.append(element)
        self.set(flag, ",".join(elements))

    def take_from(self, flag: str, element: str) -> None:
        """Have an element in a list no longer; a list without any goes too."""
        elements = self._elements(flag)
        if element in elements:
            self._rewrite(flag, [it for it in elements if it != element])

    def gates(self, wanted: Mapping[str, bool | None]) -> None:
        """Have gates with these values, in their order behind those given; None takes one away."""
        given = [it.partition("=") for it in self._elements(FEATURE_GATES)]
        values = {name: value for name, _, value in given}
        for gate, on in wanted.items():
            if on is None:
                values.pop(gate, None)
            else:
                values[gate] = "true" if on else "false"
        self._rewrite(FEATURE_GATES, [f"{gate}={on}" for gate, on in values.items()])

    def _rewrite(self, flag: str, elements: list[str]) -> None:
        if elements:
            self.set(flag, ",".join(elements))
        else:
            self.remove(flag)

    def _elements(self, flag: str) -> list[str]:
        """A list's elements, in order; given twice, lists add up."""
        prefix = f"--{flag}="
        words = [it for it in (*self.command, *self.args) if it.startswith(prefix)]
        found = (it.strip() for word in words for it in word.removeprefix(prefix).split(","))
        return list(dict.fromkeys(it for it in found if it))

    @property
    def _home(self) -> list[str]:
        """Where flags are: with the arguments, unless the command itself has them."""
        flagged = any(it.startswith("--") for it in self.command)
        return self.command if flagged or not self.args else self.args


def _places(words: list[str], flag: str) -> list[int]:
    return [place for place, word in enumerate(words) if word.startswith(f"--{flag}=")]


def _joined(words: Iterable[str]) -> list[str]:
    """The words with flags that we change written with their value in one.

    Such a flag takes whatever comes next, as the components' own parser has it.
    """
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in _CHANGED:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return [f"{word}=" if word in _CHANGED else word for word in joined]
