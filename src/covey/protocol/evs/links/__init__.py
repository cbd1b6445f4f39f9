"""How packets get to the other daemons of a view: the token ring of a site, and the mesh between one-daemon sites."""
