"""dns.py -- just enough DNS to ask one question and to see whether it was answered (RFC 1035, section 4.1)."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
  """What a response says: its RCODE and the number of records in its answer section."""

  rcode: int
  records: int


def compose_query(name: str, identifier: int, kind: int = 1) -> bytes:
  """The octets of a query for the records of `name` of a type (A), with RD set."""
  labels = b"".join(bytes([len(label)]) + label.encode("ascii") for label in name.rstrip(".").split("."))
  return struct.pack(">HHHHHH", identifier, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def ask(port: int, name: str, timeout: float) -> Answer | None:
  """Asks 127.0.0.1 once over UDP; None if no response comes within `timeout` seconds or the port is closed."""
  identifier = random.randrange(65536)
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
    channel.settimeout(timeout)
    try:
      channel.connect(("127.0.0.1", port))
      channel.send(compose_query(name, identifier))
      response = channel.recv(4096)
    except OSError:
      return None
  # While no server listens, the kernel may give this socket that very port, which then receives its own query.
  is_response = len(response) >= 12 and response[2] & 0x80 != 0
  if not is_response or response[:2] != identifier.to_bytes(2, "big"):
    return None
  return Answer(rcode=response[3] & 15, records=int.from_bytes(response[6:8], "big"))


def wait_until_answered(port: int, name: str, deadline: float, is_running: Callable[[], bool]) -> bool:
  """Asks again and again until an answer with RCODE 0 comes; False once the monotonic time `deadline` has passed, or
  when the server no longer runs.

  A refused datagram (the port is still closed) is sent again after 0.2 ms, so that the time of the first answer is
  known closely.
  """
  while time.monotonic() < deadline:
    answer = ask(port, name, timeout=0.5)
    if answer is not None and answer.rcode == 0:
      return True
    if not is_running():
      return False
    time.sleep(0.0002 if answer is None else 0.02)
  return False
