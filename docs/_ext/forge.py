"""Pages that are read on a forge, too: their links and lists make the site, and nothing is added to them.

- The pages that a folder's ``README.md`` links to are below it in the site's list of pages.
- Pages that a command wrote, in a folder of their own beside a paper's page, are in no list.
- A link to the README or the changelog of the checkout leads to the start page or the list of changes.
- A link to a folder becomes its name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

#: Files of the checkout -> the pages of the site that say the same.
SAME = {"README.md": "index", "CHANGELOG.md": "changes"}
_LINK = re.compile(r"\]\(([\w-]+\.(?:md|rst))(?:#[\w-]*)?\)")


def add_list_of_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """A hidden list of the pages of a folder, at the end of its first page."""
    folder, _, name = docname.rpartition("/")
    if "/" in folder:
        source[0] = "---\norphan: true\n---\n\n" + source[0]
    elif folder and name == "README":
        there = Path(app.srcdir) / folder
        linked = dict.fromkeys(link for link in _LINK.findall(source[0]) if (there / link).exists())
        source[0] += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(linked) + "\n```\n"


class LinksIntoTheCheckout(SphinxPostTransform):
    """Before MyST looks for their targets."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        root = Path(self.app.srcdir).resolve()
        same_pages = {root.parent / name: page for name, page in SAME.items()}
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("reftype") != "myst":
                continue
            target = node["reftarget"]
            of_a_page = node.get("refdomain") == "doc"
            base = root if of_a_page else (root / node["refdoc"]).parent
            path = Path(f"{base / target}.md" if of_a_page else base / target).resolve()
            same = same_pages.get(path)
            if same is not None:
                node["reftarget"] = same
            elif not of_a_page and path.is_dir():
                node.replace_self(nodes.inline("", "", *node.children[0].children, classes=["in-checkout"]))


def list_titles_alone(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """The theme's list of all pages, which has their titles alone, is made of titles alone: Sphinx would copy
    the headings of all pages for each page, and then drop them."""
    made = context.get("toctree")
    if made is None:
        return
    env = app.env
    if not hasattr(app, "headway_titles"):
        app.headway_titles = {name: _title_alone(toc) for name, toc in env.tocs.items()}

    def listed(**options: Any) -> str:
        whole, env.tocs = env.tocs, app.headway_titles if options.get("titles_only") else env.tocs
        try:
            return made(**options)
        finally:
            env.tocs = whole

    context["toctree"] = listed


def _title_alone(toc: nodes.bullet_list) -> nodes.bullet_list:
    """A page's headings without those below its title; the lists of pages in them stay."""
    title = toc.deepcopy()
    for entry in title.children:
        if len(entry.children) > 1:
            lists = list(entry.findall(addnodes.toctree))
            entry.pop(1)
            if lists:
                entry += nodes.bullet_list("", *lists)
    return title


def give_headings_a_level(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Sphinx says of the captions of lists of pages that they are headings, but not of which level."""
    if "furo_navigation_tree" in context:
        listed = str(context["furo_navigation_tree"])
        context["furo_navigation_tree"] = listed.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", add_list_of_pages)
    # Before the theme, and after it.
    app.connect("html-page-context", list_titles_alone, priority=100)
    app.connect("html-page-context", give_headings_a_level, priority=900)
    app.add_post_transform(LinksIntoTheCheckout)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
