"""What users write about their jobs: the words for headway, and the rest for plugins."""

from __future__ import annotations

import pytest

from headway_adapters.polling.remarks import LONGEST, remarks


@pytest.mark.parametrize(
    ("text", "words", "rest"),
    [
        ("", [], ""),
        ("headway:dedicated", ["dedicated"], ""),
        ("headway:dedicated,malleable", ["dedicated", "malleable"], ""),
        ("headway:malleable scopred:app=ft;N=3", ["malleable"], "scopred:app=ft;N=3"),
        ("scopred:app=ft;N=3 and more", [], "scopred:app=ft;N=3 and more"),
        ("headway:job=a b, stage=2", ["job=a b", " stage=2"], ""),
        ("not headway:dedicated", [], "not headway:dedicated"),
        ("x" * 5000, [], "x" * LONGEST),
    ],
)
def test_words_and_rest(text, words, rest):
    assert remarks(text) == (words, rest)
