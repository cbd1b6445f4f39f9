"""Legal programs that go to the limits, beside one that does not: what do daemons do, and what does it notice?"""
