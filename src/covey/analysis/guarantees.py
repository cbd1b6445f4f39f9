"""The guarantees that a trace can decide, by number, with their names: those that `covey trace check` reports on."""

from __future__ import annotations

from typing import Final

CHECKED: Final = {
    "S1": "initial view",
    "S2": "self inclusion",
    "S3": "local monotonicity",
    "S4": "membership agreement",
    "S5": "transitional set",
    "S6": "no duplication",
    "S7": "integrity",
    "S8": "virtual synchrony",
    "S9": "same view delivery",
    "S10": "sane view",
    "S11": "transitional signal",
    "S12": "self delivery",
    "S13": "termination",
    "S14": "precision",
    "S15": "calm under partial connectivity",
    "M1": "unreliable",
    "M2": "reliable",
    "M3": "fifo",
    "M4": "causal",
    "M5": "agreed",
    "M6": "safe",
    "M7": "mixing",
    "M8": "open groups",
    "M9": "several groups",
    "C1": "light changes",
    "C2": "same view",
    "C3": "membership agreement",
    "C4": "unaffected groups",
    "C5": "cause",
    "C6": "self leave",
    "C7": "crash of a client",
    "C8": "name",
}
