"""holds.py -- how long one input of a hostile server, store, resolver or client holds the resolver's loop.

A client asks over TCP, which the loop itself serves, again and again; meanwhile something hostile happens. What the loop's thread
has used of a processor between a question and its answer is what was left of the turn in progress: the most of it is the figure.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.dns import compose_query
from bench.processes import BenchError, free_port

from .lab import Adversary, Lab, OpenLab, Programs, certificate

_ROOT = Path(__file__).resolve().parent.parent.parent
#: Milliseconds of CPU that no input may take.
_MOST = 10.0
_LARGE_HOSTS, _LARGE_CACHE = 400_000, 100_000


class _Watch:
  """Asks over TCP in a thread of its own, and keeps the most CPU time that passed until an answer."""

  def __init__(self, lab: Lab, port: int) -> None:
    self.longest, self.asked = 0.0, 0
    self._path = Path(f"/proc/{lab.daemon_process.pid}/schedstat")
    self._port, self._ends = port, False
    self._thread = threading.Thread(target=self._run, daemon=True)

  def __enter__(self) -> _Watch:
    self._thread.start()
    return self

  def __exit__(self, *_: object) -> None:
    self._ends = True
    self._thread.join()

  def _used(self) -> int:
    return int(self._path.read_text().split()[0])

  def _run(self) -> None:
    query = compose_query("localhost", 7)
    client = None
    while not self._ends:
      try:
        if client is None:
          client = socket.create_connection(("127.0.0.1", self._port), 5)
        before = self._used()
        client.sendall(len(query).to_bytes(2, "big") + query)
        if not client.recv(4096):
          raise OSError
        self.longest = max(self.longest, (self._used() - before) / 1e6)
        self.asked += 1
        time.sleep(0.0003)
      except OSError:
        client = None


def _full(question: bytes) -> bytes:
  """64 KiB of addresses. Each owner is the one before, by a pointer."""
  count = (65_000 - len(question)) // 16
  records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\1\0\0\4" + number.to_bytes(4, "big") for number in range(count))
  return b"\x81\x80\0\1" + count.to_bytes(2, "big") + b"\0\0\0\0" + question + records


def _cut_off(question: bytes) -> bytes:
  """As many records as there can be, and more that do not come."""
  records = b"\0\xff\0\0\1\0\0\0\0\0\0" * ((65_400 - len(question)) // 11)
  return b"\x81\x80\0\1\xff\xff\0\0\0\0" + question + records


class _LargeResolver:
  """A plain resolver whose answers take TCP, and 64 KiB."""

  def __init__(self, answer: Callable[[bytes], bytes], before: bytes = b"") -> None:
    self._compose, self._before = answer, before
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


class _Proxy:
  """A proxy that connects whoever asks by CONNECT."""

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
    server = socket.create_connection((host, int(port)), 5)
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


def _ask(port: int, names: list[str], pause: float = 0.01) -> None:
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    for number, name in enumerate(names):
      try:
        client.send(compose_query(name, number & 65535))
      except OSError:
        pass
      time.sleep(pause)


def _http2(plan: str, *, is_proxied: bool = False) -> Callable[[Lab], tuple[int, Callable[[], None]]]:
  def scene(lab: Lab) -> tuple[int, Callable[[], None]]:
    authority, key = certificate(lab.folder)
    server = Adversary(lab, "http2", str(authority), str(key), "192.0.2.80", "1", plan)
    proxy = f'proxy = "http://127.0.0.1:{_Proxy().port}"\n' if is_proxied else ""
    provider = f'kind = "doh"\nurl = "https://127.0.0.1:{server.port}/dns-query"\nca_file = "{authority}"\n{proxy}'
    port = lab.daemon_with([provider], [])
    return port, lambda: _ask(port, [f"n{number}.good1.example" for number in range(500)])
  return scene


def _body(lab: Lab) -> tuple[int, Callable[[], None]]:
  simulator = lab.simulator("kind=big")
  port = lab.daemon("json", simulator.port, None)
  return port, lambda: _ask(port, [f"n{number}.good1.example" for number in range(100)], 0.05)


def _store(lab: Lab) -> tuple[int, Callable[[], None]]:
  simulator, store = lab.simulator(), Adversary(lab, "store", "1")
  port = lab.daemon("json", simulator.port, None, more=(
    f'[cache]\nredis = "redis://127.0.0.1:{store.port}"\n[fleet]\nsecret = "0123456789abcdef0123456789abcdef"\n'))
  return port, lambda: _ask(port, [f"n{number}.good{number % 200}.example" for number in range(2000)], 0.003)


def _resolver(answer: Callable[[bytes], bytes], before: bytes = b"") -> Callable[[Lab], tuple[int, Callable[[], None]]]:
  def scene(lab: Lab) -> tuple[int, Callable[[], None]]:
    resolver = _LargeResolver(answer, before)
    rule = '[[rule]]\nnames = ["large.example"]\nuse = "localdns"\n'
    port = lab.daemon("json", lab.simulator().port, f"127.0.0.1:{resolver.port}", more=rule)
    return port, lambda: _ask(port, [f"n{number}.large.example" for number in range(200)], 0.02)
  return scene


def _client(lab: Lab) -> tuple[int, Callable[[], None]]:
  port = lab.daemon("json", lab.simulator().port, None)

  def attack() -> None:
    queries = b"".join(len(query).to_bytes(2, "big") + query
                       for query in (compose_query(f"n{number}.hostile.example", number) for number in range(2000)))
    for _ in range(20):
      try:
        with socket.create_connection(("127.0.0.1", port), 5) as client:
          client.sendall(queries)
          client.recv(65535)
      except OSError:
        pass
    _ask(port, [f"n{number}.flood.example" for number in range(20_000)], 0)
  return port, attack


def _command(*words: str) -> Callable[[Lab], tuple[int, Callable[[], None]]]:
  def scene(lab: Lab) -> tuple[int, Callable[[], None]]:
    simulator = lab.simulator()
    hosts = lab.folder / "hosts"
    hosts.write_text("".join(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255} h{number}.hosts.example\n"
                             for number in range(_LARGE_HOSTS if words[0] == "reload" else 1)))
    port = lab.daemon("json", simulator.port, None, more=f"[cache]\nmax_entries = {_LARGE_CACHE}\n")
    path = lab.folder / "httpdnsd.toml"
    path.write_text(path.read_text().replace('hosts_file = ""', f'hosts_file = "{hosts}"'))

    if words[0] == "flush":
      _ask(port, [f"n{number}.good{number % 10_000}.example" for number in range(_LARGE_CACHE // 2)], 0.0005)
      time.sleep(2)

    def attack() -> None:
      for _ in range(3):
        subprocess.run([str(lab.programs.httpdnsd), *words, "--socket", str(lab.folder / "control.sock")], check=True,
                       capture_output=True)
        time.sleep(1)
    return port, attack
  return scene


_SCENES: dict[str, Callable[[Lab], tuple[int, Callable[[], None]]]] = {
  "nothing hostile": lambda lab: (lab.daemon("json", lab.simulator().port, None), lambda: time.sleep(3)),
  "HTTP/2: header sections of 112,000 fields": _http2("long headers"),
  "HTTP/2: random frames": _http2("random frames"),
  "HTTP/2: 200 records and a reset": _http2("pings and a reset"),
  "HTTP/2: an octet in each record": _http2("octet by octet"),
  "HTTP/2 by a proxy: header sections of 112,000 fields": _http2("long headers", is_proxied=True),
  "HTTP/2 by a proxy: random frames": _http2("random frames", is_proxied=True),
  "HTTP/2 by a proxy: 200 records and a reset": _http2("pings and a reset", is_proxied=True),
  "HTTP/2 by a proxy: an octet in each record": _http2("octet by octet", is_proxied=True),
  "HTTP/1.1: a body of 10 MB": _body,
  "a store that lies": _store,
  "a resolver: answers of 64 KiB over TCP": _resolver(_full),
  "a resolver: answers of 64 KiB over TCP that are cut off": _resolver(_cut_off),
  "a resolver: 64 KiB of empty frames over TCP": _resolver(_full, bytes(65_536)),
  "a client: 2,000 queries in one segment, and a flood": _client,
  "a flush of everything": _command("flush"),
  "a reload with a hosts file of 400,000 names": _command("reload"),
}


def main() -> int:
  """Measures every input, and prints a row for each."""
  parser = argparse.ArgumentParser(prog="Benchmarks/run-holds", description=__doc__)
  parser.add_argument("--httpdnsd", type=Path, default=_ROOT / ".build/release/httpdnsd")
  parser.add_argument("--simulator", type=Path, default=_ROOT / ".build/release/httpdns-simulator")
  parser.add_argument("--only", default="", help="the inputs whose name has this")
  options = parser.parse_args()
  status = 0
  for name, scene in _SCENES.items():
    if options.only not in name:
      continue
    try:
      with OpenLab(Programs(options.httpdnsd, options.simulator)) as lab:
        port, attack = scene(lab)
        with _Watch(lab, port) as watch:
          attack()
        print(f"| {name} | {watch.longest:.1f} ms | {watch.asked:,} |", flush=True)
        status = status or int(watch.longest > _MOST)
    except BenchError as error:
      print(f"holds: {name}: {error}", file=sys.stderr)
      return 1
  return status
