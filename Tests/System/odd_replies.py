"""odd_replies.py -- replies that break a rule: the daemon over DoH and over plain DNS, beside unbound behind the same server.

Where unbound finds data, the daemon has to find it, unless the reply is one of `JUDGED`.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import dns.message
import dns.query
import dns.rdatatype

HOST = "127.53.77.1"
ODD, RECURSOR, BY_DOH, BY_LOCALDNS = 5311, 5312, 5313, 5314
_GOOD = bytes([192, 0, 2, 1])
#: A record of QNAME: a pointer to the question, type, class, TTL, length.
_A, _NS, _CNAME, _AAAA, _OPT = 1, 2, 5, 28, 41


def _record(kind: int, rdata: bytes, owner: bytes = b"\xc0\x0c") -> bytes:
  return owner + struct.pack(">HHIH", kind, 1, 300, len(rdata)) + rdata


def _name(text: str) -> bytes:
  return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def _opt() -> bytes:
  return b"\0" + struct.pack(">HHIH", _OPT, 1232, 0, 0)


def _reply(*answers: bytes, authorities: tuple[bytes, ...] = (), additionals: tuple[bytes, ...] = (), rcode: int = 0,
           more: bytes = b"", additional_count: int | None = None) -> Callable[[bytes], bytes]:
  def compose(query: bytes) -> bytes:
    end = 12
    while query[end]:
      end += query[end] + 1
    counts = (1, len(answers), len(authorities), len(additionals) if additional_count is None else additional_count)
    head = query[:2] + struct.pack(">HHHHH", 0x8180 | rcode, *counts)
    return head + query[12:end + 5] + b"".join(answers + authorities + additionals) + more
  return compose


_USUAL = _record(_A, _GOOD)
#: What breaks a rule: type, reply, and the data that the daemon has to give.
REPLIES: dict[str, tuple[str, Callable[[bytes], bytes], set[str]]] = {
  "aaaa-of-4-octets-beside": ("A", _reply(_USUAL, additionals=(_record(_AAAA, _GOOD),)), {"192.0.2.1"}),
  "ns-of-1-octet-beside": ("A", _reply(_USUAL, authorities=(_record(_NS, b"\x05"),)), {"192.0.2.1"}),
  "two-opt": ("A", _reply(_USUAL, additionals=(_opt(), _opt())), {"192.0.2.1"}),
  "additional-cut-off": ("A", _reply(_USUAL, additional_count=2), {"192.0.2.1"}),
  "octets-behind": ("A", _reply(_USUAL, more=b"\0\1\2\3"), {"192.0.2.1"}),
  "nxdomain-with-data": ("A", _reply(_USUAL, rcode=3), {"192.0.2.1"}),
  "a-of-3-octets-beside": ("A", _reply(_record(_A, _GOOD[:3]), _USUAL), {"192.0.2.1"}),
  "only-a-of-3-octets": ("A", _reply(_record(_A, _GOOD[:3])), set()),
  "two-cnames": ("A", _reply(_record(_CNAME, _name("nowhere.example")), _record(_CNAME, _name("there.example")),
                             _record(_A, _GOOD, _name("there.example"))), {"192.0.2.1"}),
  "alias-behind-its-target": ("A", _reply(_record(_A, _GOOD, _name("there.example")),
                                          _record(_CNAME, _name("there.example"))), {"192.0.2.1"}),
  "gap": ("A", _reply(_record(_CNAME, _name("nowhere.example")), _record(_A, _GOOD, _name("there.example"))), set()),
  "empty-txt": ("TXT", _reply(_record(16, b"")), {"\\# 0"}),
  "svcparams-out-of-order": ("HTTPS", _reply(_record(65, bytes.fromhex("0001000003000220fb000100030268 32".replace(" ", "")))),
                             {"\\# 16 0001000003000220fb00010003026832"}),
}
#: What unbound may find and the daemon does not give, and why.
JUDGED = {"only-a-of-3-octets": "an address of 3 octets is invalid",
          "gap": "data that no alias leads to is no verdict: the next upstream is asked"}


class _Server:
  """The one server: plain DNS over UDP, DoH at /dns-query, and a refusal at every other path."""

  def __init__(self) -> None:
    self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    self._socket.bind((HOST, ODD))
    threading.Thread(target=self._serve, daemon=True).start()

    class Handler(BaseHTTPRequestHandler):
      protocol_version = "HTTP/1.1"

      def do_POST(self) -> None:  # noqa: N802 (the name is http.server's)
        query = self.rfile.read(int(self.headers["Content-Length"]))
        body = _answer(query) if self.path == "/dns-query" else b""
        self.send_response(200 if body else 403)
        self.send_header("Content-Type", "application/dns-message")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

      def log_message(self, *_: object) -> None:
        pass

    self._web = ThreadingHTTPServer((HOST, ODD), Handler)
    threading.Thread(target=self._web.serve_forever, daemon=True).start()

  def _serve(self) -> None:
    while True:
      query, client = self._socket.recvfrom(4096)
      self._socket.sendto(_answer(query), client)


def _answer(query: bytes) -> bytes:
  label = query[13:13 + query[12]].decode("ascii", "replace").lower()
  _, compose, _ = REPLIES.get(label, ("A", _reply(_USUAL), set()))
  return compose(query)


def _data(name: str, kind: str, port: int) -> set[str]:
  """The data that a client gets; RDATA that dnspython does not take apart stays octets."""
  query = dns.message.make_query(f"{name}.odd.example.", kind)
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
    channel.settimeout(6)
    channel.connect((HOST, port))
    channel.send(query.to_wire())
    try:
      octets = channel.recv(65535)
    except OSError:
      return set()
  return _final(octets, dns.rdatatype.from_text(kind))


def _final(octets: bytes, kind: int) -> set[str]:
  """The RDATA of a type in an answer section, as text."""
  found: set[str] = set()
  place = _skip(octets, 12) + 4
  for _ in range(int.from_bytes(octets[6:8], "big")):
    place = _skip(octets, place)
    record, length = int.from_bytes(octets[place:place + 2], "big"), int.from_bytes(octets[place + 8:place + 10], "big")
    rdata = octets[place + 10:place + 10 + length]
    if record == kind:
      found.add(socket.inet_ntoa(rdata) if kind == _A and length == 4 else f"\\# {length} {rdata.hex()}".rstrip())
    place += 10 + length
  return found


def _skip(octets: bytes, place: int) -> int:
  while octets[place]:
    if octets[place] >= 0xC0:
      return place + 2
    place += octets[place] + 1
  return place + 1


def compare(httpdnsd: Path, folder: Path, children: list[subprocess.Popen]) -> tuple[list[str], list[str]]:
  """Asks for every odd reply; what was judged right, and the differences."""
  _Server()
  (folder / "odd-unbound.conf").write_text(
    f'server:\n  interface: {HOST}@{RECURSOR}\n  access-control: 127.0.0.0/8 allow\n  do-not-query-localhost: no\n'
    f'  username: ""\n  chroot: ""\n  directory: "{folder}"\n  pidfile: ""\n  use-syslog: no\n  do-daemonize: no\n'
    f'  local-zone: "example." nodefault\n  module-config: "iterator"\nremote-control:\n  control-enable: no\n'
    f'forward-zone:\n  name: "."\n  forward-addr: {HOST}@{ODD}\n')
  arguments = [["/usr/sbin/unbound", "-d", "-c", str(folder / "odd-unbound.conf")]]
  for port, path, local in ((BY_DOH, "/dns-query", []), (BY_LOCALDNS, "/refused", [f"{HOST}:{ODD}"])):
    file = folder / f"odd-{port}.toml"
    file.write_text(
      f'state_directory = "{folder}"\n[listen]\naddresses = ["{HOST}:{port}"]\n[[provider]]\nkind = "doh"\n'
      f'url = "http://{HOST}:{ODD}{path}"\n[localdns]\nservers = {local}\n[names]\nhosts_file = ""\n[control]\nsocket = ""\n'
      .replace("'", '"'))
    arguments.append([str(httpdnsd), "run", "--config", str(file)])
  for number, command in enumerate(arguments):
    with open(folder / f"odd-{number}.log", "wb") as log:
      children.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))
  ports = (RECURSOR, BY_DOH, BY_LOCALDNS)
  deadline = time.monotonic() + 20
  while time.monotonic() < deadline and not all(_data("usual", "A", port) for port in ports):
    time.sleep(0.2)
  judged, differences = [], []
  for name, (kind, _, expected) in REPLIES.items():
    theirs = _data(name, kind, RECURSOR)
    for way, port in (("DoH", BY_DOH), ("LocalDNS", BY_LOCALDNS)):
      ours = _data(name, kind, port)
      if ours != expected:
        differences.append(f"{name} {kind} by {way}: {sorted(ours)} for {sorted(expected)}")
      elif theirs and not ours and name not in JUDGED:
        differences.append(f"{name} {kind} by {way}: nothing, where unbound has {sorted(theirs)}")
      elif theirs != ours:
        why = JUDGED.get(name, "what can be read is given")
        judged.append(f"{name} {kind} by {way}: {sorted(ours)}, unbound {sorted(theirs)}: {why}")
  return judged, differences
