"""``headway claims``."""

from __future__ import annotations

from pathlib import Path

from commandline import Headway


def test_claims_names_what_is_stale_and_writes_it_anew(headway: Headway, tmp_path: Path) -> None:
    assert headway("claims", tmp_path).code == 0
    assert headway("reproduce", "scopred", "--seeds", 2, "--out", tmp_path / "results").code == 0
    page, claims = tmp_path / "scopred.md", tmp_path / "results" / "claims.md"
    page.write_text("<!-- claims: results -->\n<!-- /claims -->\n")
    ran = headway("claims", tmp_path)
    assert ran.code == 1
    assert f"stale       {page}:1: {claims} differs: " in ran.out
    assert f"up to date  {claims}: " in ran.out and ran.out.endswith("stale tables: 1\n")

    good = claims.read_text()
    claims.write_text(good.replace("| yes |", "| no |", 1))
    assert headway("claims", tmp_path).code == 1
    ran = headway("claims", tmp_path, "--write")
    assert ran.code == 0, ran.out
    assert claims.read_text() == good and "| yes |" in page.read_text()
    assert headway("claims", tmp_path).code == 0

    page.write_text("| where | holds? |\n|---|---|\n| by hand | yes |\n")
    ran = headway("claims", tmp_path, "--write")
    assert ran.code == 1 and f"{page}:1: a table of claims that no directory" in ran.out
