"""plain_dns.py -- the resolver that a network hands out: every name has one address, over UDP.

  plain_dns.py ADDRESS ANSWER       listens on ADDRESS, port 53; each A is ANSWER, everything else is empty
"""

import socket
import struct
import sys


def respond(query: bytes, answer: bytes) -> bytes:
  """The response, without OPT."""
  end = 12
  while query[end]:
    end += 1 + query[end]
  question = query[12:end + 5]
  is_address = struct.unpack(">HH", question[-4:]) == (1, 1)
  header = query[:2] + struct.pack(">HHHHH", 0x8180, 1, int(is_address), 0, 0)
  record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + answer if is_address else b""
  return header + question + record


def main() -> None:
  """Answers until it is ended."""
  server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
  server.bind((sys.argv[1], 53))
  answer = socket.inet_aton(sys.argv[2])
  print("ready", flush=True)
  while True:
    query, client = server.recvfrom(4096)
    try:
      server.sendto(respond(query, answer), client)
    except (IndexError, struct.error):
      pass


if __name__ == "__main__":
  main()
