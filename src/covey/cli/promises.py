"""Each promise in a few words for newcomers; docs/guarantees.md has them in full."""

from __future__ import annotations

from typing import Final

PROMISES: Final = {
    "S1": "whatever happens, happens in a view",
    "S2": "everyone is a member of their own views",
    "S3": "view ids only grow",
    "S4": "the same view has the same members everywhere",
    "S5": "who is said to have moved together has",
    "S6": "no message is delivered twice",
    "S7": "what is delivered was sent",
    "S8": "who moved together delivered the same messages",
    "S9": "a message is delivered in the same view everywhere",
    "S10": "no message comes from the future or a former life",
    "S11": "the signal that a view ends is in one place",
    "S12": "senders deliver their own messages",
    "S13": "every member delivers a message, or the view ends",
    "S14": "at rest, the connected daemons share one view",
    "S15": "daemons do come to rest",
    "M1": "unreliable: at most once",
    "M2": "reliable: once, and alike for who moved together",
    "M3": "fifo: in the order of the sender, without holes",
    "M4": "causal: never before what its sender had seen",
    "M5": "agreed: one order for all",
    "M6": "safe: delivered only when all have it",
    "M7": "services mix without overtaking",
    "M8": "who sends need not be a member",
    "M9": "one message to several groups comes once",
    "C1": "a join or leave is one message, and blocks nobody",
    "C2": "members deliver a message in the same view",
    "C3": "the same view of a group has the same members everywhere",
    "C4": "a group hears nothing of what does not concern it",
    "C5": "every view says why it came",
    "C6": "who leaves learns where",
    "C7": "a client that crashes takes nobody along",
    "C8": "a name is one program's at a time",
}
