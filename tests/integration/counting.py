"""What tests do with the pipeline program: its description, its input, what came out of its runs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("pipeline_program.py")
HEADWAY = Path(sys.executable).with_name("headway")


class Counting:
    """A directory in which the words of some lines are counted."""

    def __init__(self, root: Path, launcher: str, lines: int) -> None:
        self.root, self.lines = root, lines
        root.mkdir(parents=True, exist_ok=True)
        self.pipeline, self.store = root / "words.yaml", root / "profiles.json"
        text = "\n".join(f"word{n % 7} word{n % 11} word{n % 3} line" for n in range(lines))
        (root / "input").write_text(text)
        self.expected = Counter(text.split())
        command = [sys.executable, str(PROGRAM), str(root), str(root / "input"), "{lines}", launcher]
        described = {
            "program": "words", "parameters": {"lines": [lines]}, "command": command,
            "filters": [{"name": "read"}, {"name": "count", "stream": "labeled"}, {"name": "decide"}],
        }  # fmt: skip
        self.pipeline.write_text(json.dumps(described))

    @property
    def words(self) -> list[str]:
        """Behind `headway size`."""
        return [str(self.pipeline), "--store", str(self.store), "-p", f"lines={self.lines}"]

    def ran(self, run: str) -> dict[str, Any]:
        """What a run said; its words were counted right."""
        found: Counter[str] = Counter()
        for part in (self.root / run / "result").iterdir():
            found.update(json.loads(part.read_text()))
        assert found == self.expected
        said: dict[str, Any] = json.loads((self.root / run / "run.json").read_text())
        return said
