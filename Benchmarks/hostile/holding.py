"""holding.py -- what the scenes of `holds.py` share: queries, a full cache, and requests on the control socket."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable

from bench.dns import compose_query
from bench.processes import BenchError

from .lab import GOOD_DOMAINS, Lab

#: What is hostile. Returns how often that was done, by the side that did it: 0 shows nothing about the daemon.
Attack = Callable[[], int]
#: Sets a scene up, and returns the daemon's port and what is hostile.
Scene = Callable[[Lab], tuple[int, Attack]]

#: Entries of a full cache.
LARGE_CACHE = 100_000
#: What a daemon with a full cache has in its configuration.
LARGE_CACHE_KEYS = f"max_entries = {LARGE_CACHE}\nmax_bytes = \"64MiB\"\n"
#: Queries that wait for their answers while a cache is filled.
_WINDOW = 200


class LeftOut(Exception):
  """A scene that cannot be set up here; its text says why."""


def ask(port: int, names: list[str], pause: float = 0.01) -> int:
  """Sends queries for names, and reads no answers. Returns how many were sent."""
  sent = 0
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    for number, name in enumerate(names):
      try:
        client.send(compose_query(name, number & 65535))
        sent += 1
      except OSError:
        pass
      time.sleep(pause)
  return sent


def resolve(port: int, names: list[str], address: str, pause: float = 0.01, patience: float = 3) -> int:
  """Sends queries for names, and reads the answers. Returns how many have the address."""
  octets, found = socket.inet_aton(address), 0
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.connect(("127.0.0.1", port))
    client.settimeout(pause)
    queries = [compose_query(name, number & 65535) for number, name in enumerate(names)]
    end = float("inf")
    while queries or time.monotonic() < end:
      if queries:
        client.send(queries.pop())
        end = time.monotonic() + patience
      try:
        found += client.recv(4096).endswith(octets)
      except OSError:
        pass
  return found


def fill(lab: Lab, port: int) -> None:
  """Fills the cache, whose provider has `hostile.zone` and whose configuration has no limit of misses for a domain."""
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.connect(("127.0.0.1", port))
    client.settimeout(0.2)
    waiting = 0
    for number in range(LARGE_CACHE + LARGE_CACHE // 20):
      client.send(compose_query(f"n{number}.good{number % GOOD_DOMAINS}.example", number & 65535))
      waiting += 1
      while waiting >= _WINDOW:
        try:
          client.recv(4096)
          waiting -= 1
        except TimeoutError:
          waiting = 0
  entries = json.loads(request(lab, "/cache?limit=0", "application/json"))["summary"]["entries"]
  if entries < LARGE_CACHE * 9 // 10:
    raise BenchError(f"the cache has only {entries} entries")


def request_text(path: str, accept: str = "text/plain", *, is_last: bool = True) -> bytes:
  """A request over HTTP, after which the server closes the connection."""
  ending = "Connection: close\r\n" if is_last else ""
  return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n{ending}\r\n".encode()


def request(lab: Lab, path: str, accept: str) -> bytes:
  """The body of an answer on the control socket."""
  with socket.socket(socket.AF_UNIX) as client:
    client.connect(str(lab.folder / "control.sock"))
    client.sendall(request_text(path, accept))
    answer = b"".join(iter(lambda: client.recv(65536), b""))
  return answer.partition(b"\r\n\r\n")[2]
