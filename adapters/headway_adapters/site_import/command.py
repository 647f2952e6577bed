"""The command ``headway import``."""

from __future__ import annotations

import zoneinfo
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.as_json import json_option, say_json
from headway.cli.common import examples, messages, say
from headway.errors import UserError

if TYPE_CHECKING:
    from headway.plugins import Catalogue
    from headway_adapters.site_import.found import Imported, Line


@click.command(
    "import",
    epilog=examples(
        "sacctmgr dump CLUSTER file=slurm.dump; sacctmgr -P show qos > qos.txt",
        "headway import slurm /etc/slurm/slurm.conf slurm.dump qos.txt --out site.yaml",
        "headway import maui /usr/local/maui/maui.cfg --out site.yaml",
        "headway import pbs sched_config holidays dedicated_time --zone Europe/Berlin --out site.yaml",
    ),
)
@click.argument("system", type=click.Choice(["slurm", "maui", "pbs"]))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the configuration to this file, which must not exist yet. Default: standard "
                   "output.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--zone", metavar="ZONE",
              help="Time zone of the times of day in the files, such as Europe/Berlin. Default: "
                   "UTC.")  # fmt: skip
@json_option("headway_adapters.site_import.report:ImportReport")
def command(
    system: str, files: tuple[Path, ...], out: Path | None, force: bool, zone: str | None, as_json: bool
) -> None:
    """Write the configuration that does what a site's scheduler does now.

    Reads slurm.conf (or the output of `scontrol show config`) with what sacctmgr prints; maui.cfg; or PBS's
    sched_config, resource_group, holidays and dedicated_time and the output of `qmgr -c "print server"`.
    Lists, line by line, what could not be carried over; it stands in the configuration, too.

    Exit code 1 if a line could not be read; the configuration is written all the same.
    """
    from headway.plugins import Catalogue
    from headway.report.atomic import writing
    from headway_adapters.site_import.found import read_lines

    if out is not None and out.exists() and not force:
        raise UserError(f"--out {out}: the file exists already (--force overwrites it)")
    if zone is not None:
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise UserError(f"--zone: expected a time zone such as Europe/Berlin, found {zone!r}") from None
    found = imported(system, [read_lines(path) for path in files], Catalogue(), zone)
    text = found.text(f"{system}: {', '.join(str(path) for path in files)}")
    if out is not None:
        with writing(out) as stream:
            stream.write(text)
    remarks, console = found.ordered(), messages()
    if as_json:
        from headway_adapters.site_import.report import ImportReport, RemarkReport

        told = tuple(RemarkReport(str(remark), remark.broken) for remark in remarks)
        say_json(ImportReport(text, len(found.plugins), told, None if out is None else str(out)))
    elif out is None:
        click.echo(text, nl=False)
    for remark in remarks:
        say(str(remark), console, "red" if remark.broken else "yellow")
    if out is not None:
        said = f"{len(found.plugins)} plugins; {len(remarks)} remarks on settings that are not carried over"
        say(f"{out}: {said}", console)
    if any(remark.broken for remark in remarks):
        raise SystemExit(1)


def imported(system: str, files: list[list[Line]], catalogue: Catalogue, zone: str | None = None) -> Imported:
    """What the files of a batch system say, with plugins whose options are accepted."""
    from headway_adapters.site_import.found import Line
    from headway_adapters.site_import.maui import import_maui
    from headway_adapters.site_import.pbs import import_pbs
    from headway_adapters.site_import.slurm import import_slurm

    if system == "slurm":
        found = import_slurm(files)
    else:
        found = {"maui": import_maui, "pbs": import_pbs}[system](files, zone)
    found.files = [lines[0].file for lines in files if lines]
    found.check(catalogue, next((line for lines in files for line in lines), Line(system, 1, "")))
    return found
