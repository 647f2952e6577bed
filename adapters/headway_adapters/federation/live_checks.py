"""What ``headway check`` says of copies between real sites: commands and stores that are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from headway.adapter import Check
from headway.errors import Failure
from headway.model.sites import Sites
from headway.model.transfers import Transfers
from headway_adapters.federation.live_commands import Commands

#: What is missing where a command is not configured, and what to do about it.
_WITHOUT = {
    "check": ("a copy counts as soon as its command ends with 0", "transfers.check: name a checksum command"),
    "size": ("how far a copy is, is not told", ""),
}


def check_transfers(
    transfers: Transfers, sites: Callable[[Mapping[str, Sequence[str]]], Sites | None] | None
) -> list[Check]:
    """The commands, the stores and their original datasets; nothing where no site has a store."""
    found = sites({}) if sites is not None else None
    if not transfers.copy:
        if not transfers.stores:
            return []
        return [
            Check(
                "transfers.copy", True, "none, so datasets of real clusters are not copied",
                "name a command if plugins copy datasets", known=False,
            )
        ]  # fmt: skip
    return [*_commands(transfers), *_stores(transfers), *_originals(transfers, found)]


def _commands(transfers: Transfers) -> Iterator[Check]:
    places = Commands()
    for name in ("copy", "check", "size", "remove"):
        words = getattr(transfers, name)
        subject = f"transfers.{name}"
        if words:
            try:
                yield Check(subject, True, places.find(words[0])).for_driving()
            except Failure as error:
                yield Check(subject, False, str(error), f"install it, or correct {subject}").for_driving()
        elif name == "remove":
            lacks = "none: what a failed copy leaves behind stays, and no copy can be dropped"
            yield Check(subject, False, lacks, "name a command that removes a dataset").for_driving()
        elif name in _WITHOUT:
            lacks, remedy = _WITHOUT[name]
            yield Check(subject, True, f"none: {lacks}", remedy, known=not remedy)


def _stores(transfers: Transfers) -> Iterator[Check]:
    if not transfers.stores:
        yield Check(
            "transfers.copy", False, "no cluster has a store, so nothing can be copied",
            "clusters.NAME.site.store: say where each has its datasets",
        ).for_driving()  # fmt: skip
    times = Counter(transfers.stores.values())
    for site, path in transfers.stores.items():
        subject, key = f"{site}: store", f"clusters.{site}.site.store.path"
        if not path:
            found = "it has no path, so no command can name it"
            yield Check(subject, False, found, f"{key}: what stands for it in commands").for_driving()
        elif times[path] > 1:
            found = f"{path}: {times[path]} sites have this path, and commands cannot tell them apart"
            yield Check(subject, False, found, f"{key}: a path for each site").for_driving()
        elif path.startswith("/") and not Path(path).is_dir():
            found = f"{path}: there is no such directory here"
            yield Check(subject, False, found, f"make it, mount it, or correct {key}").for_driving()
        else:
            yield Check(subject, True, path)


def _originals(transfers: Transfers, sites: Sites | None) -> Iterator[Check]:
    """Datasets that should be in stores which are directories here, and are not."""
    for dataset in sites.datasets if sites is not None else ():
        for site in dataset.at:
            path = transfers.stores.get(site, "")
            place = Path(path) / dataset.name
            if path.startswith("/") and Path(path).is_dir() and not place.exists():
                yield Check(
                    f"dataset {dataset.name}", False, f"{place}: {site} is to have it, and it is not there",
                    f"put it there, or correct datasets.{dataset.name}.at",
                )  # fmt: skip
