"""Frames and bytes: what is sent is fixed by vectors, and what is not ours is rejected under the right name."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covey.cluster import SiteLink
from covey.errors import FrameError
from covey.ids import Ballot, Life
from covey.protocol.evs.codec import VERSION, Codec, encode_stated
from covey.protocol.evs.frames import (
    Ack,
    Alive,
    Chunk,
    Data,
    Floor,
    Frame,
    GroupPart,
    Heard,
    Hurry,
    NewMemb,
    PassedOn,
    Proceeding,
    Resend,
    Stated,
    StateTrans,
    Token,
    Unreliable,
    WantGroups,
    WantState,
)
from covey.protocol.values import Announcement, Bundle, Declaration, Position, Service
from covey.protocol.wire.bundles import encode_bundle, read_bundle
from tests.unit.protocol.builders import VIEW, bundle, held

VECTORS = Path(__file__).parent / "vectors"
SENDER = Life(2, 5)
CODEC = Codec("vectors", 0x0123456789ABCDEF, SENDER)
MESSAGE = Bundle(1, 4, 1_000, Life(1, 8), 3, 70, 2, 4, Service.SAFE, 0, 1, ("room", "ü"), b"payload")

# A change of any of these bytes means a new wire version: daemons of both kinds could not understand each other.
FRAMES: dict[str, Frame] = {
    "alive": Alive(
        number=300,
        state=0,
        leader=-1,
        view=VIEW,
        members=(Life(0, 1), SENDER),
        promised=VIEW,
        counter=70_000,
        heard=(Heard(0, 1, 299, two_way=True),),
        clock=1_700_000_000,
    ),
    "newmemb": NewMemb(Ballot(8, 2, 5), (Life(0, 1), SENDER), (SiteLink(0, 2, 7),)),
    "statetrans": StateTrans(Ballot(8, 2, 5), 1, 3, b"a part"),
    "wantstate": WantState(Ballot(8, 2, 5), (0, 2)),
    "proceeding": Proceeding(Ballot(8, 2, 5)),
    "passedon": PassedOn(Ballot(8, 2, 5), b"\x05", b"a frame"),
    "wantgroups": WantGroups(Ballot(8, 2, 5), (1, 2)),
    "grouppart": GroupPart(Ballot(8, 2, 5), 1, b"of two", ends_page=True),
    "token": Token(
        view=VIEW,
        number=17,
        packet_seq=9,
        packet_floor=Floor(8, 1),
        line_floor=Floor(900, -1),
        received_floors=((0, Floor(4, 0)),),
        site_seq=5,
        stamp=1_000,
        flow=2,
        idle=0,
        requests=(7, 8),
    ),
    "ack": Ack(VIEW, 1_234),
    "data": Data(VIEW, 17, 9, (Chunk(1, 4, 0, 1, encode_bundle(MESSAGE)), Chunk(1, 5, 1, 3, b"middle"))),
    "data_kept": Data(VIEW, 17, 10, (Chunk(1, 6, 0, 1, encode_bundle(MESSAGE)),), kept_line=1_234),
    "resend": Resend(Ballot(8, 2, 5), (MESSAGE,)),
    "unreliable": Unreliable(VIEW, msgspec.structs.replace(MESSAGE, number=0, stamp=0, service=Service.UNRELIABLE)),
}


STATED = Stated(
    Declaration(
        VIEW,
        Position(900, 0),
        aru=800,
        high=1_000,
        commit=(SENDER,),
        sites=(held(1, low=1, gap_free=3, frontier=950, extras=(5,), announcements=(Announcement(6, 990),)),),
    ),
    groups_version=70_001,
    group_parts=2,
    first_part=b"groups",
)


def reason(data: bytes, codec: Codec = CODEC) -> str:
    with pytest.raises(FrameError) as error:
        codec.decode(data)
    return error.value.reason


def control(frame: Frame, *more: bytes) -> bytes:
    """The frame with further elements in its array, as raw msgpack."""
    body = msgspec.msgpack.encode(frame)
    head = CODEC.encode(frame)[: CODEC.overhead]
    return head + bytes([body[0] + len(more)]) + body[1:] + b"".join(more)


# --- vectors


@pytest.mark.parametrize("name", FRAMES)
def test_the_bytes_of_a_frame_are_those_of_its_vector(name: str) -> None:
    assert CODEC.encode(FRAMES[name]).hex() == (VECTORS / f"{name}.hex").read_text().strip()


@pytest.mark.parametrize("name", FRAMES)
def test_a_vector_is_understood(name: str) -> None:
    data = bytes.fromhex((VECTORS / f"{name}.hex").read_text())
    assert CODEC.decode(data) == (SENDER, FRAMES[name])


def test_what_is_cut_into_parts_has_the_bytes_of_its_vector() -> None:
    assert encode_stated(STATED).hex() == (VECTORS / "stated.hex").read_text().strip()


def test_the_vectors_are_of_this_version() -> None:
    assert VERSION == 8
    assert {path.stem for path in VECTORS.iterdir()} == {*FRAMES, "stated"}


# --- not ours


def test_a_frame_of_another_cluster_is_named() -> None:
    other = Codec("elsewhere", 0x0123456789ABCDEF, SENDER)
    with pytest.raises(FrameError, match="'elsewhere'") as error:
        CODEC.decode(other.encode(Hurry(VIEW)))
    assert error.value.reason == "another cluster"


def test_a_frame_of_another_configuration_names_its_sender() -> None:
    other = Codec("vectors", 1, Life(7, 5))
    with pytest.raises(FrameError, match="daemon number 7") as error:
        CODEC.decode(other.encode(Hurry(VIEW)))
    assert error.value.reason == "another configuration"


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_frame_of_another_version_is_named(version: int) -> None:
    data = bytearray(CODEC.encode(FRAMES["alive"]))
    data[2] = version
    assert reason(bytes(data)) == "another version"


@pytest.mark.parametrize("data", [b"", b"C", b"Cv", b"GET / HTTP/1.1\r\n", b"\x00" * 64])
def test_other_bytes_are_not_a_covey_datagram(data: bytes) -> None:
    assert reason(data) == "not a covey datagram"


def test_an_unknown_kind_is_named() -> None:
    data = bytearray(CODEC.encode(FRAMES["data"]))
    data[CODEC.overhead - 11] = 200
    assert reason(bytes(data)) == "unknown frame kind"


def test_overhead_is_what_precedes_the_body() -> None:
    frame = Hurry(VIEW)
    assert CODEC.encode(frame)[CODEC.overhead :] == msgspec.msgpack.encode(frame)


# --- malformed


def test_a_control_frame_may_carry_more_than_we_know() -> None:
    assert CODEC.decode(control(Hurry(VIEW), b"\x07")).frame == Hurry(VIEW)


def test_a_deeply_nested_frame_is_rejected() -> None:
    assert reason(control(Hurry(VIEW), b"\x91" * 5_000 + b"\x00")).startswith("malformed")


def test_a_bundle_of_an_unknown_service_is_rejected() -> None:
    data = bytearray(CODEC.encode(Unreliable(VIEW, bundle(1))))
    data[data.index(bytes([Service.AGREED, 0, 0, 0, 0, 1]))] = 6
    assert reason(bytes(data)).startswith("malformed")


def test_a_group_name_that_is_not_text_is_rejected() -> None:
    data = CODEC.encode(Unreliable(VIEW, bundle(1, groups=("ab",)))).replace(b"ab", b"\xff\xfe")
    assert reason(data).startswith("malformed")


@pytest.mark.parametrize(
    "malformed",
    [bundle(1, fragment=2, fragments=2), msgspec.structs.replace(bundle(1), count=0)],
    ids=["fragment beyond the last", "no message"],
)
def test_a_bundle_that_no_daemon_makes_is_rejected(malformed: Bundle) -> None:
    assert reason(CODEC.encode(Unreliable(VIEW, malformed))) == "malformed bundle"


def test_a_piece_beyond_the_last_is_rejected() -> None:
    assert reason(CODEC.encode(Data(VIEW, 1, 1, (Chunk(0, 1, 3, 3, b""),)))) == "malformed packet"


def test_a_count_beyond_the_bytes_is_rejected() -> None:
    data = bytearray(CODEC.encode(Resend(VIEW, ())))
    data[-2:] = b"\xff\xff"
    assert reason(bytes(data)).startswith("malformed")


@pytest.mark.parametrize("data", [b"", b"abc", encode_bundle(MESSAGE)[:-1], encode_bundle(MESSAGE) + b"!"])
def test_a_bundle_of_the_wrong_size_is_a_frame_error(data: bytes) -> None:
    with pytest.raises(FrameError):
        read_bundle(memoryview(data))


@pytest.mark.parametrize("frame", [FRAMES["data"], FRAMES["resend"], FRAMES["unreliable"], FRAMES["token"]])
def test_bytes_left_over_are_malformed(frame: Frame) -> None:
    with pytest.raises(FrameError):
        CODEC.decode(CODEC.encode(frame) + b"!")
