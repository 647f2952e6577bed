"""Letters to users (:class:`headway.decisions.Tell`), delivered by the site's own command."""

from headway.letters.post import Post

__all__ = ["Post"]
