"""What headway would have done on a cluster that it only watched, beside what the batch system did.

From a journal of mode ``monitor``: :mod:`.record` reads what was seen, :mod:`.foretold` runs it again under
headway's policy, :mod:`.comparing` compares job by job, :mod:`.findings` has what it finds, and :mod:`.page`
writes the page.
"""
