"""Where each mutant is first caught, if not among the first seeds: its hunt begins there.

Whatever draws from a simulation's generator in another order makes this list wrong, and only slow, not false: where the
seed named here does not catch its mutant, all others are tried.
"""

FIRST_SEEDS = {
    "recovered data dropped": 5,
    "done without recovery": 5,
    "originals taken when frozen": 39,
    "new data in the old view": 5,
    "signal at the ARU": 5,
    "retransmission skipped": 3,
    "safe waits for one more": 9,
    "heard is enough": 17,
    "reliable needs commit": 21,
    "past not awaited": 14,
    "commit not exchanged": 45,
    "light view after the signal": 2,
    "agreed after the signal untouched": 8,
    "joiners hear at once": 2,
    "heard after leaving": 2,
}
