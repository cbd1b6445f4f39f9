"""The demonstration: real daemons, real programs with a replicated ledger, and what happens to them, act by act."""
