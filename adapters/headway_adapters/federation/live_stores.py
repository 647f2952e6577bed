"""What the site's commands do with the datasets of its stores: copy, compare, measure, remove.

Decisions that we took:

- Two checksums are the same if both commands print the same text, blanks at its ends aside. Where a command
  prints the dataset's own place, as ``sha256sum`` does, that place is left out of the comparison.
- A checksum that is empty, or longer than 64 KiB, is none.
- A size is the first word that is printed, as ``du -sb`` has it; anything else is no size.
"""

from __future__ import annotations

from headway.errors import Failure
from headway.inputs.placeholders import filled
from headway.model.transfers import Transfers
from headway_adapters.federation.live_commands import Commands, Ended, shown

#: How long a command that measures may take, seconds.
_MEASURING = 60.0


class Stores:
    """The stores of real sites. Every method but :meth:`measures` takes as long as its command."""

    def __init__(self, transfers: Transfers, commands: Commands) -> None:
        self._transfers = transfers
        self._commands = commands

    def why_not(self, site: str) -> str:
        """Why no command can name a site's store; "" if all can."""
        if self._transfers.stores.get(site):
            return ""
        return f"{site} has no path: clusters.{site}.site.store.path"

    def copy(self, dataset: str, source: str, site: str) -> None:
        """Copy a dataset. Raises :class:`Failure` if the command fails."""
        transfers = self._transfers
        argv = filled(
            transfers.copy, source=transfers.place(source, dataset), target=transfers.place(site, dataset),
            dataset=dataset,
        )  # fmt: skip
        said = self._commands.run(argv, transfers.timeout, quiet=True)
        if said.wrong:
            raise Failure(said.wrong)

    def compare(self, dataset: str, source: str, site: str) -> None:
        """Raise :class:`Failure` if two sites do not have the same, or if that cannot be told; nothing if no
        check is configured."""
        if not self._transfers.check:
            return
        there = self.checksum(dataset, source)
        found = self.checksum(dataset, site)
        if found != there:
            raise Failure(f"the checksum at {site} is {shown(found)!r}, at {source} {shown(there)!r}")

    def checksum(self, dataset: str, site: str) -> str:
        """What the check prints at a site. Raises :class:`Failure` if it prints no checksum."""
        try:
            text = self._commands.run(self._of(self._transfers.check, dataset, site), self._transfers.timeout)
            return text.text().replace(self._transfers.place(site, dataset), dataset)
        except Ended:
            raise
        except Failure as error:
            raise Failure(f"the check at {site} failed: {error}") from error

    @property
    def checks(self) -> bool:
        """Whether two copies can be compared."""
        return bool(self._transfers.check)

    @property
    def measures(self) -> bool:
        """Whether it can be told how many bytes are there."""
        return bool(self._transfers.size)

    def size(self, dataset: str, site: str) -> int | None:
        """How many bytes of a dataset a site has; None if that cannot be told."""
        if not self.measures:
            return None
        argv = self._of(self._transfers.size, dataset, site)
        try:
            said = self._commands.run(argv, min(self._transfers.timeout, _MEASURING)).text()
        except Ended:
            raise
        except Failure:
            return None
        word = said.split()[0]
        return int(word) if word.isascii() and word.isdigit() and len(word) < 20 else None

    def remove(self, dataset: str, site: str) -> str:
        """Remove a dataset, or what is there of it; why that failed, "" if it did not."""
        if not self._transfers.remove:
            return "no transfers.remove is configured"
        argv = self._of(self._transfers.remove, dataset, site)
        try:
            return self._commands.run(argv, self._transfers.timeout, quiet=True).wrong
        except Ended:
            raise
        except Failure as error:
            return str(error)

    def _of(self, words: tuple[str, ...], dataset: str, site: str) -> list[str]:
        return filled(words, store=self._transfers.stores[site], dataset=dataset)
