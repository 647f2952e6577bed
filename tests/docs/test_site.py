"""The documentation as a site: it is built without a warning, whole, alone, and read by everybody."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from waiting import HANG

from headway.cli import cli
from headway.plugins import Catalogue
from headway.plugins.hook_names import hook_names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: The worst that a page may have, of axe's four grades.
BAD = {"serious", "critical"}
#: Looked at in a browser: start page, a task, a long page with tables, and one that the code makes.
LOOKED_AT = ("index", "tasks/why", "operators/configuration", "reference/hooks")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once: warnings are errors, dead links and anchors among them."""
    if importlib.util.find_spec("furo") is None:
        pytest.skip("needs the extra docs")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", DOCS, out],
        capture_output=True, text=True, timeout=4 * HANG,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shutil.rmtree(out / ".doctrees")
    return out


def text_of(page: Path) -> str:
    """What a page says."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


@pytest.mark.long
@pytest.mark.xdist_group("site")
class TestSite:
    """One worker builds it and looks at it."""

    def test_each_page_is_there_and_reached_from_the_start_page(self, site: Path) -> None:
        sources = {
            path.relative_to(DOCS).with_suffix("")
            for kind in ("md", "rst")
            for path in DOCS.rglob(f"*.{kind}")
        }
        built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
        assert sources <= built
        listed = set(re.findall(r'href="([\w/-]+)\.html"', (site / "index.html").read_text(encoding="utf-8")))
        # Tables that a command wrote, beside a paper's page, are linked to from there.
        expected = {str(path) for path in sources if len(path.parts) < 3}
        assert expected - listed == {"index"}

    def test_nothing_is_fetched_from_another_host(self, site: Path) -> None:
        for page in site.rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            assert re.findall(r'<(?:script|img|iframe)\b[^>]*\bsrc="(?:https?:)?//[^"]*', text) == [], page
            links = re.findall(r"<link\b[^>]*>", text)
            assert [one for one in links if re.search(r'href="(?:https?:)?//', one)] == [], page
        for style in site.rglob("*.css"):
            assert not re.search(r"url\([\"']?(?:https?:)?//|@import", style.read_text(encoding="utf-8")), (
                style
            )

    def test_the_search_knows_the_words_of_the_reference_and_of_the_guide(self, site: Path) -> None:
        index = (site / "searchindex.js").read_text(encoding="utf-8")
        for word in ("mainten", "journal", "backfil", "multifactor"):
            assert f'"{word}' in index
        assert (site / "search.html").exists()

    def test_the_reference_has_every_command_plugin_and_hook(self, site: Path) -> None:
        pages = {name: text_of(site / "reference" / f"{name}.html") for name in ("plugins", "hooks")}
        catalogue = Catalogue()
        ids = (site / "reference" / "plugins.html").read_text(encoding="utf-8")
        for plugin, kind in catalogue.loadable().items():
            assert f'id="plugin-{plugin}"' in ids
            options = catalogue.info(plugin).options
            for key, field in (options.model_fields if options is not None else {}).items():
                assert (field.alias or key) in pages["plugins"], (plugin, kind, key)
        for preset in catalogue.presets():
            assert preset in pages["plugins"]
        ids = (site / "reference" / "hooks.html").read_text(encoding="utf-8")
        assert [hook for hook in hook_names() if f'id="hook-{hook.replace("_", "-")}"' not in ids] == []
        commands = "".join(
            page.read_text(encoding="utf-8") for page in (site / "reference").glob("commands_*.html")
        )
        context = click.Context(cli, info_name="headway")
        for name in cli.list_commands(context):
            command = cli.get_command(context, name)
            if command is not None and not command.hidden:
                assert f'id="headway-{name}"' in commands, name

    @pytest.mark.browser
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_nothing_serious(self, site: Path, scheme: str, tmp_path: Path) -> None:
        browser = shutil.which("chromium")
        axe = importlib.util.find_spec("axe_core_python")
        if browser is None or axe is None or axe.origin is None:
            reason = "needs Debian's chromium, and axe-core-python"
            if os.environ.get("CI") == "true":
                pytest.fail(reason)
            pytest.skip(reason)
        program = (Path(axe.origin).parent / "axe.min.js").read_text(encoding="utf-8")
        (site / "_static" / "axe.js").write_text(program, encoding="utf-8")
        for name in LOOKED_AT:
            assert findings(browser, site, name, scheme, tmp_path) == [], name


#: Asks axe when the page has been drawn; the answer is read from the page's text.
_ASK = """
<script src="{root}_static/axe.js"></script>
<script>
document.body.dataset.theme = "{scheme}";
addEventListener("load", () => axe.run({{resultTypes: ["violations"]}}).then((found) => {{
  const kept = found.violations.map((one) => [one.impact, one.id, one.nodes.slice(0, 3).map((n) => n.html)]);
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(kept);
  document.body.append(told);
}}));
</script>
"""


def findings(browser: str, site: Path, name: str, scheme: str, folder: Path) -> list[object]:
    """What axe finds on a page that is serious: its rule and some elements."""
    page = site / f"{name}.html"
    ask = _ASK.format(root="../" * name.count("/"), scheme=scheme)
    asked = page.with_name(f"{page.stem}-asked.html")
    asked.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{ask}</body>"), encoding="utf-8")
    options = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=60000 --dump-dom"
    )
    try:
        done = subprocess.run(
            [browser, *options.split(), f"--user-data-dir={folder / 'profile'}", asked.as_uri()],
            capture_output=True, text=True, timeout=HANG, check=True,
        )  # fmt: skip
    finally:
        asked.unlink()
    told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    assert told is not None, "axe did not answer"
    return [one for one in json.loads(html.unescape(told[1])) if one[0] in BAD]
