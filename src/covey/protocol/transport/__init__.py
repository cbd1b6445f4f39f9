"""Between sessions and links: what waits to be sent, cut into bundles and packed into packets."""
