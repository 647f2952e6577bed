"""Two jobs on a processor: a waiting job runs in the background on cycles that the foreground leaves idle."""
