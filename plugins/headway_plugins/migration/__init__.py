"""Migration handlers: ways to move a running job, a file each, each behind the hook ``migrate``."""
