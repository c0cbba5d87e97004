"""upstream_holds.py -- scenes of `holds.py`: what a hostile provider, store or resolver sends."""

from __future__ import annotations

import itertools
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from bench.processes import BenchError, free_port

from .floods import table_texts
from .holding import Attack, LeftOut, Scene, ask, resolve
from .lab import GOOD, Adversary, Lab, certificate, chain


def full(question: bytes) -> bytes:
  """64 KiB of addresses. Each owner is the one before, by a pointer."""
  count = (65_000 - len(question)) // 16
  records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\1\0\0\4" + number.to_bytes(4, "big") for number in range(count))
  return b"\x81\x80\0\1" + count.to_bytes(2, "big") + b"\0\0\0\0" + question + records


def cut_off(question: bytes) -> bytes:
  """As many records as there can be, and more that do not come."""
  records = b"\0\xff\0\0\1\0\0\0\0\0\0" * ((65_400 - len(question)) // 11)
  return b"\x81\x80\0\1\xff\xff\0\0\0\0" + question + records


#: Of the scene's network namespace: the room for what a peer has not yet taken.
_WRITE_ROOMS = Path("/proc/sys/net/ipv4/tcp_wmem")


#: Names that a provider over TLS is asked for …
_NAMES = 500
#: … and how many of them have to be answered, where answers come in such records: even a busy machine answers that many.
_LEAST_FOUND = {"octets": 250, "empty records": 25}


class _LargeResolver:
  """A plain resolver whose answers take TCP, and 64 KiB."""

  def __init__(self, answer: Callable[[bytes], bytes], before: bytes = b"") -> None:
    self._compose, self._before, self.answered = answer, before, 0
    self.port = free_port()
    self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    self._datagrams.bind(("127.0.0.1", self.port))
    self._stream = socket.create_server(("127.0.0.1", self.port))
    for run in (self._truncate, self._accept):
      threading.Thread(target=run, daemon=True).start()

  def _truncate(self) -> None:
    while True:
      query, sender = self._datagrams.recvfrom(4096)
      self._datagrams.sendto(query[:2] + b"\x83\x80" + query[4:], sender)

  def _accept(self) -> None:
    while True:
      threading.Thread(target=self._answer, args=[self._stream.accept()[0]], daemon=True).start()

  def _answer(self, client: socket.socket) -> None:
    with client:
      while len(query := client.recv(4096)) > 14:
        end = 14
        while query[end]:
          end += query[end] + 1
        question = query[14:end + 5]
        answer = query[2:4] + self._compose(question)
        client.sendall(self._before + len(answer).to_bytes(2, "big") + answer)
        self.answered += 1


class _Proxy:
  """A proxy that accepts every CONNECT."""

  def __init__(self) -> None:
    self._socket = socket.create_server(("127.0.0.1", 0))
    self.port = self._socket.getsockname()[1]
    threading.Thread(target=self._accept, daemon=True).start()

  def _accept(self) -> None:
    while True:
      threading.Thread(target=self._serve, args=[self._socket.accept()[0]], daemon=True).start()

  def _serve(self, client: socket.socket) -> None:
    request = b""
    while not request.endswith(b"\r\n\r\n"):
      if not (octets := client.recv(1)):
        return
      request += octets
    host, port = request.split()[1].decode().rsplit(":", 1)
    try:
      server = socket.create_connection((host, int(port)), 5)
    except OSError:
      return client.close()
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=self._copy, args=[client, server], daemon=True).start()
    self._copy(server, client)

  def _copy(self, source: socket.socket, target: socket.socket) -> None:
    try:
      while octets := source.recv(65536):
        target.sendall(octets)
    except OSError:
      pass
    for end in (source, target):
      end.close()


class _Endless:
  """A server of HTTP/1.1 whose response begins, and goes on without end.

  Where it `tunnels`, only every second connection is like that. The others are a proxy's that works until the second request.
  """

  def __init__(self, begin: bytes, rest: bytes, *, tunnels: bool) -> None:
    self._begin, self._rest, self._tunnels = begin, rest, tunnels
    #: Connections that got a response without end.
    self.endless = 0
    self._socket = socket.create_server(("127.0.0.1", 0))
    self.port = self._socket.getsockname()[1]
    threading.Thread(target=self._accept, daemon=True).start()

  def _accept(self) -> None:
    for number in itertools.count():
      serve = self._tunnel if self._tunnels and number % 2 == 0 else self._serve
      threading.Thread(target=serve, args=[self._socket.accept()[0]], daemon=True).start()

  def _tunnel(self, client: socket.socket) -> None:
    with client:
      for response in (b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"):
        client.recv(65536)
        client.sendall(response)
      client.recv(65536)

  def _serve(self, client: socket.socket) -> None:
    try:
      client.recv(65536)
      client.sendall(self._begin)
      self.endless += 1
      while True:
        client.sendall(self._rest)
    except OSError:
      client.close()


def endless(begin: bytes, rest: bytes, *, is_proxy: bool = False, tunnels: bool = False) -> Scene:
  """A provider over HTTP/1.1 in clear, or its proxy, whose response goes on without end."""
  def scene(lab: Lab) -> tuple[int, Attack]:
    server = _Endless(begin, rest, tunnels=tunnels)
    place = f'url = "http://192.0.2.7/resolve"\nproxy = "http://127.0.0.1:{server.port}"\n' if is_proxy else (
      f'url = "http://127.0.0.1:{server.port}/resolve"\n')
    port = lab.daemon_with([f'kind = "json"\n{place}'], [])

    def attack() -> int:
      ask(port, [f"n{number}.good1.example" for number in range(300)])
      return server.endless
    return port, attack
  return scene


def http2(plan: str, records: str | None = None, *, is_proxied: bool = False, octets: int = 0, version: str = "http2") -> Scene:
  """A provider over HTTP/2 that breaks its rules, or those of TLS by `records` or by certificates of `octets` octets."""
  def scene(lab: Lab) -> tuple[int, Attack]:
    authority, key = certificate(lab.folder)
    shown = chain(authority, octets) if octets else authority
    server = Adversary(lab, version, str(shown), str(key), GOOD, "1", plan, *([records] if records else []))
    proxy = f'proxy = "http://127.0.0.1:{_Proxy().port}"\n' if is_proxied else ""
    provider = f'kind = "doh"\nurl = "https://127.0.0.1:{server.port}/dns-query"\nca_file = "{authority}"\n{proxy}'
    port = lab.daemon_with([provider], [])

    def attack() -> int:
      names = [f"n{number}.good1.example" for number in range(_NAMES)]
      least = _LEAST_FOUND.get(records or "", 0)
      if (found := resolve(port, names, GOOD)) < least:
        raise BenchError(f"{found} names were answered, of at least {least}")
      return server.count("requests")
    return port, attack
  return scene


def http1(plan: str, records: str | None = None) -> Scene:
  """The same over HTTP/1.1."""
  return http2(plan, records, version="http1")


def key_requests(lab: Lab) -> tuple[int, Attack]:
  """A provider that asks for new keys and reads nothing, where the kernel takes little: reading then waits for writing."""
  try:
    rooms = _WRITE_ROOMS.read_text()
    _WRITE_ROOMS.write_text("4096 16384 65536")
  except OSError as error:
    raise LeftOut(f"{_WRITE_ROOMS} cannot be set: {error.strerror}") from error
  port, attack = http2("honest", "asks for keys")(lab)

  def attack_and_restore() -> int:
    try:
      return attack()
    finally:
      _WRITE_ROOMS.write_text(rooms)
  return port, attack_and_restore


def body(lab: Lab) -> tuple[int, Attack]:
  """A provider over HTTP/1.1 whose bodies are far too large."""
  simulator = lab.simulator("kind=big")
  port = lab.daemon("json", simulator.port, None)

  def attack() -> int:
    ask(port, [f"n{number}.good1.example" for number in range(100)], 0.05)
    return simulator.requests()
  return port, attack


def resolver(answer: Callable[[bytes], bytes], before: bytes = b"") -> Scene:
  """A plain resolver with large answers over TCP."""
  def scene(lab: Lab) -> tuple[int, Attack]:
    resolver = _LargeResolver(answer, before)
    rule = '[[rule]]\nnames = ["large.example"]\nuse = "localdns"\n'
    port = lab.daemon("json", lab.simulator().port, f"127.0.0.1:{resolver.port}", more=rule)

    def attack() -> int:
      ask(port, [f"n{number}.large.example" for number in range(200)], 0.02)
      return resolver.answered
    return port, attack
  return scene


def datagrams(lab: Lab) -> tuple[int, Attack]:
  """A plain resolver that sends thousands of datagrams for each query, while very many queries wait."""
  server = Adversary(lab, "resolver", program="floods.py")
  rule = '[[rule]]\nnames = ["large.example"]\nuse = "localdns"\n'
  port = lab.daemon("json", lab.simulator().port, f"127.0.0.1:{server.port}", more=rule)

  def attack() -> int:
    ask(port, [f"n{number}.large.example" for number in range(5000)], 0.001)
    return server.count("datagrams")
  return port, attack


def table(lab: Lab) -> tuple[int, Attack]:
  """Tables of 4 MiB that are other ones each second, one from a server and one from a file, and reloads that let them go."""
  server = Adversary(lab, "table", program="floods.py")
  file, texts = lab.folder / "table.json", table_texts()
  file.write_bytes(texts[0])
  providers = [f'kind = "table"\nurl = "http://127.0.0.1:{server.port}/"\ninterval = "1s"\ntimeout = "5s"\n',
               f'kind = "table"\nfile = "{file}"\n']
  port = lab.daemon_with(providers, [])

  def attack() -> int:
    path = lab.folder / "httpdnsd.toml"
    text = path.read_text()
    for number in range(24):
      (lab.folder / "new").write_bytes(texts[number % len(texts)])
      (lab.folder / "new").rename(file)
      # Another name is another provider: the one before goes with its table.
      path.write_text(text.replace('name = "p', f'name = "q{number // 4}'))
      if number % 4 == 0:
        lab.daemon_process.send_signal(signal.SIGHUP)
      ask(port, ["n1.e0.table.example"], 0.3)
    return server.count("transfers")
  return port, attack


def server_list(lab: Lab) -> tuple[int, Attack]:
  """Lists of EMAS's servers that are very long, very deep or cut off, for eight providers at a time."""
  server = Adversary(lab, "servers", program="floods.py")
  providers = [f'kind = "emas"\naccount_id = "x{number}"\nscheme = "http"\nservers = ["127.0.0.1:{server.port}"]\n'
               for number in range(8)]
  port = lab.daemon_with(providers, [])

  def attack() -> int:
    path = lab.folder / "httpdnsd.toml"
    text = path.read_text()
    for number in range(6):
      # For another account the list is asked for at once.
      path.write_text(text.replace('account_id = "x', f'account_id = "{number}'))
      lab.daemon_process.send_signal(signal.SIGHUP)
      ask(port, [f"n{number}.good1.example" for number in range(50)], 0.03)
    return server.count("transfers")
  return port, attack
