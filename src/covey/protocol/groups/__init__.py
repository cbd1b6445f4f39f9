"""Light-weight groups: who is in which, folded from the ordered stream, and what its members are told."""
