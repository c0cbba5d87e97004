"""encrypted_renewal.py -- how long a renewed certificate takes to be in use, and what happens to connections meanwhile."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .dns import compose_query
from .encrypted_lab import OURS, Listeners, Surroundings
from .lab import make_certificate
from .processes import BenchError
from .servers import FIRST_NAME, start

#: Seconds from one look at the certificate to the next, and until it must be another one.
_INTERVAL, _LIMIT = 0.05, 15


@dataclass
class Renewals:
  """What was seen, one for each renewal."""

  seconds: list[float] = field(default_factory=list)
  kept: int = 0  # connections that still answered
  lost: int = 0


def measure_renewals(around: Surroundings, rounds: int, say: Callable[[str], None]) -> Renewals:
  """Renews the certificate of httpdnsd as an ACME client does, while a connection of each protocol is open."""
  found = Renewals()
  folder = around.lab.new_folder("renewed")
  certificate, key = _place(around.lab.certificate, folder / "certificate.pem"), _place(around.lab.key, folder / "key.pem")
  spec, dot, doh = around.spec(OURS)
  server = start(spec, dataclasses.replace(around.lab, certificate=certificate, key=key))
  listeners = Listeners(server, dot, doh)
  try:
    for number in range(1, rounds + 1):
      renew_once(found, listeners, around, certificate, key)
      say(f"encrypted: round {number} of {rounds} of renewals is done")
  finally:
    server.process.stop()
  return found


def renew_once(found: Renewals, listeners: Listeners, around: Surroundings, certificate: Path, key: Path,
               notify: Callable[[], None] = lambda: None) -> None:
  """One renewal; `notify` tells a server of it that would not notice."""
  fresh, fresh_key = make_certificate(around.lab.new_folder("fresh"))
  expected = ssl.PEM_cert_to_DER_cert(fresh.read_text())
  connections = [_Connection(listeners.port(protocol), protocol) for protocol in ("dot", "doh")]
  try:
    for connection in connections:
      if not connection.ask():
        raise BenchError(f"{listeners.name} does not answer over {connection.protocol}")
    _place(fresh_key, key)
    _place(fresh, certificate)
    notify()
    begin = time.monotonic()
    found.seconds.append(_await_certificate(listeners, expected, begin))
    for connection in connections:
      if connection.ask():
        found.kept += 1
      else:
        found.lost += 1
  finally:
    for connection in connections:
      connection.close()


def _place(source: Path, target: Path) -> Path:
  """Puts a file where another one may be, by renaming."""
  temporary = target.with_name(f".{target.name}.new")
  shutil.copy(source, temporary)
  os.chmod(temporary, 0o600)
  os.rename(temporary, target)
  return target


def _await_certificate(listeners: Listeners, expected: bytes, begin: float) -> float:
  """Seconds from `begin` until both listeners have shown the certificate."""
  while (now := time.monotonic()) < begin + _LIMIT:
    if all(_shown(listeners.port(protocol), protocol) == expected for protocol in ("dot", "doh")):
      return now - begin
    time.sleep(_INTERVAL)
  raise BenchError(f"{listeners.name} does not use a renewed certificate within {_LIMIT} s")


def _connect(port: int, protocol: str) -> ssl.SSLSocket:
  # No certificate is verified: which one it is is what this finds out.
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
  context.check_hostname = False
  context.verify_mode = ssl.CERT_NONE
  context.set_alpn_protocols(["dot"] if protocol == "dot" else ["h2", "http/1.1"])
  return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=5))


def _shown(port: int, protocol: str) -> bytes | None:
  try:
    with _connect(port, protocol) as channel:
      return channel.getpeercert(binary_form=True)
  except OSError:
    return None


class _Connection:
  """A connection that asks more than once: over DoT a query, over HTTP/2 a PING, which needs no state."""

  def __init__(self, port: int, protocol: str) -> None:
    self.protocol = protocol
    try:
      self._channel = _connect(port, protocol)
      if protocol == "doh":
        self._channel.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, 0, b""))
    except OSError as error:
      raise BenchError(f"no connection over {protocol}: {error}") from error

  def ask(self) -> bool:
    """Whether an answer comes."""
    try:
      return self._ask_dns() if self.protocol == "dot" else self._ping()
    except OSError:
      return False

  def close(self) -> None:
    """Ends it."""
    self._channel.close()

  def _ask_dns(self) -> bool:
    query = compose_query(FIRST_NAME, 7)
    self._channel.sendall(struct.pack(">H", len(query)) + query)
    length, = struct.unpack(">H", self._read(2))
    response = self._read(length)
    return response[:2] == query[:2] and response[3] & 15 == 0

  def _ping(self) -> bool:
    sent = os.urandom(8)
    self._channel.sendall(_frame(6, 0, sent))
    while True:
      header = self._read(9)
      payload = self._read(int.from_bytes(header[:3], "big"))
      kind, flags = header[3], header[4]
      if kind == 4 and flags & 1 == 0:
        self._channel.sendall(_frame(4, 1, b""))
      if kind == 7:
        return False  # GOAWAY: the server is about to close
      if kind == 6 and flags & 1 == 1 and payload == sent:
        return True

  def _read(self, count: int) -> bytes:
    octets = b""
    while len(octets) < count:
      more = self._channel.recv(count - len(octets))
      if not more:
        raise ConnectionError("the server has closed")
      octets += more
    return octets


def _frame(kind: int, flags: int, payload: bytes) -> bytes:
  """A frame of HTTP/2 for the whole connection (RFC 9113, section 4.1)."""
  return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + bytes(4) + payload
