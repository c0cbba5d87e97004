"""load.py -- sends queries over UDP at a fixed rate until a file appears, and counts the answers.

  load.py SERVER PORT STOP-FILE NAME...

Prints at the end: sent, lost, rate, and the answers without records by the end of their message, where an extended error
stands. Each query is one of a kind, by socket and ID.
"""

import os
import select
import socket
import struct
import sys
import threading
import time

PER_SECOND, BURST, SOCKETS, PER_SOCKET = 5_000, 25, 16, 65_000
# Seconds that the last answers have.
PATIENCE = 10
SO_RCVBUFFORCE = 33


def question(name: str) -> bytes:
  """Flags, counts, question and OPT record of a query for addresses."""
  labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
  return struct.pack(">HHHHH", 0x0100, 1, 0, 0, 1) + labels + b"\0\0\1\0\1" + b"\0\0\x29\x04\xd0" + bytes(6)


class Load:
  """The load, and its counts."""

  def __init__(self, server: str, port: int, names: list[str]):
    self.questions = [question(name) for name in names]
    self.sockets = []
    for _ in range(SOCKETS):
      client = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
      client.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
      client.connect((server, port))
      client.setblocking(False)
      self.sockets.append(client)
    self.sent = self.answered = 0
    self.failures: dict[str, int] = {}
    self.is_over = False

  def receive(self) -> None:
    """Takes answers until all is over."""
    seen = [bytearray(65_536) for _ in self.sockets]
    poll = select.epoll()
    for client in self.sockets:
      poll.register(client.fileno(), select.EPOLLIN)
    by_descriptor = {client.fileno(): index for index, client in enumerate(self.sockets)}
    while not self.is_over:
      for descriptor, _ in poll.poll(0.05):
        index = by_descriptor[descriptor]
        while True:
          try:
            reply = self.sockets[index].recv(2048)
          except BlockingIOError:
            break
          except ConnectionRefusedError:
            # The port is closed: a query before this is lost.
            continue
          number = reply[0] << 8 | reply[1]
          if seen[index][number]:
            continue
          seen[index][number] = 1
          self.answered += 1
          if reply[3] & 0xF or not (reply[6] or reply[7]):
            kind = f"RCODE {reply[3] & 0xF} …{reply[-6:].hex()}"
            self.failures[kind] = self.failures.get(kind, 0) + 1

  def send(self, stop: str) -> None:
    """Sends until the file is there."""
    number, limit, following = 0, SOCKETS * PER_SOCKET, time.monotonic()
    while number < limit and not os.path.exists(stop):
      for _ in range(BURST):
        text = self.questions[number % len(self.questions)]
        try:
          self.sockets[number % SOCKETS].send(struct.pack(">H", number // SOCKETS) + text)
        except ConnectionRefusedError:
          # The word of an earlier one, in this one's place: it counts as lost.
          pass
        self.sent += 1
        number += 1
      following += BURST / PER_SECOND
      time.sleep(max(0.0, following - time.monotonic()))


def main() -> None:
  """Runs the load."""
  server, port, stop, *names = sys.argv[1:]
  load = Load(server, int(port), names)
  receiver = threading.Thread(target=load.receive)
  receiver.start()
  begin = time.monotonic()
  load.send(stop)
  rate = load.sent / (time.monotonic() - begin)
  deadline = time.monotonic() + PATIENCE
  while load.answered < load.sent and time.monotonic() < deadline:
    time.sleep(0.02)
  load.is_over = True
  receiver.join()
  print(f"sent {load.sent} lost {load.sent - load.answered} rate {rate:.0f}", load.failures or "")


if __name__ == "__main__":
  main()
