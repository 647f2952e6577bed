"""Two jobs on one processor: who waits runs in the background on cycles that the foreground leaves idle."""
