"""What the checkers of both levels share: histories read alike, and judgements that daemons and clients get alike.

A level adds its own stays and lives, says in its history what is owed to whom, and judges by itself only what
docs/guarantees.md has it read differently.
"""
