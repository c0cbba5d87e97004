"""encrypted.py -- clients of the encrypted listeners that break every rule: of TLS, of DNS over it, and of HTTP."""

from __future__ import annotations

import base64
import os
import random
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from bench.dns import compose_query
from bench.processes import free_port

#: A client ends after this, whatever the daemon does.
_TIME = 3.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: Types of frames (RFC 9113 section 6).
_HEADERS, _RST, _SETTINGS, _PING, _CONTINUATION, _DATA = 1, 3, 4, 6, 9, 0


class EncryptedClients:
  """Attacks DNS over TLS and over HTTPS of one daemon, each attack on a thread of its own."""

  def __init__(self, folder: Path, certificate: Path, key: Path) -> None:
    self._dot, self._doh, self._plain = free_port(), free_port(), free_port()
    self._folder, self._certificate, self._key = folder, certificate, key
    self.done: Counter[str] = Counter({attack.__name__.strip("_"): 0 for attack in self._attacks()})
    self._threads: list[threading.Thread] = []

  @property
  def configuration(self) -> str:
    """The section of the daemon's configuration."""
    chain, key = self._folder / "listener.pem", self._folder / "listener.key"
    for source, target in ((self._certificate, chain), (self._key, key)):
      target.write_bytes(source.read_bytes())
      target.chmod(0o600)
    return f"""
[encrypted]
dot = ["127.0.0.1:{self._dot}"]
doh = ["127.0.0.1:{self._doh}"]
doh_plain = ["127.0.0.1:{self._plain}"]
certificate_file = "{chain}"
key_file = "{key}"
json = true
forwarded_from = ["127.0.0.0/8"]
connections = 40
per_client = 20
new_per_second = 0
idle = "2s"
"""

  def attack(self, draw: random.Random) -> None:
    """Begins one attack."""
    self._threads = [thread for thread in self._threads if thread.is_alive()]
    if len(self._threads) > 100:
      return
    attack, seed = draw.choice(self._attacks()), draw.randrange(1 << 31)

    def run() -> None:
      try:
        attack(random.Random(seed))
      except (OSError, ValueError):
        pass  # the daemon has left, as it should
      self.done[attack.__name__.strip("_")] += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    self._threads.append(thread)

  def _attacks(self) -> list[Callable[[random.Random], None]]:
    return [self._silence, self._cut_handshake, self._dot_queries, self._odd_frames, self._doh_queries, self._floods,
            self._odd_http2, self._odd_http1, self._renewal]

  # The attacks

  def _silence(self, draw: random.Random) -> None:
    with self._connect(draw.choice((self._dot, self._doh, self._plain))) as client:
      client.recv(1)

  def _cut_handshake(self, draw: random.Random) -> None:
    hello = _client_hello()
    with self._connect(draw.choice((self._dot, self._doh))) as client:
      octets = bytearray(hello)
      for _ in range(draw.randrange(4)):
        octets[draw.randrange(len(octets))] = draw.randrange(256)
      client.sendall(bytes(octets[:draw.randrange(1, len(octets) + 1)]))
      if draw.random() < 0.5:
        client.recv(4096)
      _reset_at_the_end(client)

  def _dot_queries(self, draw: random.Random) -> None:
    with self._tls(self._dot, "dot") as client:
      for number in range(draw.randrange(1, 200)):
        query = compose_query(f"n{draw.randrange(3000)}.good{number % 9}.example", number)
        client.sendall(len(query).to_bytes(2, "big") + query)
      if draw.random() < 0.5:
        client.unwrap()
      while draw.random() < 0.99 and client.recv(4096):
        pass

  def _odd_frames(self, draw: random.Random) -> None:
    with self._tls(self._dot, "dot") as client:
      for _ in range(draw.randrange(1, 40)):
        query = bytearray(compose_query("odd.example", draw.randrange(65536)))
        query[draw.randrange(len(query))] = draw.randrange(256)
        octets = draw.choice((len(query), draw.randrange(65536))).to_bytes(2, "big") + query
        client.sendall(octets[:draw.randrange(1, len(octets) + 1)] if draw.random() < 0.2 else octets)
      client.recv(4096)

  def _doh_queries(self, draw: random.Random) -> None:
    with self._tls(self._doh, "h2") as client:
      client.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b""))
      for number in range(draw.randrange(1, 120)):
        query = compose_query(f"n{draw.randrange(3000)}.good{number % 9}.example", 0)
        path = b"/dns-query?dns=" + base64.urlsafe_b64encode(query).rstrip(b"=")
        client.sendall(_frame(_HEADERS, 5, 2 * number + 1, _section(path)))
        if draw.random() < 0.1:
          client.sendall(_frame(_RST, 0, 2 * number + 1, bytes(4)))
      while draw.random() < 0.99 and client.recv(4096):
        pass

  def _floods(self, draw: random.Random) -> None:
    with self._tls(self._doh, "h2") as client:
      client.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b"\0\4\0\0\0\0" if draw.random() < 0.5 else b""))
      kind = draw.choice((_RST, _SETTINGS, _PING, _CONTINUATION, _DATA))
      for number in range(3000):
        stream = 2 * number + 1
        if kind == _RST:
          client.sendall(_frame(_HEADERS, 5, stream, _section(b"/dns-query")) + _frame(_RST, 0, stream, bytes(4)))
        elif kind == _CONTINUATION:
          first = _frame(_HEADERS, 1, 1, _section(b"/dns-query")) if number == 0 else b""
          client.sendall(first + _frame(_CONTINUATION, 0, 1, _section(b"/dns-query")))
        elif kind == _DATA:
          first = _frame(_HEADERS, 4, stream, _section(b"/dns-query", b"POST"))
          client.sendall(first + _frame(_DATA, 0, stream, bytes(draw.randrange(2000))))
        else:
          client.sendall(_frame(kind, 0, 0, bytes(8 if kind == _PING else 0)))

  def _odd_http2(self, draw: random.Random) -> None:
    with self._tls(self._doh, "h2") as client:
      octets = bytearray(_PREFACE + _frame(_SETTINGS, 0, 0, b""))
      for number in range(draw.randrange(1, 30)):
        octets += _frame(draw.randrange(11), draw.randrange(256), draw.choice((0, 1, 2 * number + 1)),
                         draw.randbytes(draw.randrange(60)))
      for _ in range(draw.randrange(3)):
        octets[draw.randrange(24, len(octets))] = draw.randrange(256)
      while octets:
        piece = draw.randrange(1, len(octets) + 1)
        client.sendall(bytes(octets[:piece]))
        del octets[:piece]
      client.recv(4096)

  def _odd_http1(self, draw: random.Random) -> None:
    query = base64.urlsafe_b64encode(compose_query("n1.good1.example", 0)).rstrip(b"=").decode()
    requests = (f"GET /dns-query?dns={query} HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /resolve?name=n1.good1.example&type=A HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                "POST /dns-query HTTP/1.1\r\nHost: x\r\nContent-Type: application/dns-message\r\nContent-Length: 65535\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 8.8.8.8\r\n\r\n", "GET /dns-query HTTP/1.1\r\n folded: x\r\n\r\n")
    is_plain = draw.random() < 0.5
    with self._connect(self._plain) if is_plain else self._tls(self._doh, "http/1.1") as client:
      octets = bytearray("".join(draw.choice(requests) for _ in range(draw.randrange(1, 20))).encode())
      for _ in range(draw.randrange(3)):
        octets[draw.randrange(len(octets))] = draw.randrange(256)
      client.sendall(bytes(octets[:draw.randrange(1, len(octets) + 1)]))
      client.recv(4096)

  def _renewal(self, draw: random.Random) -> None:
    """Spoils the certificate file, or writes it again."""
    path = self._folder / "listener.pem"
    spoilt = self._folder / f"listener.{draw.randrange(1 << 30)}"
    spoilt.write_bytes(self._certificate.read_bytes() if draw.random() < 0.7 else b"nonsense\n")
    os.replace(spoilt, path)

  # Their connections

  def _connect(self, port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), _TIME)
    client.settimeout(_TIME)
    return client

  def _tls(self, port: int, protocol: str) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(self._connect(port))


def _client_hello() -> bytes:
  """What a client's handshake begins with."""
  context = ssl.create_default_context()
  incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
  client = context.wrap_bio(incoming, outgoing, server_hostname="dns.example.com")
  try:
    client.do_handshake()
  except ssl.SSLWantReadError:
    pass
  return outgoing.read()


def _reset_at_the_end(client: socket.socket) -> None:
  client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
  return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def _section(path: bytes, method: bytes = b"GET") -> bytes:
  """Literal fields without names in a table (RFC 7541 section 6.2.2)."""
  fields = ((b":method", method), (b":scheme", b"https"), (b":path", path), (b":authority", b"x"))
  return b"".join(b"\0" + bytes((len(name),)) + name + bytes((min(len(value), 126),)) + value[:126] for name, value in fields)
