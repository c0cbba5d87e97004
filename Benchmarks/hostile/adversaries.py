"""adversaries.py -- servers of HTTP/2 and HTTP/1.1 and a store of Redis's protocol that do whatever they like, each a process of its own.

  adversaries.py http2 HOST PORT CERTIFICATE KEY ADDRESS SEED [PLAN [RECORDS]]
  adversaries.py http1 HOST PORT CERTIFICATE KEY ADDRESS SEED PLAN [RECORDS]
  adversaries.py store HOST PORT SEED [CERTIFICATE KEY [RECORDS]]
  adversaries.py flushes HOST PORT SEED

ADDRESS is what the honest answers say; where it is written with a `!` before it, no answer says another one. RECORDS is one of
the plans of records.py: then the records of TLS are what is hostile, and what is in them is honest. All say `listening` when
they do, and once a second what they have done, as JSON: what they may do and have not done counts 0.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import socket
import ssl
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator

import records

_DONE: Counter[str] = Counter()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
  """A frame of HTTP/2 (RFC 9113 section 4.1)."""
  return len(payload).to_bytes(3, "big") + bytes([kind & 255, flags & 255]) + (stream & 0xFFFFFFFF).to_bytes(4, "big") + payload


def _field(name: bytes, value: bytes) -> bytes:
  """A literal that no table keeps, of less than 127 octets each (RFC 7541 section 6.2.2)."""
  return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def _answer(query: bytes, address: bytes) -> bytes:
  """A DNS response with one address and a TTL of 5 s, or the query itself where it cannot be read."""
  place = 12
  while place < len(query) and query[place]:
    place += query[place] + 1
  question = query[12:place + 5]
  if len(query) < 17 or place + 5 > len(query):
    return query
  return query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + question + b"\xc0\x0c\0\1\0\1\0\0\0\x05\0\4" + address


class HTTP2:
  """One connection to the server: what it does is drawn for each."""

  _DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
  _PLANS = ["honest"] * 4 + ["random frames", "held back, then reset", "reset at an octet", "octet by octet", "silent",
                             "odd settings", "pings and a reset", "goaway", "long headers", "no streams", "one answer", "wrong answers"]

  def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, draw: random.Random,
               plan: str) -> None:
    self._reader, self._writer, self._draw, self._plan = reader, writer, draw, plan
    self._address = socket.inet_aton(address.lstrip("!"))
    self._bodies: dict[int, bytes] = {}
    self._cut = draw.randrange(1, 2000)
    self._sent = 0
    _DONE[f"connections: {self._plan}"] += 1

  @classmethod
  def plans(cls, address: str, draw: random.Random) -> Iterator[str]:
    """The plans of connections: each comes as often as any other one."""
    plans = cls._PLANS[:-1] if address.startswith("!") else cls._PLANS
    _DONE.update({"requests": 0, **{f"connections: {plan}": 0 for plan in plans}})
    while True:
      yield from draw.sample(plans, len(plans))

  async def run(self) -> None:
    """Speaks until the connection ends, by either side."""
    try:
      await asyncio.wait_for(self._converse(), 20)
    except (OSError, EOFError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.TimeoutError, ConnectionError):
      pass
    self._end(is_reset=self._draw.random() < 0.5)

  async def _converse(self) -> None:
    await self._reader.readexactly(24)
    if self._plan == "silent":
      await self._reader.read()
      return
    limit = 0 if self._plan == "no streams" else self._draw.choice([1, 10, 100, 1 << 31])
    settings = struct.pack(">HI", 3, limit)
    if self._plan == "odd settings":
      settings += b"".join(struct.pack(">HI", self._draw.choice([1, 2, 4, 5, 6, 8, 9, 60000]),
                                       self._draw.choice([0, 1, 16383, 16384, 1 << 24, (1 << 31) - 1, (1 << 32) - 1]))
                           for _ in range(self._draw.randrange(1, 9)))
    await self._send(_frame(self._SETTINGS, 0, 0, settings))
    while True:
      header = await self._reader.readexactly(9)
      payload = await self._reader.readexactly(int.from_bytes(header[:3], "big"))
      kind, flags, stream = header[3], header[4], int.from_bytes(header[5:9], "big")
      if kind == self._SETTINGS and not flags & 1:
        await self._send(_frame(self._SETTINGS, 1, 0, b""))
      elif kind == self._PING and not flags & 1:
        await self._send(_frame(self._PING, 1, 0, payload))
      elif kind == self._DATA:
        self._bodies[stream] = self._bodies.get(stream, b"") + payload
        if flags & 1:
          _DONE["requests"] += 1
          await self._respond(stream, self._bodies.pop(stream))

  async def _respond(self, stream: int, body: bytes) -> None:
    draw = self._draw
    answer = _answer(body, self._address)
    if self._plan == "wrong answers":
      octets = bytearray(answer)
      for _ in range(draw.randrange(1, 9)):
        octets[draw.randrange(len(octets))] = draw.randrange(256)
      answer = bytes(octets)
    headers = b"\x88" + _field(b"content-type", b"application/dns-message")
    whole = _frame(self._HEADERS, 4, stream, headers) + _frame(self._DATA, 1, stream, answer)
    if self._plan == "random frames":
      whole += b"".join(_frame(draw.randrange(12), draw.randrange(256), draw.choice([0, 1, stream, stream + 2, draw.getrandbits(31)]),
                               draw.randbytes(draw.choice([0, 1, 4, 5, 6, 8, 9, 100, 16384]))) for _ in range(draw.randrange(1, 5)))
      if draw.random() < 0.5:
        whole = whole[draw.randrange(len(whole)):]
    elif self._plan == "held back, then reset":
      await asyncio.sleep(draw.random() * 0.6)
      await self._send(whole * draw.randrange(1, 3))
      raise ConnectionError
    elif self._plan == "one answer":
      await self._send(whole)
      raise ConnectionError
    elif self._plan == "pings and a reset":
      for _ in range(200):
        await self._send(_frame(self._PING, 0, 0, b"12345678"))
      self._end(is_reset=True)
      raise ConnectionError
    elif self._plan == "goaway":
      whole = _frame(self._GOAWAY, 0, 0, struct.pack(">II", draw.choice([0, stream, max(stream - 2, 0), 0x7FFFFFFF]),
                                                     draw.choice([0, 1, 2, 11, 0xFFFFFFFF]))) + whole
    elif self._plan == "long headers":
      field = b"\x40\x01x" + b"\x7f\x81\x1e" + b"x" * 3968
      rest = [b"\xbe" * 16000 for _ in range(draw.randrange(1, 8))]
      whole = _frame(self._HEADERS, 0, stream, b"\x88" + field) + b"".join(
        _frame(9, 4 if number == len(rest) - 1 else 0, stream, part) for number, part in enumerate(rest))
    elif self._plan == "honest" and draw.random() < 0.05:
      whole = _frame(self._RESET, 0, stream, struct.pack(">I", draw.choice([0, 1, 2, 7, 8, 11])))
    await self._send(whole)

  async def _send(self, octets: bytes) -> None:
    if self._plan == "octet by octet":
      for octet in octets:
        self._writer.write(bytes([octet]))
        await self._writer.drain()
      return
    if self._plan == "reset at an octet" and self._sent + len(octets) >= self._cut:
      self._writer.write(octets[:self._cut - self._sent])
      await self._writer.drain()
      self._end(is_reset=True)
      raise ConnectionError
    self._sent += len(octets)
    self._writer.write(octets)
    await self._writer.drain()

  def _end(self, *, is_reset: bool) -> None:
    transport = self._writer.transport
    handle = transport.get_extra_info("socket")
    if is_reset and handle is not None and handle.fileno() >= 0:
      handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class HTTP1:
  """A server of HTTP/1.1: an honest one, or one whose header sections do not end."""

  def __init__(self, address: str, plan: str) -> None:
    self._address, self._plan = socket.inet_aton(address), plan

  async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks on one connection until it ends."""
    try:
      while True:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        answer = _answer(await reader.readexactly(length), self._address)
        _DONE["requests"] += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/dns-message\r\n")
        while self._plan == "lines without end" and not writer.is_closing():
          writer.write(b"x: y\r\n" * 1000)
          await writer.drain()
          await asyncio.sleep(0)
        writer.write(b"Content-Length: %d\r\n\r\n" % len(answer) + answer)
        await writer.drain()
    except (OSError, EOFError, ValueError):
      pass
    writer.transport.abort()


class Store:
  """A store that knows what it was told, and lies about it."""

  def __init__(self, draw: random.Random, *, is_honest: bool = False) -> None:
    self._draw, self._is_honest = draw, is_honest
    self._values: dict[bytes, bytes] = {}
    self._stream: list[tuple[bytes, bytes]] = []
    _DONE.update({"commands": 0} if is_honest else {"commands": 0, "lies": 0})

  async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speaks on one connection until it ends."""
    _DONE["connections: store"] += 1
    lies = 0 if self._is_honest else self._draw.choice([0.001, 0.01, 0.2])
    try:
      while True:
        words = await self._command(reader)
        _DONE["commands"] += 1
        if self._draw.random() < lies:
          if not await self._lie(writer):
            break
        else:
          await self._wait(words)
          writer.write(self._reply(words))
          if words[0].upper() == b"XREAD" and b"BLOCK" in words:
            await asyncio.sleep(0.01)
        await writer.drain()
    except (OSError, EOFError, ValueError, asyncio.IncompleteReadError, ConnectionError):
      pass
    writer.transport.abort()

  async def _wait(self, words: list[bytes]) -> None:
    """Waits until there is a reply."""

  async def _command(self, reader: asyncio.StreamReader) -> list[bytes]:
    count = int((await reader.readline())[1:] or b"0")
    if count <= 0:
      raise EOFError
    words = []
    for _ in range(count):
      length = int((await reader.readline())[1:])
      words.append((await reader.readexactly(length + 2))[:-2])
    return words

  async def _lie(self, writer: asyncio.StreamWriter) -> bool:
    """Says something else. Returns whether the connection goes on."""
    draw = self._draw
    number = draw.choice([0, -1, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 64])
    kind = draw.randrange(9)
    _DONE["lies"] += 1
    if kind == 0:
      writer.write(b":%d\r\n" % number)
    elif kind == 1:
      writer.write(b"*2\r\n$%d\r\n%d\r\n$1\r\n0\r\n" % (len(b"%d" % number), number))
    elif kind == 2:
      writer.write(draw.choice([b"-NOPERM no\r\n", b"-LOADING wait\r\n", b"-MOVED 1 127.0.0.1:1\r\n", b"-MISCONF disk\r\n", b"-ERR x\r\n"]))
    elif kind == 3:
      writer.write(b"$%d\r\n" % draw.choice([5, 100, 1 << 20, 1 << 40]) + draw.randbytes(40))
      return False
    elif kind == 4:
      writer.write(draw.randbytes(draw.randrange(1, 200)))
    elif kind == 5:
      writer.write(b"$%d\r\n" % 300 + draw.randbytes(300) + b"\r\n")
    elif kind == 6:
      writer.write(b"*1\r\n" * draw.randrange(1, 40) + b":1\r\n")
    elif kind == 7:
      await asyncio.sleep(draw.random())
      writer.write(b"+OK\r\n" * draw.randrange(1, 4))
    else:
      return False
    return True

  def _reply(self, words: list[bytes]) -> bytes:
    name = words[0].upper()
    draw = self._draw
    if name == b"PING":
      return b"+PONG\r\n"
    if name == b"TIME":
      now = time.time() + draw.choice([0] * 20 + [-3600, 3600, 1e12])
      seconds, rest = b"%d" % int(now), b"%d" % int(now % 1 * 1e6)
      return b"*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(seconds), seconds, len(rest), rest)
    if name == b"GET":
      return self._bulk(words[1])
    if name == b"SET":
      is_new = words[1] not in self._values
      if b"NX" not in words or is_new:
        self._values[words[1]] = words[2]
      if len(self._values) > 5000:
        self._values.clear()
      return b"+OK\r\n" if b"NX" not in words or is_new else b"$-1\r\n"
    if name in (b"INCRBY", b"INCR"):
      return b":%d\r\n" % draw.choice([1, 5, 10**12, -3])
    if name == b"XADD":
      self._stream.append((b"%d-%d" % (int(time.time() * 1000), len(self._stream)), words[-1]))
      return b"$3\r\n0-1\r\n"
    if name == b"XREAD":
      return self._read(words[-1])
    if name in (b"DEL", b"EXPIRE", b"PEXPIRE", b"ZADD", b"ZREMRANGEBYSCORE", b"EVAL"):
      return b":1\r\n"
    if name in (b"MGET", b"ZRANGE", b"ZRANGEBYSCORE"):
      return b"*0\r\n" if name != b"MGET" else b"*%d\r\n" % (len(words) - 1) + b"".join(self._bulk(key) for key in words[1:])
    return b"+OK\r\n"

  def _bulk(self, key: bytes) -> bytes:
    value = self._values.get(key)
    if value is None:
      return b"$-1\r\n"
    if value and not self._is_honest and self._draw.random() < 0.1:
      octets = bytearray(value)
      octets[self._draw.randrange(len(octets))] ^= 1 << self._draw.randrange(8)
      value = bytes(octets)
    return b"$%d\r\n%s\r\n" % (len(value), value)

  def _read(self, last: bytes) -> bytes:
    """Entries of the stream: of before once more, of other secrets, or none."""
    draw = self._draw
    notes = [note for _, note in self._stream[-50:]] + [draw.randbytes(60)]
    entries = b""
    count = draw.choice([0, 1, 15])
    if count == 0:
      return b"*-1\r\n"
    first = int(last.split(b"-")[0] or b"0") + 1 if last[:1].isdigit() else 1
    for number in range(count):
      note = draw.choice(notes)
      entry = b"%d-%d" % (max(first, int(time.time() * 1000)), number + 1)
      entries += b"*2\r\n$%d\r\n%s\r\n*2\r\n$1\r\nf\r\n$%d\r\n%s\r\n" % (len(entry), entry, len(note), note)
    return b"*1\r\n*2\r\n$1\r\nf\r\n*%d\r\n%s" % (count, entries)


class Flushes(Store):
  """A store that is honest but, after SIGUSR1, for the stream of flushes: each command that reads it gets as much as a reply
  can have.

  These are flushes that daemons have sent, as they are or damaged, and flushes of its own making where there are none: sealed
  ones it cannot make.
  """

  _ENTRIES, _NAMES, _NAME_OCTETS = 15, 256, 240

  def __init__(self, draw: random.Random) -> None:
    super().__init__(draw, is_honest=True)
    self._made = [self._names() for _ in range(64)]
    self._last, self._begins = 0, asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self._begins.set)

  async def _wait(self, words: list[bytes]) -> None:
    if b"BLOCK" in words:
      await self._begins.wait()

  def _names(self) -> bytes:
    """The names of one note."""
    label = bytes([59]) + b"x" * 59
    parts = [label * 3 + bytes([32]) + self._draw.randbytes(16).hex().encode() + b"\7example\0" for _ in range(self._NAMES)]
    return len(parts).to_bytes(2, "big") + b"".join(parts)

  def _note(self) -> bytes:
    draw = self._draw
    head = draw.randbytes(16) + int(time.time() * 1000).to_bytes(8, "big")
    if draw.random() < 0.05:
      return b"\1\0\0" + head + b"\0\0"
    return b"\1\0" + draw.choice([b"\1", b"\2"]) + head + draw.choice(self._made)

  def _read(self, last: bytes) -> bytes:
    if not self._begins.is_set():
      return b"*-1\r\n"
    entries = []
    for _ in range(self._ENTRIES):
      note = self._draw.choice(self._stream[-1000:])[1] if self._stream else self._note()
      if self._stream and self._draw.random() < 0.1:
        note = note[:-1] + bytes([note[-1] ^ 1])
      self._last = max(self._last + 1, int(time.time() * 1000) * 1000)
      name = b"%d-%d" % (self._last // 1000, self._last % 1000)
      entries.append(b"*2\r\n$%d\r\n%s\r\n*2\r\n$1\r\nf\r\n$%d\r\n%s\r\n" % (len(name), name, len(note), note))
    _DONE["notes"] += len(entries)
    return b"*1\r\n*2\r\n$1\r\nf\r\n*%d\r\n%s" % (len(entries), b"".join(entries))


async def _report() -> None:
  while True:
    await asyncio.sleep(1)
    print(json.dumps(_DONE, sort_keys=True), flush=True)


_Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _with_records(serve: _Serve, certificate: str, key: str, plan: str, protocols: list[str]) -> _Serve:
  async def over_records(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
      stream = await records.accept(reader, writer, certificate, key, plan, protocols)
    except (OSError, EOFError):
      writer.transport.abort()
      return
    pumping = asyncio.create_task(stream.pump())
    await serve(stream.content, stream)  # type: ignore[arg-type]
    await pumping
  return over_records


async def _main(words: list[str]) -> None:
  kind, host, port = words[0], words[1], int(words[2])
  protocols = {"http2": ["h2"], "http1": ["http/1.1"]}.get(kind, [])
  draw = random.Random(int(words[6 if protocols else 3]))
  pair, rest = (words[3:5], words[7:]) if protocols else (words[4:6], words[6:])
  kinds = rest[1:] if protocols else rest
  asyncio.get_running_loop().set_exception_handler(lambda *_: None)
  if kind == "http2":
    plans = itertools.repeat(rest[0]) if rest else HTTP2.plans(words[5], draw)
    serve: _Serve = lambda reader, writer: HTTP2(reader, writer, words[5], draw, next(plans)).run()
  elif kind == "http1":
    serve = HTTP1(words[5], rest[0]).serve
  else:
    serve = (Flushes(draw) if kind == "flushes" else Store(draw, is_honest=bool(kinds))).serve
  context = None
  if kinds:
    serve = _with_records(serve, *pair, kinds[0], protocols)
  elif pair:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    # Those who come back would be shown no certificates again.
    context.num_tickets = 0 if rest == ["one answer"] else 2
    if protocols:
      context.set_alpn_protocols(protocols)
  server = await asyncio.start_server(serve, host, port, ssl=context)
  if kinds == ["asks for keys"]:
    # A small room is full soon.
    server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
  print("listening", flush=True)
  async with server:
    await _report()


if __name__ == "__main__":
  asyncio.run(_main(sys.argv[1:]))
