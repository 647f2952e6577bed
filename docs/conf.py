"""How Sphinx makes a site of these pages: ``make docs``."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from headway import __version__  # noqa: E402

project = "headway"
version = release = __version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "sphinx_copybutton", "forge", "reference"]
exclude_patterns = ["_ext"]
suppress_warnings = [
    # Headings of a page may skip a level.
    "myst.header",
]

# Anchors as a forge makes them.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": False}
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "headway"
html_static_path = ["_static"]
html_css_files = ["headway.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
# Commands are copied without prompts and comments' marks.
copybutton_prompt_text = r"\$ |# "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-text):not(.highlight-none) > div.highlight > pre"

# `make linkcheck`: what readers are told to open on their own machines.
linkcheck_ignore = [r"https?://(localhost|127\.0\.0\.1)", r"https?://[\w.-]*example\.(org|com)"]
linkcheck_timeout = 20
