"""plain.py -- a plain resolver that says one address about every name, and writes what it was asked.

plain.py HOST PORT ADDRESS [denies|forgets]: with `denies`, names below `lan` do not exist; with `forgets`, one question a
second for another type than A gets no answer.
"""

import socket
import struct
import sys
import time

_A = b"\0\1"


class _Resolver:
  """One answer for A, NODATA for every other type, nothing over TCP."""

  def __init__(self, address: str, habit: str) -> None:
    self._address, self._habit = address, habit
    self._forgot = 0.0

  def reply(self, query: bytes) -> bytes | None:
    """The response; None for silence."""
    end = 12
    while end < len(query) and query[end]:
      end += query[end] + 1
    question = query[12:end + 5]
    if len(question) < 5 or query[2] & 0x80:
      return None
    kind = question[-4:-2]
    print(_text(question), int.from_bytes(kind, "big"), f"{time.monotonic():.3f}", flush=True)
    if self._habit == "forgets" and kind != _A and time.monotonic() - self._forgot > 1:
      self._forgot = time.monotonic()
      return None
    if self._habit == "denies" and question[:-4].lower().endswith(b"\3lan\0"):
      return query[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question
    is_address = kind == _A
    answer = struct.pack(">HHHIH", 0xC00C, 1, 1, 300, 4) + socket.inet_aton(self._address) if is_address else b""
    return query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if is_address else 0, 0, 0) + question + answer


def _text(question: bytes) -> str:
  labels, place = [], 0
  while question[place]:
    labels.append(question[place + 1:place + 1 + question[place]].decode("ascii", "replace"))
    place += question[place] + 1
  return ".".join(labels).lower()


def _serve(host: str, port: int, resolver: _Resolver) -> None:
  listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  listening.bind((host, port))
  print("listening", flush=True)
  while True:
    query, sender = listening.recvfrom(4096)
    reply = resolver.reply(query)
    if reply is not None:
      listening.sendto(reply, sender)


if __name__ == "__main__":
  _serve(sys.argv[1], int(sys.argv[2]), _Resolver(sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else ""))
