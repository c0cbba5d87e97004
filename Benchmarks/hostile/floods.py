"""floods.py -- servers that send more than they are asked for, or what takes long to read; each a process of its own.

  floods.py resolver HOST PORT       a plain resolver: for each query thousands of datagrams, none of them an answer
  floods.py echo HOST PORT           forged replies to each echo request that this machine gets (as root); PORT is not used
  floods.py table HOST PORT          a table of 4 MiB over HTTP, another one each time, also with very many addresses
  floods.py servers HOST PORT        EMAS's list of servers over HTTP: very long, very deep, cut off

Each says `listening` when it does, and once a second what it has done, as JSON.
"""

from __future__ import annotations

import itertools
import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_DONE: Counter[str] = Counter()
#: Datagrams for each query, and echo replies for each request.
_DATAGRAMS, _ECHOES = 2000, 2000
_TABLE_OCTETS, _LIST_OCTETS = 4 << 20, 64 << 10
#: So long a list of servers waits, so that the watch is there when it comes.
_LIST_WAITS = 0.5


def _resolver(host: str, port: int) -> None:
  channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  channel.bind((host, port))
  print("listening", flush=True)
  while True:
    query, sender = channel.recvfrom(4096)
    _DONE["queries"] += 1
    question = query[12:]
    kinds = itertools.cycle([
      bytes([query[0] ^ 1]) + query[1:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question,
      query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + b"\1x" + question,
      query[:2] + b"\x81\x80\xff\xff\xff\xff\0\0\0\0" + question + b"\xc0\x0c" * 700,
      query[:2] + b"\x01\0" + query[4:],
      query[:7],
      # As much as a datagram can have, with a wrong ID.
      bytes([query[0] ^ 1]) + query[1:2] + b"\x81\x80\0\1\xff\xff\0\0\0\0" + question + b"\0\xff\0\0\1\0\0\0\0\0\0" * 5000,
    ])
    for octets in itertools.islice(kinds, _DATAGRAMS):
      try:
        channel.sendto(octets, sender)
        _DONE["datagrams"] += 1
      except OSError:
        # The socket that asked is closed.
        pass


def _checksum(octets: bytes) -> int:
  total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
  total = (total >> 16) + (total & 0xFFFF)
  return ~(total + (total >> 16)) & 0xFFFF


def _echo(_host: str, _port: int) -> None:
  channel = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
  print("listening", flush=True)
  while True:
    packet, _ = channel.recvfrom(4096)
    message = packet[4 * (packet[0] & 15):]
    if message[0] != 8:
      continue
    _DONE["requests"] += 1
    target = (socket.inet_ntoa(packet[12:16]), 0)
    # The identifier is the daemon's, without which the kernel drops a reply; sequence and content are not what was sent.
    forged = []
    for number in range(64):
      rest = message[4:6] + struct.pack(">H", (int.from_bytes(message[6:8], "big") + number) & 65535) + message[8:-1] + b"\0"
      rest += b"\0" * (len(rest) % 2)
      forged.append(b"\0\0" + struct.pack(">H", _checksum(b"\0\0\0\0" + rest)) + rest)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as sender:
      sender.bind((socket.inet_ntoa(packet[16:20]), 0))
      for octets in itertools.islice(itertools.cycle(forged), _ECHOES):
        sender.sendto(octets, target)
        _DONE["replies"] += 1


def _many_names(era: int) -> bytes:
  entries = [{"domain": f"n{number}.e{era}.table.example", "ips": ["192.0.2.1"]} for number in range(_TABLE_OCTETS // 66)]
  return json.dumps({"service": "x", "enable": 1, "domainlist": entries}, separators=(",", ":")).encode()


def _many_addresses(era: int) -> bytes:
  entries = [{"domain": f"n{number}.e{era}.table.example", "ips": [f"1.{number % 99}.{era % 99}.{last}" for last in range(64)]}
             for number in range(_TABLE_OCTETS // 860)]
  return json.dumps({"service": "x", "enable": 1, "domainlist": entries}, separators=(",", ":")).encode()


def table_texts() -> list[bytes]:
  """Tables of just below 4 MiB: of very many names, and of fewer with as many addresses as a name may have."""
  texts = [compose(era) for era in range(2) for compose in (_many_names, _many_addresses)]
  return [text for text in texts if len(text) <= _TABLE_OCTETS]


def _serve(host: str, port: int, bodies: list[bytes], pause: float) -> None:
  class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
      # Only a list of servers has a body that matters.
      time.sleep(pause if self.path.split("?")[0].endswith("/ss") else 0)
      body = bodies[_DONE["transfers"] % len(bodies)]
      _DONE["transfers"] += 1
      self.send_response(200)
      self.send_header("Content-Type", "application/json")
      self.send_header("Content-Length", str(len(body)))
      self.end_headers()
      self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
      pass

  server = ThreadingHTTPServer((host, port), Handler)
  print("listening", flush=True)
  server.serve_forever()


def _table(host: str, port: int) -> None:
  _serve(host, port, table_texts(), 0)


def _servers(host: str, port: int) -> None:
  listed = [f"10.{number >> 8}.{number & 255}.1" for number in range(_LIST_OCTETS // 13)]
  text = json.dumps({"service_ip": listed}).encode()[:-1]
  _serve(host, port, [
    json.dumps({"service_ip": listed[:4500]}, separators=(",", ":")).encode(),
    json.dumps({"service_ip": ["10.0.0.1"] * 4500, "service_ip_port": [1] * 100}).encode()[:_LIST_OCTETS],
    b'{"service_ip":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    b'{"x":' * 10_000 + b"1" + b"}" * 10_000,
    b"{" + b",".join(b'"k%d":0' % number for number in range(6000)) + b"}",
    text[:_LIST_OCTETS],
  ], _LIST_WAITS)


def _report() -> None:
  while True:
    time.sleep(1)
    print(json.dumps(_DONE, sort_keys=True), flush=True)


if __name__ == "__main__":
  threading.Thread(target=_report, daemon=True).start()
  {"resolver": _resolver, "echo": _echo, "table": _table, "servers": _servers}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
