"""delay.py -- puts a nameserver far away: each of its responses takes a fixed time longer."""

from __future__ import annotations

import heapq
import select
import socket
import threading
import time

_LARGEST = 4096


class FarServer:
  """Relays datagrams between clients and a nameserver of this machine. A response leaves `delay` seconds after its
  query has come, whatever of it the nameserver has used itself."""

  def __init__(self, target: int, delay: float) -> None:
    self._delay = delay
    self._clients = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    self._clients.bind(("127.0.0.1", 0))
    self._server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    self._server.connect(("127.0.0.1", target))
    self.port: int = self._clients.getsockname()[1]
    #: Under the identifier that the nameserver sees: the client, its own identifier, and when its response is due.
    self._queries: dict[bytes, tuple[tuple[str, int], bytes, float]] = {}
    self._responses: list[tuple[float, tuple[str, int], bytes]] = []
    self._count = 0
    self._is_ending = threading.Event()
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._thread.start()

  def stop(self) -> None:
    """Ends the relaying; nothing is answered any more."""
    self._is_ending.set()
    self._thread.join()
    self._clients.close()
    self._server.close()

  def _run(self) -> None:
    while not self._is_ending.is_set():
      wait = self._responses[0][0] - time.monotonic() if self._responses else 0.2
      readable, _, _ = select.select([self._clients, self._server], [], [], max(0, min(wait, 0.2)))
      if self._clients in readable:
        self._take_query()
      if self._server in readable:
        self._take_response()
      while self._responses and self._responses[0][0] <= time.monotonic():
        _, client, response = heapq.heappop(self._responses)
        self._clients.sendto(response, client)

  def _take_query(self) -> None:
    query, client = self._clients.recvfrom(_LARGEST)
    self._count = (self._count + 1) % 65536
    identifier = self._count.to_bytes(2, "big")
    self._queries[identifier] = (client, query[:2], time.monotonic() + self._delay)
    self._server.send(identifier + query[2:])

  def _take_response(self) -> None:
    response = self._server.recv(_LARGEST)
    if asked := self._queries.pop(response[:2], None):
      client, identifier, due = asked
      heapq.heappush(self._responses, (due, client, identifier + response[2:]))
