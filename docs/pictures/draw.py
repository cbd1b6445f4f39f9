"""Draws the pictures of the documentation: `python -m docs.pictures.draw` writes them beside this file."""

from __future__ import annotations

from pathlib import Path

from docs.pictures.canvas import Sheet
from docs.pictures.states import states

HERE = Path(__file__).parent


def views() -> Sheet:
    sheet = Sheet(["ann", "ben", "cem"], "A crash: those who are left agree on what was said before it", bottom=22)
    sheet.moment(52, "cem crashes")
    for lane in ("ann", "ben"):
        sheet.bar(lane, 2, 66, "view {ann ben cem}", "grey")
        sheet.bar(lane, 68, 99, "view {ann ben}: disconnect")
    sheet.bar("cem", 2, 51, "view {ann ben cem}", "grey")
    sheet.message("cem", 46, {"ben": 54, "ann": 62}, "last words")
    sheet.crash("cem", 52)
    sheet.note(50, 2.65, "Both have “last words” before the view changes, or neither has.")
    return sheet


def transitional() -> Sheet:
    sheet = Sheet(["ann", "ben", "cem"], "A partition and a merge, with transitional sets", bottom=16)
    sheet.moment(30, "the network parts")
    sheet.moment(68, "it heals")
    for lane in ("ann", "ben"):
        sheet.bar(lane, 1, 32, "{ann ben cem}", "grey")
        sheet.bar(lane, 34, 70, "{ann ben} · with us: ann ben", "teal")
        sheet.bar(lane, 72, 99.5, "all · with us: ann ben", "plum")
    sheet.bar("cem", 1, 34, "{ann ben cem}", "grey")
    sheet.bar("cem", 36, 70, "{cem} · with us: cem", "sand")
    sheet.bar("cem", 72, 99.5, "all · with us: cem", "plum")
    sheet.wall(1.5, 30, 68)
    sheet.note(50, 2.6, "ann and ben moved together twice: they have seen the same. cem has seen something else.")
    return sheet


def agreed_and_safe() -> Sheet:
    sheet = Sheet(["ann", "ben", "cem"], "When a message is delivered: agreed and safe", bottom=20)
    sheet.message("ann", 8, {"ben": 22, "cem": 34}, "m")
    sheet.bar("ben", 24, 38, "agreed", "teal")
    sheet.bar("cem", 36, 50, "agreed", "teal")
    sheet.bar("ann", 14, 28, "agreed", "teal")
    sheet.moment(40, "everybody has it")
    for lane, at in (("ann", 60), ("ben", 62), ("cem", 64)):
        sheet.bar(lane, at, at + 14, "safe", "plum")
    sheet.note(
        50,
        2.65,
        "Agreed: as soon as its place in the one order is final here. Safe: once it is known to be everywhere.",
    )
    return sheet


def chat() -> Sheet:
    sheet = Sheet(["ann", "ben", "cem"], "Two lines at the same moment, in one order for all", bottom=16)
    sheet.message("ann", 10, {"ben": 24, "cem": 30}, "tea?")
    sheet.message("cem", 12, {"ben": 30, "ann": 26}, "coffee!")
    for lane in ("ann", "ben", "cem"):
        sheet.bar(lane, 48, 66, "tea?", "teal")
        sheet.bar(lane, 68, 86, "coffee!", "sand")
    sheet.note(50, 2.6, "Which one comes first is decided once, and is the same for everybody.")
    return sheet


def leader() -> Sheet:
    sheet = Sheet(["ann", "ben", "cem"], "A leader in each part, and one again when they meet")
    sheet.moment(30, "the network parts")
    sheet.moment(68, "it heals")
    sheet.bar("ann", 1, 32, "ann leads", "plum")
    sheet.bar("ann", 34, 70, "alone: ann leads (no quorum)", "sand")
    sheet.bar("ann", 72, 99.5, "ann leads", "plum")
    for lane in ("ben", "cem"):
        sheet.bar(lane, 1, 32, "follows ann", "grey")
        sheet.bar(lane, 72, 99.5, "follows ann", "grey")
    sheet.bar("ben", 34, 70, "ben leads (a quorum of two)", "plum")
    sheet.bar("cem", 34, 70, "follows ben", "grey")
    sheet.wall(0.5, 30, 68)
    return sheet


def kv_store() -> Sheet:
    sheet = Sheet(["ann", "ben", "cem"], "Two parts of a table meet: one state from each, then all merge the same")
    sheet.moment(22, "they meet")
    for lane, text, tone in (("ann", "x=1 y=7", "teal"), ("ben", "x=1 y=7", "teal"), ("cem", "x=2", "sand")):
        sheet.bar(lane, 1, 20, text, tone)
    sheet.bar("ann", 25, 40, "lowest: sends", "grey")
    sheet.bar("ben", 25, 40, "waits", "grey")
    sheet.bar("cem", 25, 40, "lowest: sends", "grey")
    sheet.message("ann", 42, {"ben": 52, "cem": 60}, "state of ann and ben")
    sheet.message("cem", 44, {"ben": 54, "ann": 58}, "state of cem")
    for lane in ("ann", "ben", "cem"):
        sheet.bar(lane, 68, 99, "x=2 y=7 · x=1 was lost", "plum")
    return sheet


def work_queue() -> Sheet:
    sheet = Sheet(["ann", "ben", "cem"], "Jobs of a worker that goes are somebody else's in the next view", bottom=16)
    sheet.bar("ann", 4, 22, "job 1", "teal")
    sheet.bar("ben", 4, 22, "job 2", "teal")
    sheet.bar("cem", 4, 22, "job 3", "teal")
    sheet.bar("ann", 24, 42, "job 4", "teal")
    sheet.bar("ben", 24, 42, "job 5", "teal")
    sheet.bar("cem", 24, 34, "job 6", "rose")
    sheet.crash("cem", 36)
    sheet.moment(47, "view {ann ben}")
    sheet.bar("ann", 52, 70, "job 6 again", "sand")
    sheet.bar("ben", 52, 70, "job 7", "teal")
    sheet.note(50, 2.6, "Nobody hands jobs out: whose a job is follows from the view and from its id.")
    return sheet


def sensors() -> Sheet:
    sheet = Sheet(["sensor", "wall", "tablet"], "A dashboard that falls behind is let go, and comes back", bottom=16)
    for at in range(4, 96, 8):
        sheet.message("sensor", at, {"wall": at + 4}, "")
    sheet.bar("tablet", 4, 30, "takes too long for each", "sand")
    sheet.bar("tablet", 32, 57, "let go: 64 MB behind", "rose")
    sheet.bar("tablet", 63, 99, "back at the present: 812 missed", "teal")
    sheet.note(50, 2.6, "The sensor and the wall do not notice. With the policy “block” the sensor would wait instead.")
    return sheet


def shape() -> Sheet:
    sheet = Sheet([], "Programs attach to the daemon of their host; daemons form a ring", bottom=LANE_ROOM)
    xs = {"a": 20, "b": 50, "c": 80}
    for daemon, at in xs.items():
        sheet.text(sheet.x(at), 176, f"daemon {daemon}", weight=600)
        sheet.box(at, 150, 150, 44, "teal")
    for name, at, daemon in (
        ("ann", 11, "a"), ("ben", 29, "a"), ("cem", 50, "b"), ("dan", 71, "c"), ("eve", 89, "c"),
    ):  # fmt: skip
        sheet.box(at, 40, 84, 34, "grey")
        sheet.text(sheet.x(at), 62, name)
        sheet.join(at, 74, xs[daemon] + (at - xs[daemon]) * 0.35, 150)
    sheet.join(31, 172, 39, 172)
    sheet.join(61, 172, 69, 172)
    sheet.text(
        sheet.x(50), 226, "UDP between daemons: order, membership, recovery. Unix socket or TCP to programs.", size=12.5
    )
    sheet.text(sheet.x(50), 26, "programs: they join groups, send, and get one stream of messages and views", size=12.5)
    return sheet


LANE_ROOM = 208
PICTURES = (views, transitional, agreed_and_safe, chat, leader, kv_store, work_queue, sensors, shape, states)


def main() -> None:
    for picture in PICTURES:
        path = HERE / f"{picture.__name__}.svg"
        path.write_text(picture().svg())
        print(path.name)


if __name__ == "__main__":
    main()
