"""plain.py -- a plain resolver that says one address about every name: plain.py HOST PORT ADDRESS."""

import socket
import struct
import sys


def _serve(host: str, port: int, address: str) -> None:
  """The plain resolver: one answer for A, NODATA for every other type, nothing over TCP."""
  listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  listening.bind((host, port))
  print("listening", flush=True)
  while True:
    query, sender = listening.recvfrom(4096)
    end = 12
    while end < len(query) and query[end]:
      end += query[end] + 1
    question = query[12:end + 5]
    if len(question) < 5 or query[2] & 0x80:
      continue
    is_address = question[-4:] == b"\0\1\0\1"
    answer = struct.pack(">HHHIH", 0xC00C, 1, 1, 300, 4) + socket.inet_aton(address) if is_address else b""
    head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1 if is_address else 0, 0, 0)
    listening.sendto(head + question + answer, sender)


if __name__ == "__main__":
  _serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
