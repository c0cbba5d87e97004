"""records.py -- a server's side of TLS 1.3 whose records are made by hand: of one octet, without content, new keys, or those that ask for
new keys.

OpenSSL sends none of these. It shakes hands here, and reads; what it sends from then on is sealed below, with the secret that it
notes for debuggers (RFC 8446 sections 5.2 and 7.3). The suite is TLS_AES_256_GCM_SHA384, the first that OpenSSL offers.
"""

from __future__ import annotations

import asyncio
import ctypes
import ctypes.util
import hashlib
import hmac
import ssl
import tempfile
from pathlib import Path

_HANDSHAKE, _DATA = 22, 23
#: KeyUpdate, which does not ask for one (RFC 8446 section 4.6.3).
_KEY_UPDATE = b"\x18\0\0\1\0"
#: One that does.
_KEY_REQUEST = b"\x18\0\0\1\1"
_GET_TAG, _TAG = 0x10, 16
#: Records without content before one with content, below the limits at which the connection is closed: 64 in the daemon, and
#: 32 in OpenSSL for records of length zero.
_UPDATES, _EMPTY = 60, 30
#: Every 50th write begins with more records than that.
_EXCESS_EVERY, _EXCESS = 50, 4000
#: The write from which on a server that asks for keys reads nothing and sends PINGs of HTTP/2 (RFC 9113 section 6.7) without end.
_DEAF_FROM = 5
_PING = b"\0\0\x08\x06\0\0\0\0\0deaf ear"

_crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
for _name in ("EVP_CIPHER_CTX_new", "EVP_aes_256_gcm"):
  getattr(_crypto, _name).restype = ctypes.c_void_p
_CIPHER = ctypes.c_void_p(_crypto.EVP_aes_256_gcm())


class _Keys:
  """The server's traffic keys: seals one record after another."""

  def __init__(self, secret: bytes) -> None:
    self._context = ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
    self._use(secret)

  def _use(self, secret: bytes) -> None:
    self._secret, self._number = secret, 0
    self._key, self._iv = self._expand(b"key", 32), int.from_bytes(self._expand(b"iv", 12), "big")

  def _expand(self, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label, of which one block is enough."""
    label = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0\1"
    return hmac.digest(self._secret, info, hashlib.sha384)[:length]

  def seal(self, kind: int, content: bytes) -> bytes:
    """A record with this content, which may be none."""
    text = content + bytes([kind])
    header = b"\x17\3\3" + (len(text) + _TAG).to_bytes(2, "big")
    nonce = (self._iv ^ self._number).to_bytes(12, "big")
    self._number += 1
    sealed, tag, size = ctypes.create_string_buffer(len(text)), ctypes.create_string_buffer(_TAG), ctypes.c_int()
    _crypto.EVP_EncryptInit_ex(self._context, _CIPHER, None, self._key, nonce)
    _crypto.EVP_EncryptUpdate(self._context, None, ctypes.byref(size), header, len(header))
    _crypto.EVP_EncryptUpdate(self._context, sealed, ctypes.byref(size), text, len(text))
    _crypto.EVP_EncryptFinal_ex(self._context, None, ctypes.byref(size))
    _crypto.EVP_CIPHER_CTX_ctrl(self._context, _GET_TAG, _TAG, tag)
    return header + sealed.raw + tag.raw

  def update(self, message: bytes = _KEY_UPDATE) -> bytes:
    """A record that announces new keys, which hold from then on."""
    record = self.seal(_HANDSHAKE, message)
    self._use(self._expand(b"traffic upd", 48))
    return record

  def __del__(self) -> None:
    _crypto.EVP_CIPHER_CTX_free(self._context)


class RecordStream:
  """A connection whose handshake is done: the part of asyncio's reader and writer that servers here use."""

  PLANS = ("octets", "empty records", "new keys", "asks for keys")

  def __init__(self, connection: ssl.SSLObject, arriving: ssl.MemoryBIO, keys: _Keys, plan: str,
               reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    self._connection, self._arriving, self._keys, self._plan = connection, arriving, keys, plan
    self._reader, self._writer = reader, writer
    self._writes = 0
    self._asking: asyncio.Task[None] | None = None
    self.transport, self.drain = writer.transport, writer.drain
    self.content = asyncio.StreamReader()

  async def pump(self) -> None:
    """Reads what the client sends, for `content`, until the connection ends."""
    try:
      while True:
        try:
          octets = self._connection.read(65536)
          if not octets:
            break
          self.content.feed_data(octets)
        except ssl.SSLWantReadError:
          if self._asking:
            await self._asking
            break
          if not (octets := await self._reader.read(65536)):
            break
          self._arriving.write(octets)
    except (OSError, ssl.SSLError):
      pass
    self.content.feed_eof()

  async def _ask(self) -> None:
    """Asks for keys until the connection ends, and reads nothing: the client cannot answer, and must not wait for that."""
    self.transport.pause_reading()
    while not self.transport.is_closing():
      for octet in _PING:
        requests = [self._keys.update(_KEY_REQUEST) for _ in range(_UPDATES)]
        self._writer.write(b"".join([*requests, self._keys.seal(_DATA, bytes([octet]))]))
        await self.drain()
        # The server's other connections have their turns.
        await asyncio.sleep(0)

  def write(self, octets: bytes) -> None:
    """Sends octets, each in a record of its own, with what the plan says before it."""
    seal, update = self._keys.seal, self._keys.update
    self._writes += 1
    if self._plan == "asks for keys" and self._writes >= _DEAF_FROM:
      self._asking = self._asking or asyncio.create_task(self._ask())
      return
    is_excess = self._writes % _EXCESS_EVERY == 0
    records = []
    for octet in octets:
      if self._plan == "new keys":
        records += [update() for _ in range(_EXCESS if is_excess else _UPDATES)]
      elif self._plan == "empty records":
        records += [seal(_DATA, b"") for _ in range(_EXCESS if is_excess else _EMPTY)]
      is_excess = False
      records.append(seal(_DATA, bytes([octet])))
    self._writer.write(b"".join(records))


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, certificate: str, key: str, plan: str,
                 protocols: list[str]) -> RecordStream:
  """Shakes hands with a client that has just connected."""
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.minimum_version = ssl.TLSVersion.TLSv1_3
  # A ticket would take the first numbers of the server's records.
  context.num_tickets = 0
  context.load_cert_chain(certificate, key)
  if protocols:
    context.set_alpn_protocols(protocols)
  with tempfile.NamedTemporaryFile() as notes:
    context.keylog_filename = notes.name
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(arriving, leaving, server_side=True)
    while True:
      try:
        connection.do_handshake()
        is_done = True
      except ssl.SSLWantReadError:
        is_done = False
      if leaving.pending:
        writer.write(leaving.read())
        await writer.drain()
      if is_done:
        break
      if not (octets := await reader.read(65536)):
        raise EOFError
      arriving.write(octets)
    lines = [line.split() for line in Path(notes.name).read_text().splitlines()]
  secret = next(bytes.fromhex(line[2]) for line in lines if line[0] == "SERVER_TRAFFIC_SECRET_0")
  return RecordStream(connection, arriving, _Keys(secret), plan, reader, writer)
