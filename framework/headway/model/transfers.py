"""How the datasets of real sites are copied, checked and removed: the site's own commands."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Transfers(msgspec.Struct, frozen=True):
    """Argument vectors with placeholders such as ``{store}``, and what goes with them."""

    #: Copies a dataset: {source}, {target}, {dataset}. Empty: nothing is copied.
    copy: tuple[str, ...] = ()
    #: Prints a checksum of a dataset in a store: {store}, {dataset}. Empty: no check.
    check: tuple[str, ...] = ()
    #: Prints how many bytes of a dataset are in a store: {store}, {dataset}. Empty: not known.
    size: tuple[str, ...] = ()
    #: Removes a dataset from a store: {store}, {dataset}. Empty: nothing is removed.
    remove: tuple[str, ...] = ()
    #: Seconds after which a command is ended.
    timeout: float = 86400.0
    #: Copies that run at the same time.
    parallel: int = 4
    #: Site with a store -> what stands for the store in commands; "": that is not configured.
    stores: Mapping[str, str] = {}
    #: No command that changes anything may be run.
    read_only: bool = False

    @property
    def copies(self) -> bool:
        """Whether datasets can be copied."""
        return bool(self.copy and self.stores)

    @property
    def drops(self) -> bool:
        """Whether copies can be removed."""
        return self.copies and bool(self.remove)

    def place(self, site: str, dataset: str) -> str:
        """A dataset in a site's store."""
        store = self.stores[site]
        return f"{store}{dataset}" if store.endswith(("/", ":")) else f"{store}/{dataset}"
