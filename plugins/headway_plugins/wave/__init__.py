"""The Wave Scheduler: jobs that ride the night around the earth, on hosts that belong to other people."""
