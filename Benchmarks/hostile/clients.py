"""clients.py -- clients that ask over UDP at a steady rate, many at once, and what became of each query."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median

from bench.dns import compose_query

#: Seconds after which a client does not wait any longer.
PATIENCE = 6.0
_IDENTIFIERS = 65536


@dataclass
class Query:
  """One query and its end."""

  name: str
  sent: float
  #: Seconds to the answer; None where none came.
  latency: float | None = None
  rcode: int | None = None
  #: The first address of the answer.
  address: str | None = None


@dataclass
class Stream:
  """A client: from where, how many queries a second, and which names."""

  source: str
  rate: float
  names: Iterator[str]
  #: Seconds after the beginning when it starts and ends.
  begin: float = 0.0
  end: float = float("inf")
  #: QTYPE.
  kind: int = 1
  queries: list[Query] = field(default_factory=list)

  def answered(self, address: str) -> int:
    """How many queries were answered with that address."""
    return sum(query.address == address for query in self.queries)

  def failed(self, *addresses: str) -> int:
    """How many got none of these addresses."""
    return sum(query.address not in addresses for query in self.queries)

  def latency(self) -> float:
    """The median of the answered ones, in milliseconds."""
    known = [query.latency for query in self.queries if query.latency is not None]
    return 1000 * median(known) if known else float("inf")


def first_address(response: bytes) -> str | None:
  """The first A record of a response, whatever stands before it."""
  count = int.from_bytes(response[6:8], "big")
  place = _after_name(response, 12) + 4
  for _ in range(count):
    place = _after_name(response, place)
    kind, length = int.from_bytes(response[place:place + 2], "big"), int.from_bytes(response[place + 8:place + 10], "big")
    if kind == 1 and length == 4:
      return socket.inet_ntoa(response[place + 10:place + 14])
    place += 10 + length
  return None


def _after_name(message: bytes, place: int) -> int:
  while place < len(message) and message[place]:
    if message[place] >= 0xC0:
      return place + 2
    place += message[place] + 1
  return place + 1


class _Asker:
  """One stream while it runs."""

  def __init__(self, stream: Stream, port: int, start: float) -> None:
    self.stream = stream
    self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    self.socket.bind((stream.source, 0))
    self.socket.connect(("127.0.0.1", port))
    self.socket.setblocking(False)
    self.due = start + stream.begin
    self.end = start + stream.end
    self._waiting: dict[int, Query] = {}
    self._next = 0

  def send_due(self, now: float, until: float) -> None:
    """Sends what is due; a client that is late catches up."""
    while self.due <= now and self.due < min(self.end, until):
      name = next(self.stream.names, None)
      if name is None:
        self.due = float("inf")
        return
      query = Query(name, time.monotonic())
      self.stream.queries.append(query)
      self._waiting[self._next] = query
      try:
        self.socket.send(compose_query(name, self._next, self.stream.kind))
      except OSError:
        pass  # the daemon's buffer is full, or the port is closed: no answer
      self._next = (self._next + 1) % _IDENTIFIERS
      self.due += 1 / self.stream.rate

  def receive(self) -> None:
    """Takes every response that is there."""
    while True:
      try:
        response = self.socket.recv(65535)
      except BlockingIOError:
        return
      except OSError:
        continue  # an ICMP error of a query before
      query = self._waiting.pop(int.from_bytes(response[:2], "big"), None)
      if query is not None:
        query.latency = time.monotonic() - query.sent
        query.rcode = response[3] & 15
        query.address = first_address(response)

  def is_done(self, now: float, until: float) -> bool:
    """Whether no query is due and every query without an answer is older than PATIENCE."""
    if self.due < min(self.end, until):
      return False
    return all(query.sent + PATIENCE < now for query in self._waiting.values())


def drive(port: int, streams: list[Stream], seconds: float, tick: Callable[[float], None] | None = None) -> None:
  """Runs the streams side by side against 127.0.0.1, then waits for the answers that are missing.

  `tick` is called about twenty times a second with the seconds since the beginning.
  """
  start = time.monotonic()
  until = start + seconds
  askers = [_Asker(stream, port, start) for stream in streams]
  poller = select.poll()
  by_descriptor = {asker.socket.fileno(): asker for asker in askers}
  for descriptor in by_descriptor:
    poller.register(descriptor, select.POLLIN)
  while True:
    now = time.monotonic()
    if tick is not None:
      tick(now - start)
    for asker in askers:
      asker.send_due(now, until)
    if now >= until and all(asker.is_done(now, until) for asker in askers):
      break
    due = min([asker.due for asker in askers if asker.due < min(asker.end, until)], default=now + 0.05)
    for descriptor, _ in poller.poll(1000 * max(0.0, min(due - time.monotonic(), 0.05))):
      by_descriptor[descriptor].receive()
  for asker in askers:
    asker.socket.close()
