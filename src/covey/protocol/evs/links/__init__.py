"""How packets get to the other daemons of a view: the token ring of a site, and links to daemons of other sites."""
