"""Migration handlers: ways to move a running job, one a file, each behind the hook ``migrate``."""
