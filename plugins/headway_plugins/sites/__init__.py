"""Sites of a federation: which of them a job is best sent to."""
