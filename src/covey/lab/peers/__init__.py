"""Covey beside other systems: the same work on the same machine in the same minutes, with every message checked."""
