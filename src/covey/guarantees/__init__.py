"""The numbered guarantees: what Covey promises, in one list; docs/guarantees.md says how to read them.

Their checkers, one function a number and level, are in `guarantees/checkers` (`DAEMON_CHECKERS` and `clients.CHECKERS`,
by number); those of recorded traces in `analysis/checks`. Tests compare this list with the document, word by word, with
the checkers of each level, and with the mutants.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Guarantee(NamedTuple):
    number: str
    name: str
    in_short: str
    """In a few words, for newcomers."""
    promise: str
    """The law, as the document has it."""
    levels: str = ""
    """Where a checker looks at every run: S between daemons, C between clients. Nowhere: it is not held yet."""

    @property
    def held(self) -> bool:
        """A checker looks at every simulated run, and a mutant shows that it can fail."""
        return bool(self.levels)


GUARANTEES: Final = (
    Guarantee(
        "S1",
        "initial view",
        "whatever happens, happens in a view",
        "Every delivery and every transitional signal happens in some view.",
        "SC",
    ),
    Guarantee(
        "S2",
        "self inclusion",
        "everyone is a member of their own views",
        "A daemon is a member of every view it installs.",
        "SC",
    ),
    Guarantee(
        "S3",
        "local monotonicity",
        "view ids only grow",
        "View ids grow at each daemon. An id is (counter, proposer, proposer's boot id), and the counter is larger "
        "than any seen, so ids never collide however fast views follow one another.",
        "SC",
    ),
    Guarantee(
        "S4",
        "membership agreement",
        "the same view has the same members everywhere",
        "Equal view ids, equal member sets.",
        "SC",
    ),
    Guarantee(
        "S5",
        "transitional set",
        "the transitional set is correct",
        "In the first view after a start it is {self}. Otherwise it is a subset of both views' members; for every q "
        "that installs v', q is in p's set exactly if both came from the same previous view, and then both have the "
        "same set.",
        "SC",
    ),
    Guarantee(
        "S6",
        "no duplication",
        "no message is delivered twice",
        "No message is delivered twice.",
        "SC",
    ),
    Guarantee(
        "S7",
        "integrity",
        "what is delivered was sent",
        "Every delivery has an earlier send.",
        "SC",
    ),
    Guarantee(
        "S8",
        "virtual synchrony",
        "who moved together delivered the same messages",
        "vsync(p, q, v): p and q deliver the same messages in v. This includes reliable and fifo messages that were "
        "delivered early, past a hole.",
        "SC",
    ),
    Guarantee(
        "S9",
        "same view delivery",
        "a message is delivered in the same view everywhere",
        "Two daemons that deliver m deliver it in the same view.",
        "SC",
    ),
    Guarantee(
        "S10",
        "sane view",
        "no message comes from the future or a former life",
        "m is not delivered in a view earlier than the one it was sent in; and nobody delivers m after installing a "
        "view that contains a later life of its sender.",
        "SC",
    ),
    Guarantee(
        "S11",
        "transitional signal",
        "the signal that a view ends is in one place",
        "At most one in a view; vsync daemons agree on which agreed and safe messages come before it and which after.",
        "SC",
    ),
    Guarantee(
        "S12",
        "self delivery",
        "senders deliver their own messages",
        "A sender delivers its own message unless it crashes.",
        "SC",
    ),
    Guarantee(
        "S13",
        "termination",
        "every member delivers a message, or the view ends",
        "If m is sent in v, every member delivers it or the sender installs a later view.",
        "SC",
    ),
    Guarantee(
        "S14",
        "precision",
        "at rest, the connected daemons share one view",
        "When from some time on two-way connectivity is stable and transitive, each connected set installs one view "
        "of exactly itself, and then no other.",
        "S",
    ),
    Guarantee(
        "S15",
        "calm under partial connectivity",
        "daemons do come to rest",
        "Under any stable connectivity, with one-way links or not transitive, every daemon eventually stops "
        "installing views, and its view holds only daemons with which it is connected both ways.",
        "S",
    ),
    Guarantee(
        "M1",
        "unreliable",
        "unreliable: at most once",
        "At most once; it may be lost; it never blocks or delays a reliable message.",
        "SC",
    ),
    Guarantee(
        "M2",
        "reliable",
        "reliable: exactly once, and the same set for all that move together",
        "S6, S7, S8 and S12, and delivered as soon as it is complete.",
        "SC",
    ),
    Guarantee(
        "M3",
        "fifo",
        "fifo: in the order of the sender, without holes",
        "m' (fifo or stronger) is not delivered without, before it, every earlier m of its session that is reliable "
        "or stronger, addressed to a group the receiver is in, and not passed before its join took effect: across "
        "groups and services, without a hole, also across changes of view. (A reliable message may overtake a fifo "
        "one.)",
        "SC",
    ),
    Guarantee(
        "M4",
        "causal",
        "causal: never before what its sender had seen",
        "If the sending of m happened before the sending of m', m being reliable or stronger, nobody delivers m' "
        "(causal or stronger) before m, nor without m where m is addressed to a group the receiver was in when m took "
        "its place. Causal messages are delivered as agreed ones.",
        "SC",
    ),
    Guarantee(
        "M5",
        "agreed",
        "agreed: one order for all",
        "One total order, the same at all receivers and across all groups. Complete, in the groups of the message: "
        "before the transitional signal, everything ordered earlier that anyone delivered in this view comes first; "
        "after it, everything ordered earlier from members of my next transitional set.",
        "SC",
    ),
    Guarantee(
        "M6",
        "safe",
        "safe: delivered only when all have it",
        "Agreed, and: if it is delivered before the transitional signal, every member of the view delivers it unless "
        "it crashes; if after, every member of my next transitional set does unless it crashes. It is not atomic "
        "under crashes. At level C these excuse as well: leave, disconnect, expulsion, self-discard, a client that "
        "does not read, and a member whose own daemon had not yet passed its join when the view ended there.",
        "SC",
    ),
    Guarantee(
        "M7",
        "mixing",
        "services mix without overtaking",
        "Services may be mixed message by message; a fifo message never overtakes an earlier agreed one of its "
        "session.",
        "SC",
    ),
    Guarantee(
        "M8",
        "open groups",
        "who sends need not be a member",
        "A sender need not be a member; its message has the same guarantees among the members.",
        "C",
    ),
    Guarantee(
        "M9",
        "several groups",
        "one message to several groups comes once",
        "One message to several groups is delivered once to each receiver, in one place of the order.",
        "C",
    ),
    Guarantee(
        "C1",
        "light changes",
        "a join or leave is one message, and blocks nobody",
        "A join or a leave costs one agreed message; nothing blocks, nothing is flushed. (With several sites, a "
        "site's first member of a group waits one round of interest before its join is stamped.)",
        "C",
    ),
    Guarantee(
        "C2",
        "same view",
        "members deliver a message in the same view",
        "Causal, agreed and safe messages: the same view between vsync members, and between all members for messages "
        "delivered before the signal at both. Reliable and fifo messages, with respect to light changes: S8 reads "
        '"both deliver m" over the span between two network views, and S9 and the first half of S10 do not apply; '
        "that is what makes them fast.",
        "C",
    ),
    Guarantee(
        "C3",
        "membership agreement",
        "the same view of a group has the same members everywhere",
        "Equal (group, view id), equal members, also for views delivered while a partition is in progress. Between a "
        "signal and the next network view no light view is delivered; ids are (daemon view, order key of the cause).",
        "C",
    ),
    Guarantee(
        "C4",
        "unaffected groups",
        "a group hears nothing of what does not concern it",
        "A daemon change that touches no member of a group, and after whose signal no agreed or safe message of the "
        "group is delivered, gives that group no signal and no view.",
        "C",
    ),
    Guarantee(
        "C5",
        "cause",
        "every view says why it came",
        "Each view says why: join, leave, disconnect, network; and who moved with whom (transitional set).",
        "C",
    ),
    Guarantee(
        "C6",
        "self leave",
        "who leaves learns where",
        "A leaving member learns where in the stream its leave took effect.",
        "C",
    ),
    Guarantee(
        "C7",
        "crash of a client",
        "a client that crashes takes nobody along",
        "Only that client leaves; there is no daemon view.",
        "C",
    ),
    Guarantee(
        "C8",
        "name",
        "a name is one program's at a time",
        "A private name is unique at its daemon (full name `name@daemon`); after a crash it is refused, with the "
        "reason, until its departure is ordered.",
        "C",
    ),
    Guarantee(
        "V1",
        "sending view delivery",
        "a message is delivered in the view it was sent in",
        "m is delivered in the view it was sent in.",
    ),
    Guarantee(
        "V2",
        "flush",
        "one question before a view changes, and one answer",
        "At most one flush request in a view; one flush answers it; nothing is sent between the flush and the next "
        "view.",
    ),
    Guarantee(
        "V3",
        "flush before view",
        "every view but the first was agreed to by its members",
        "Every view but the first follows a flush.",
    ),
    Guarantee(
        "V4",
        "transitional set",
        "the transitional set is the same for all in it",
        "It contains self; if q is in p's set, both have the same previous view and equal sets.",
    ),
    Guarantee(
        "V5",
        "virtual synchrony",
        "members that move together delivered the same messages",
        "vsync(p, q, v): the same messages in v. (Equal previous and next views alone do not imply vsync.)",
    ),
    Guarantee(
        "V6",
        "orders",
        "the orders of the services hold within a view",
        "M3 to M6 within the view.",
    ),
    Guarantee(
        "V7",
        "liveness",
        "a member that does not answer is named, and may be expelled",
        "When the underlying view is stable and all members flush, all install it. A member that has not answered its "
        "flush request in time (measured by its own daemon from the moment the request was written to it) is named, "
        "and expelled by that daemon as an ordered leave if so configured.",
    ),
    Guarantee(
        "V8",
        "stronger variants",
        "stronger variants, each with a stronger promise",
        "*agreed*: no obsolete views. *safe*: my transitional set delivers all I delivered unless it crashes. *two "
        "round*: it already has. *end to end*: its application has already handled it.",
    ),
    Guarantee(
        "O0",
        "reading",
        "delivering a newer message stands for the obsolete one",
        'For messages with tags, read "delivers m" in S, M and V as "delivers some m\' with m ⊑ m\' in the same view".',
    ),
    Guarantee(
        "O1",
        "relation",
        "what makes what obsolete is a strict partial order",
        '⊏ is a strict partial order inside causal order and inside one view; out of range of the encoding means "not '
        'obsolete".',
    ),
    Guarantee(
        "O2",
        "semantic reliability",
        "each message is delivered, or one that makes it obsolete",
        "For every m that a reliable run would deliver to p, p delivers some m' with m ⊑ m'.",
    ),
    Guarantee(
        "O3",
        "integrity and order",
        "no duplicates, nothing unsent, orders kept",
        "Nothing is delivered twice, unsent, or out of its service's order.",
    ),
    Guarantee(
        "O4",
        "completeness",
        "nothing earlier is missing unless it is obsolete",
        "p does not deliver m' without some m'' with m ⊑ m'' for each earlier m of that sender (of its causal past), "
        "with the exceptions of M3 and M4.",
    ),
    Guarantee(
        "O5",
        "semantic view synchrony",
        "members that move together reach the same state",
        "vsync(p, q, v): for each m delivered by p in v, q delivers some m' with m ⊑ m' in v.",
    ),
    Guarantee(
        "O6",
        "no silent loss",
        "only obsolete messages are omitted, and each is counted",
        "Only obsolete messages are ever omitted, each omission is counted and traced, and safe messages are never "
        "purged.",
    ),
    Guarantee(
        "O7",
        "liveness",
        "an omitted message never stalls anything",
        "A purged message never stalls order, stability or recovery.",
    ),
    Guarantee(
        "O8",
        "empty relation",
        "without tags nothing changes",
        "Without tags the service is exactly the ordinary one.",
    ),
    Guarantee(
        "L1",
        "reliable link",
        "what is sent arrives, or the link fails",
        "What is sent arrives at the other end, or the link says that it failed.",
    ),
    Guarantee(
        "L2",
        "no duplication, integrity",
        "once, and only what was sent",
        "Once, and only what was sent; authenticated when a key is set.",
    ),
    Guarantee(
        "L3",
        "no waiting",
        "no packet waits for another",
        "On a hop, each packet is handed up when it arrives, in any order.",
    ),
    Guarantee(
        "L4",
        "bounded",
        "every buffer has a bound",
        "Buffers, retransmissions, reassembly and queues have limits from the configuration; at a limit there is "
        "back-pressure or a named failure, never growth.",
    ),
    Guarantee(
        "L5",
        "unreliable sends",
        "an error on sending counts as loss",
        "An error from the network on sending is treated as loss.",
    ),
)

HELD: Final = {one.number: one for one in GUARANTEES if one.held}
"""By number: those that a trace can decide."""
