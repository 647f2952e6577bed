"""A page in headless Chromium, at several widths at once: what axe-core finds, and how large things are."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import axe_core_python
from devtools import chromium
from waiting import HANG

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --virtual-time-budget=60000 --window-size=1500,1000 --dump-dom"
)
#: What is asked of each frame when its page has done its work.
ASKED = """
async function looked(frame) {
  const page = frame.contentDocument, root = page.documentElement;
  const shown = (element) => element.getClientRects().length > 0;
  const script = page.createElement("script");
  script.textContent = document.getElementById("axe").textContent;
  page.head.append(script);
  // What is behind a summary is looked at, too.
  for (const details of page.querySelectorAll("details")) details.open = true;
  const found = await frame.contentWindow.axe.run(page, { resultTypes: ["violations"] });
  const charts = [...page.querySelectorAll("figure svg, figure canvas")].filter(shown);
  const canvas = page.querySelector("canvas");
  if (canvas) canvas.dispatchEvent(new frame.contentWindow.KeyboardEvent("keydown", { key: "n" }));
  const letters = charts.flatMap((chart) => [...chart.querySelectorAll("text")]);
  return {
    width: frame.clientWidth,
    dark: frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
    error: root.dataset.error || "",
    overflow: root.scrollWidth - frame.clientWidth,
    findings: found.violations.map((one) => [one.impact, one.id, one.nodes.map((node) => node.html)]),
    charts: charts.length,
    unnamed: charts.filter((chart) => !chart.getAttribute("aria-label")).length,
    told: [...page.querySelectorAll(".tip")].map((tip) => tip.textContent).join(),
    cut: charts.filter((chart) => chart.getBoundingClientRect().right > frame.clientWidth + 1)
      .map((chart) => chart.getAttribute("aria-label")),
    smallest: Math.min(...letters.map((letter) => letter.getBoundingClientRect().height)),
    hidden: [...page.querySelectorAll("td.n")].filter((cell) => shown(cell)
      && cell.cellIndex === 1 && cell.getBoundingClientRect().right > frame.clientWidth + 1)
      .map((cell) => cell.parentNode.textContent),
  };
}
addEventListener("load", async () => {
  const told = [];
  for (const frame of document.querySelectorAll("iframe")) told.push(await looked(frame));
  document.documentElement.dataset.told = JSON.stringify(told);
});
"""


def looked_at(pages: Sequence[tuple[str, int]], folder: Path, *, dark: bool) -> list[dict[str, Any]]:
    """What a browser has to say of each page at its width in pixels."""
    axe = Path(axe_core_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}"></iframe>'
        for page, width in pages
    )
    around = folder / "around.html"
    around.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><script type="text/plain" id="axe">{axe}</script>'
        f"<script>{ASKED}</script>{frames}",
        encoding="utf-8",
    )
    theme = [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    command = [chromium(), *OPTIONS.split(), *theme, f"--user-data-dir={folder / 'profile'}", around.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True)
    told = re.search(r'<html[^>]* data-told="([^"]*)"', ran.stdout)
    assert told is not None, ran.stdout[:2000]
    found: list[dict[str, Any]] = json.loads(html.unescape(told[1]))
    return found
