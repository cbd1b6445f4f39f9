"""Who stamps: by the token of a site's ring, or alone in a site."""
