"""The report of a torture run, for people."""

from __future__ import annotations

from collections import Counter

from torture.campaign import Outcome


def report(outcome: Outcome) -> str:
    """As text in Markdown; the last line is the verdict."""
    history, journal = outcome.history, outcome.journal
    asked = Counter(one.kind for one in history.asked if one.accepted)
    struck = Counter(one.target.split(":")[0] for one in history.struck)
    keys = sum(len(job.keys) for job in history.wanted.values())
    lines = [
        f"# Torture of {outcome.system}: seed {outcome.seed}, {outcome.kills} kills",
        "",
        f"- {outcome.seconds:.0f} s; killed: "
        + ", ".join(f"{who} {n} times" for who, n in sorted(struck.items())),
        f"- {asked['submit']} jobs taken ({keys} with arrays' elements), {outcome.runs} runs by their stamps",
        "- done to them: "
        + ", ".join(f"{kind} {n}" for kind, n in sorted(asked.items()) if kind != "submit"),
        f"- journal: {journal.runs} runs of headway, {journal.cycles} cycles, {journal.events} events, "
        f"{journal.decisions} decisions; {journal.cut_short} runs killed before their last were written",
        f"- {journal.starts} starts decided, {len(journal.failed_starts)} of them failed",
    ]
    lines += [f"  - {text}" for text in journal.failed_starts[:20]]
    if outcome.records.oddities or outcome.mended:
        lines.append("- the system's own faults: " + _counts(outcome.records.oddities))
        lines += [f"  - {text}" for text in outcome.mended]
    lines.append("- headway's warnings: " + (_counts(outcome.said) or "none"))
    lines += [f"- {text}" for _, text in history.notes]
    theirs = [one for one in outcome.anomalies if one.system]
    for title, found in (("Anomalies", outcome.headways), (f"Faults of {outcome.system} itself", theirs)):
        lines += ["", f"## {title}: {len(found) or 'none'}", ""]
        lines += [f"- {one}" for one in found]
    verdict = f"{len(outcome.headways)} anomalies" if outcome.headways else "clean"
    return "\n".join(
        [*lines, "", f"{outcome.system}, seed {outcome.seed}, {outcome.kills} kills: {verdict}", ""]
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} ({n})" for what, n in sorted(counts.items()))
