"""Sessions of clients: who is connected under which name, what waits for each, and how much of it."""
