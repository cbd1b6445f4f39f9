"""Whether a submission may be taken at all: its size, its names, the room in the queue."""

from __future__ import annotations

from covey.config import COUNT_MAX, FRAME_SLACK, GROUPS_BYTES_MAX, GROUPS_MAX, Settings, part_bytes

from .inputs import Submit
from .transport.queue import SubmitQueue, cost
from .values import Kind, Service
from .wire.group_names import groups_bytes


def problem(submit: Submit, settings: Settings, queue: SubmitQueue) -> str:
    """Why it is refused; empty if it is not."""
    slack = FRAME_SLACK if submit.kind is Kind.MESSAGES else 0
    if len(submit.payload) > settings.message_bytes_max + slack:
        return "the message is too large"
    if not 0 < submit.count <= COUNT_MAX or len(submit.groups) > GROUPS_MAX:
        return "too many messages or groups, or none"
    names_bytes = groups_bytes(submit.groups)
    if names_bytes > GROUPS_BYTES_MAX:
        return "the group names are too long"
    if submit.service is Service.UNRELIABLE:
        too_large = len(submit.payload) > part_bytes(settings.bundle_bytes, names_bytes)
        return "an unreliable message must fit one bundle" if too_large else ""
    fits = queue.has_room(cost(len(submit.payload), names_bytes))
    return "" if fits or submit.kind is Kind.MESSAGES else "the send queue is full"
