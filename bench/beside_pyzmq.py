"""How many messages a second, beside pyzmq's PUB/SUB in the same minutes on the same machine?

    python bench/beside_pyzmq.py [--rounds 5] [--size 1000] [--bare]

One sender and three receivers, each a process of its own, in turn: agreed messages through three daemons (what
`covey bench throughput` does), and pyzmq from the sender straight to the receivers, told to lose nothing
(XPUB_NODROP). On both sides every receiver checks count and order; with pyzmq each message carries its number for that,
because PUB/SUB has none. With --bare, pyzmq's programs neither number nor check, but only count. Prints every round,
and the medians.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import zmq

RECEIVERS = 3
SECONDS = 3.0
NUMBER_BYTES = 8
AT_A_TIME = 400
PATIENCE_S = 60
END = b"end"


def covey_rate(size: int) -> float:
    """Messages a second at the slowest receiver."""
    command = [sys.executable, "-m", "covey", "bench", "throughput", "--json"]
    command += ["--size", str(size), "--seconds", str(SECONDS), "--receivers", str(RECEIVERS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True)
    return float(json.loads(done.stdout)["messages_per_s"])


def pyzmq_rate(size: int, bare: bool) -> float:
    """The same, from publisher to subscribers."""
    with tempfile.TemporaryDirectory() as directory, zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
        publisher.setsockopt(zmq.XPUB_NODROP, 1)
        publisher.setsockopt(zmq.XPUB_VERBOSE, 1)  # Or the second subscriber of the same is not told of.
        publisher.setsockopt(zmq.LINGER, PATIENCE_S * 1_000)
        address = f"ipc://{Path(directory) / 'socket'}"
        publisher.bind(address)
        command = [sys.executable, __file__, "--subscribe", address, *(["--bare"] if bare else [])]
        subscribers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(RECEIVERS)]
        try:
            for _ in subscribers:
                publisher.recv()
            sent = publish(publisher, size, bare)
            return min(result(one, sent) for one in subscribers)
        finally:
            for one in subscribers:
                one.kill()
                one.wait()


def publish(publisher: zmq.Socket[bytes], size: int, bare: bool) -> int:
    """How many were sent."""
    same, rest = bytes(size), bytes(size - NUMBER_BYTES)
    end, sent = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        for number in range(sent, sent + AT_A_TIME):
            publisher.send(same if bare else number.to_bytes(NUMBER_BYTES, "little") + rest)
        sent += AT_A_TIME
    publisher.send(END)
    return sent


def subscribe(address: str, bare: bool) -> None:
    """A receiver: prints how many came, and in how many seconds."""
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        subscriber.setsockopt(zmq.SUBSCRIBE, b"")
        subscriber.connect(address)
        received, began = 0, 0.0
        while (message := subscriber.recv()) != END:
            began = began or time.monotonic()
            if not bare and int.from_bytes(message[:NUMBER_BYTES], "little") != received:
                sys.exit(f"message {message[:NUMBER_BYTES]!r} came instead of number {received}")
            received += 1
        print(json.dumps((received, time.monotonic() - began)))


def result(subscriber: subprocess.Popen[str], sent: int) -> float:
    said, _ = subscriber.communicate(timeout=PATIENCE_S)
    if subscriber.returncode:
        sys.exit("a subscriber failed")
    received, seconds = json.loads(said)
    if received != sent:
        sys.exit(f"a subscriber got {received} messages of {sent}")
    return float(received / seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=1_000, help="bytes a message")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--subscribe", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.subscribe:
        subscribe(asked.subscribe, asked.bare)
        return
    print("round    covey    pyzmq   ratio   (messages/s at the slowest receiver)")
    seen = []
    for number in range(1, asked.rounds + 1):
        seen.append((covey_rate(asked.size), pyzmq_rate(asked.size, asked.bare)))
        print(f"{number:5} {seen[-1][0]:8,.0f} {seen[-1][1]:8,.0f} {seen[-1][0] / seen[-1][1]:7.2f}")
    ours, theirs = (median(one) for one in zip(*seen, strict=True))
    print(f"   of {asked.rounds} {ours:6,.0f} {theirs:8,.0f} {median(a / b for a, b in seen):7.2f}   (medians)")


if __name__ == "__main__":
    main()
