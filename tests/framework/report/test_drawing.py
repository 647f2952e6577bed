"""matplotlib without the documentation of its classes: loaded faster, and drawing as ever."""

from __future__ import annotations

import subprocess
import sys

SEEN = """
from headway.report import drawing
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

assert "_update_set_signature_and_docstring" in vars(Artist)
class Own(Line2D):
    pass
assert "linewidth" in Own.set.__doc__ or "linewidth" in str(Own.set.__signature__)
assert not hasattr(Line2D.set, "__signature__")
line = Own([0, 1], [0, 1])
line.set(linewidth=3, color="red")
patch = Rectangle((0, 0), 1, 1)
patch.set(width=2)
try:
    patch.set(linewith=2)
except AttributeError as error:
    assert "linewith" in str(error)
else:
    raise SystemExit("a property that is none was set")
print(line.get_linewidth(), line.get_color(), patch.get_width())
"""


def test_classes_are_loaded_undocumented_and_set_their_properties_as_ever():
    ran = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("3.0 red 2\n", "")
