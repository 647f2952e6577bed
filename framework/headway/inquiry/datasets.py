"""Which dataset is where, which copies are on their way, and what room the stores have."""

from __future__ import annotations

import math

from headway.inquiry.reports import CopyReport, DatasetList, DatasetReport, ReplicaReport, StoreReport
from headway.model.sites import Dataset
from headway.state.catalogue import Catalogue


def dataset_list(catalogue: Catalogue) -> DatasetList:
    """All datasets and stores, in the configuration's order."""
    stores = [
        StoreReport(name, site.store.capacity or None, catalogue.used(name))
        for name, site in catalogue.sites.items()
        if site.store is not None
    ]
    return DatasetList(
        tuple(_dataset(catalogue, dataset) for dataset in catalogue.datasets.values()), tuple(stores)
    )


def _dataset(catalogue: Catalogue, dataset: Dataset) -> DatasetReport:
    found = catalogue.replicas[dataset.name]
    at = [
        ReplicaReport(site, None if math.isinf(found[site]) else found[site])
        for site in catalogue.sites
        if site in found
    ]
    copies = [
        CopyReport(one.site, one.source, one.since, one.done)
        for (name, _), one in catalogue.copies.items()
        if name == dataset.name
    ]
    return DatasetReport(dataset.name, dataset.size, tuple(at), tuple(copies))
