"""What comes from outside: files that options name, strict YAML, lists and durations that users write."""

from headway.inputs.files import SAVED_AS, InputFiles, text_of

__all__ = ["SAVED_AS", "InputFiles", "text_of"]
