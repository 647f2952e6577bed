"""What carries a job's security levels out, on the node where it runs: ``headway protect``.

``label`` is what a job is told of its levels; ``algorithms`` the algorithms by the names of a measured
profile; ``keys`` a user's key files; ``sealed`` files that are encrypted; ``manifest`` digests of files and
their signatures; ``wrapper`` a command between them, ``report`` what that took.
"""
