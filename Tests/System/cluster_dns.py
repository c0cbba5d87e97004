"""cluster_dns.py -- stands for a cluster's DNS: one address for every name, one name for every address, over UDP.

  cluster_dns.py ADDRESS
"""

import socket
import sys

ADDRESS = bytes([10, 1, 2, 3])
NAME = b"\x03pod\x07cluster\x05local\x00"
TYPE_A, TYPE_PTR = 1, 12


def response(query: bytes) -> bytes:
  """The answer to one question; no record for types that are not known here."""
  end = query.index(0, 12) + 5
  kind = int.from_bytes(query[end - 4:end - 2], "big")
  data = {TYPE_A: ADDRESS, TYPE_PTR: NAME}.get(kind)
  record = b"" if data is None else (
    b"\xc0\x0c" + query[end - 4:end] + (30).to_bytes(4, "big") + len(data).to_bytes(2, "big") + data)
  counts = b"\x00\x01" + (b"\x00\x01" if record else b"\x00\x00") + b"\x00\x00\x00\x00"
  return query[:2] + b"\x85\x80" + counts + query[12:end] + record


def main() -> None:
  """Answers until it is ended."""
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind((sys.argv[1], 53))
    print("listening", flush=True)
    while True:
      query, client = server.recvfrom(4096)
      server.sendto(response(query), client)


if __name__ == "__main__":
  main()
