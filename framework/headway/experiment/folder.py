"""A campaign's results in a directory: what is needed to judge it again, and to repeat it.

``campaign.yaml`` (its definition as it was), ``rows.csv`` (a line an emulation), ``batches.csv`` (means of
batches of each emulation), ``workloads.json`` (what each workload looked like, with checksums of traces),
``method.json`` (version, seeds, what the rules found), ``record.json`` (what made the numbers, what failed),
``runs.jsonl`` (:mod:`headway.experiment.kept_runs`). ``docs/outputs/campaigns.md`` has every field.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from headway.errors import UserError
from headway.experiment.campaign import Campaign, Row, read_rows, write_rows
from headway.experiment.definition import load_campaign
from headway.experiment.facts import WorkloadFacts
from headway.experiment.rulebook import Judged, as_data
from headway.report.atomic import writing
from headway.version import __version__

CAMPAIGN, ROWS, BATCHES = "campaign.yaml", "rows.csv", "batches.csv"
WORKLOADS, METHOD, RECORD = "workloads.json", "method.json", "record.json"


def write_results(folder: Path, text: str, rows: Sequence[Row]) -> None:
    """All but what the rules found; ``text``: the definition. The folder exists."""
    with writing(folder / CAMPAIGN) as stream:
        stream.write(text)
    write_rows(folder / ROWS, rows)
    with writing(folder / BATCHES) as stream:
        writer = csv.writer(stream)
        writer.writerow(["scenario", "x", "variant", "seed", "metric", "batch", "mean"])
        for row in rows:
            for metric, means in row.batches.items():
                for at, mean in enumerate(means):
                    writer.writerow([*row.key, metric, at, mean])
    facts = {(row.scenario, row.x, row.seed): row.facts for row in rows if row.facts is not None}
    with writing(folder / WORKLOADS) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(list(facts.values())), indent=1).decode())
        stream.write("\n")


def write_method(folder: Path, files: Path, campaign: Campaign, found: Sequence[Judged]) -> None:
    """What the rules found; ``files``: the folder in which the files are that the definition names."""
    said: dict[str, Any] = {
        "version": __version__,
        # Where files that the definition names are.
        "folder": str(files.resolve()),
        "seeds": list(campaign.seeds),
        "rules": as_data(found),
    }
    with writing(folder / METHOD) as stream:
        json.dump(said, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """What made the results: program, libraries, files, seeds, when and where it ran, what failed."""
    with writing(folder / RECORD) as stream:
        json.dump(record, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


def read_record(folder: Path) -> dict[str, Any]:
    """What :func:`write_record` wrote; :class:`UserError` if there is something else, or nothing."""
    path = folder / RECORD
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{folder}: expected the results of headway compare, found no {RECORD}") from error
    except ValueError as error:
        raise UserError(f"{path}: expected a record, found something else ({error})") from error
    if not isinstance(found, dict) or not {"version", "code", "files", "folder"} <= found.keys():
        raise UserError(f"{path}: expected a record, found something else")
    return found


def read_results(folder: Path) -> tuple[Campaign, list[Row]]:
    """The campaign of a folder of results and its rows, with their batches and workloads.

    Raises :class:`UserError` if the folder holds something else.
    """
    for name in (CAMPAIGN, ROWS, BATCHES, WORKLOADS):
        if not (folder / name).is_file():
            raise UserError(f"{folder}: expected the results of headway compare, found no {name}")
    campaign = load_campaign(folder / CAMPAIGN, files_beside(folder), _plugin_files(folder))
    facts: dict[tuple[str, float, int], WorkloadFacts] = {}
    try:
        for one in msgspec.json.decode((folder / WORKLOADS).read_bytes(), type=list[WorkloadFacts]):
            facts[one.scenario, one.x, one.seed] = one
    except msgspec.MsgspecError as error:
        raise UserError(
            f"{folder / WORKLOADS}: expected workloads, found something else ({error})"
        ) from error
    batches: dict[Any, dict[str, list[float]]] = {}
    try:
        with open(folder / BATCHES, newline="", encoding="utf-8") as stream:
            for line in csv.DictReader(stream):
                key = (line["scenario"], float(line["x"]), line["variant"], int(line["seed"]))
                batches.setdefault(key, {}).setdefault(line["metric"], []).append(float(line["mean"]))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{folder / BATCHES}: expected means of batches, found something else") from error
    return campaign, [
        replace(row, batches=batches.get(row.key, {}), facts=facts.get((row.scenario, row.x, row.seed)))
        for row in read_rows(folder / ROWS)
    ]


def _plugin_files(folder: Path) -> list[Path]:
    """The files with plugins that the results were made with."""
    if not (folder / RECORD).is_file():
        return []
    found = read_record(folder).get("plugins", [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise UserError(f"{folder / RECORD}: plugins: expected a list of files, found {found!r}")
    return [Path(one) for one in found]


def files_beside(folder: Path) -> Path | None:
    """Where the files lie that the definition names; None: beside it."""
    try:
        said = json.loads((folder / METHOD).read_text(encoding="utf-8")).get("folder")
    except (OSError, ValueError, AttributeError):
        return None
    return Path(said) if isinstance(said, str) and Path(said).is_dir() else None
