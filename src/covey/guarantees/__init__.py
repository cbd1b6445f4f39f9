"""The numbered guarantees: what Covey promises, in one list; docs/guarantees.md has them in full.

Their checkers, one function a number and level, are in `guarantees/checkers`; those of recorded traces in
`analysis/checks`. Tests compare this list with the document, the checkers and the mutants.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Guarantee(NamedTuple):
    number: str
    name: str
    promise: str
    """In a few words, for newcomers."""
    held: bool = True
    """A checker looks at every simulated run, and a mutant shows that it can fail. Otherwise: not yet."""


GUARANTEES: Final = (
    Guarantee("S1", "initial view", "whatever happens, happens in a view"),
    Guarantee("S2", "self inclusion", "everyone is a member of their own views"),
    Guarantee("S3", "local monotonicity", "view ids only grow"),
    Guarantee("S4", "membership agreement", "the same view has the same members everywhere"),
    Guarantee("S5", "transitional set", "the transitional set is correct"),
    Guarantee("S6", "no duplication", "no message is delivered twice"),
    Guarantee("S7", "integrity", "what is delivered was sent"),
    Guarantee("S8", "virtual synchrony", "who moved together delivered the same messages"),
    Guarantee("S9", "same view delivery", "a message is delivered in the same view everywhere"),
    Guarantee("S10", "sane view", "no message comes from the future or a former life"),
    Guarantee("S11", "transitional signal", "the signal that a view ends is in one place"),
    Guarantee("S12", "self delivery", "senders deliver their own messages"),
    Guarantee("S13", "termination", "every member delivers a message, or the view ends"),
    Guarantee("S14", "precision", "at rest, the connected daemons share one view"),
    Guarantee("S15", "calm under partial connectivity", "daemons do come to rest"),
    Guarantee("M1", "unreliable", "unreliable: at most once"),
    Guarantee("M2", "reliable", "reliable: exactly once, and the same set for all that move together"),
    Guarantee("M3", "fifo", "fifo: in the order of the sender, without holes"),
    Guarantee("M4", "causal", "causal: never before what its sender had seen"),
    Guarantee("M5", "agreed", "agreed: one order for all"),
    Guarantee("M6", "safe", "safe: delivered only when all have it"),
    Guarantee("M7", "mixing", "services mix without overtaking"),
    Guarantee("M8", "open groups", "who sends need not be a member"),
    Guarantee("M9", "several groups", "one message to several groups comes once"),
    Guarantee("C1", "light changes", "a join or leave is one message, and blocks nobody"),
    Guarantee("C2", "same view", "members deliver a message in the same view"),
    Guarantee("C3", "membership agreement", "the same view of a group has the same members everywhere"),
    Guarantee("C4", "unaffected groups", "a group hears nothing of what does not concern it"),
    Guarantee("C5", "cause", "every view says why it came"),
    Guarantee("C6", "self leave", "who leaves learns where"),
    Guarantee("C7", "crash of a client", "a client that crashes takes nobody along"),
    Guarantee("C8", "name", "a name is one program's at a time"),
    Guarantee("V1", "sending view delivery", "a message is delivered in the view it was sent in", held=False),
    Guarantee("V2", "flush", "one question before a view changes, and one answer", held=False),
    Guarantee("V3", "flush before view", "every view but the first was agreed to by its members", held=False),
    Guarantee("V4", "transitional set", "the transitional set is the same for all in it", held=False),
    Guarantee("V5", "virtual synchrony", "members that move together delivered the same messages", held=False),
    Guarantee("V6", "orders", "the orders of the services hold within a view", held=False),
    Guarantee("V7", "liveness", "a member that does not answer is named, and may be expelled", held=False),
    Guarantee("V8", "stronger variants", "stronger variants, each with a stronger promise", held=False),
    Guarantee("O0", "reading", "delivering a newer message stands for the obsolete one", held=False),
    Guarantee("O1", "relation", "what makes what obsolete is a strict partial order", held=False),
    Guarantee("O2", "semantic reliability", "each message is delivered, or one that makes it obsolete", held=False),
    Guarantee("O3", "integrity and order", "no duplicates, nothing unsent, orders kept", held=False),
    Guarantee("O4", "completeness", "nothing earlier is missing unless it is obsolete", held=False),
    Guarantee("O5", "semantic view synchrony", "members that move together reach the same state", held=False),
    Guarantee("O6", "no silent loss", "only obsolete messages are omitted, and each is counted", held=False),
    Guarantee("O7", "liveness", "an omitted message never stalls anything", held=False),
    Guarantee("O8", "empty relation", "without tags nothing changes", held=False),
    Guarantee("L1", "reliable link", "what is sent arrives, or the link fails", held=False),
    Guarantee("L2", "no duplication, integrity", "once, and only what was sent", held=False),
    Guarantee("L3", "no waiting", "no packet waits for another", held=False),
    Guarantee("L4", "bounded", "every buffer has a bound", held=False),
    Guarantee("L5", "unreliable sends", "an error on sending counts as loss", held=False),
)

HELD: Final = {one.number: one for one in GUARANTEES if one.held}
"""By number: those that a trace can decide."""
