"""The first ordering engine: extended virtual synchrony with a token in each site."""
