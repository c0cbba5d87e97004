"""asking.py -- clients of several daemons at once, from one thread: by the clock, one after the other, or all at once."""

import select
import socket
import time
from dataclasses import dataclass

from parts import question

# How long a client waits for an answer, in seconds.
PATIENCE = 5.0


@dataclass(frozen=True)
class Query:
  """What is asked, of whom, and how many seconds after the begin."""
  at: float
  address: str
  name: str


@dataclass
class Asked:
  """A query that was sent."""
  query: Query
  sent: float
  # The seconds until the answer; None without one, or without an address in it.
  took: float | None = None


def client(address: str | None = None) -> socket.socket:
  """A socket for queries; with an address one that asks there."""
  made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  made.settimeout(PATIENCE)
  if address:
    made.connect((address, 53))
  else:
    made.bind(("127.0.0.1", 0))
  return made


def has_address(reply: bytes) -> bool:
  """Whether an answer has records and no error."""
  return not reply[3] & 0xF and bool(reply[6] or reply[7])


def by_the_clock(plan: list[Query]) -> list[Asked]:
  """Sends each query at its time, whatever becomes of those before it; ends when all have their answers."""
  asked: list[Asked] = []
  waiting: dict[int, Asked] = {}
  with client() as own:
    own.setblocking(False)
    begin = time.monotonic()
    while len(asked) < len(plan) or (waiting and time.monotonic() < asked[-1].sent + PATIENCE):
      now = time.monotonic()
      while len(asked) < len(plan) and begin + plan[len(asked)].at <= now:
        query, number = plan[len(asked)], len(asked) & 0xFFFF
        waiting[number] = Asked(query, time.monotonic())
        own.sendto(question(query.name, number), (query.address, 53))
        asked.append(waiting[number])
      pause = begin + plan[len(asked)].at - now if len(asked) < len(plan) else 0.1
      if not select.select([own], [], [], max(0.0, pause))[0]:
        continue
      try:
        while True:
          reply = own.recv(4096)
          done = waiting.pop(reply[0] << 8 | reply[1], None)
          if done and has_address(reply):
            done.took = time.monotonic() - done.sent
      except BlockingIOError:
        pass
  return asked


def all_at_once(addresses: list[str], name: str, is_recursive: bool = True) -> set[str]:
  """Asks daemons at once; those that have answered with an address."""
  with client() as own:
    message = question(name, 7, is_recursive)
    for address in addresses:
      own.sendto(message, (address, 53))
    replies = [own.recvfrom(4096) for _ in addresses]
  return {sender[0] for reply, sender in replies if has_address(reply)}


def percentile(values: list[float], share: float) -> float:
  """The value that a share of them does not exceed."""
  return sorted(values)[min(len(values) - 1, int(share * len(values)))]
