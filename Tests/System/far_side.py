"""far_side.py -- the other end of a TUN device: hosts that answer connections and pings after a given time, or do not.

The kernel of a test machine may have no netem; what is sent to the device arrives here, and is counted.
"""

import collections
import fcntl
import heapq
import ipaddress
import os
import select
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass

DEVICE = "far0"
TCP, ICMP, ICMP6 = 6, 1, 58
SYN, RST, ACK = 0x02, 0x04, 0x10


@dataclass(frozen=True)
class Host:
  """How an address behaves."""
  seconds: float = 0.02           # from a packet to its reply
  tcp: str = "open"               # open, reset or silent
  answers_pings: bool = True


def checksum(octets: bytes) -> int:
  """RFC 1071."""
  padded = octets + b"\0" * (len(octets) % 2)
  total = sum(struct.unpack(f">{len(padded) // 2}H", padded))
  while total >> 16:
    total = (total & 0xFFFF) + (total >> 16)
  return ~total & 0xFFFF


def run(*command: str) -> None:
  """Runs a command that has to succeed."""
  subprocess.run(command, check=True)


class FarSide:
  """The hosts behind the device, in the network namespace of the thread that creates it."""

  def __init__(self, networks: tuple[str, ...]):
    self.hosts: dict[str, Host] = {}
    # Of each address, when it was sent a SYN or an echo request.
    self.arrivals: dict[str, list[float]] = collections.defaultdict(list)
    # Ports and sequence numbers of SYNs: the kernel repeats one after a second, just when a probe gives up.
    self._connections: set[tuple[str, bytes]] = set()
    self._device = os.open("/dev/net/tun", os.O_RDWR)
    # TUNSETIFF with IFF_TUN and IFF_NO_PI.
    fcntl.ioctl(self._device, 0x400454CA, struct.pack("16sH22x", DEVICE.encode(), 0x1001))
    run("ip", "address", "add", "10.99.0.1/32", "dev", DEVICE)
    run("ip", "-6", "address", "add", "2001:470:99::1/128", "dev", DEVICE, "nodad")
    run("ip", "link", "set", DEVICE, "up")
    for network in networks:
      run("ip", "route", "add", network, "dev", DEVICE)
    self._is_open = True
    self._thread = threading.Thread(target=self._serve, daemon=True)
    self._thread.start()

  def close(self) -> None:
    """Ends it; the device goes with it."""
    self._is_open = False
    self._thread.join()
    os.close(self._device)

  def count(self) -> int:
    """How many SYNs and echo requests came to all addresses."""
    return sum(len(times) for times in self.arrivals.values())

  def _serve(self) -> None:
    replies: list[tuple[float, int, bytes]] = []
    number = 0
    while self._is_open:
      now = time.monotonic()
      while replies and replies[0][0] <= now:
        os.write(self._device, heapq.heappop(replies)[2])
      wait = min(0.2, max(0.0, replies[0][0] - now)) if replies else 0.2
      if not select.select([self._device], [], [], wait)[0]:
        continue
      packet = os.read(self._device, 65536)
      answer = self._answer(packet)
      if answer:
        number += 1
        heapq.heappush(replies, (time.monotonic() + answer[0], number, answer[1]))

  def _answer(self, packet: bytes) -> tuple[float, bytes] | None:
    """When and what the addressed host replies."""
    if packet[0] >> 4 == 4:
      length = (packet[0] & 15) * 4
      protocol, source, target = packet[9], packet[12:16], packet[16:20]
    else:
      length, protocol, source, target = 40, packet[6], packet[8:24], packet[24:40]
    content = packet[length:]
    name = str(ipaddress.ip_address(target))
    host = self.hosts.get(name)
    if protocol == TCP and content[13] & (SYN | ACK) == SYN:
      connection = (name, content[:2] + content[4:8])
      if connection not in self._connections:
        self._connections.add(connection)
        self.arrivals[name].append(time.monotonic())
      if not host or host.tcp == "silent":
        return None
      flags = SYN | ACK if host.tcp == "open" else RST | ACK
      return host.seconds, self._packet(target, source, TCP, self._tcp(content, flags))
    if protocol == ICMP and content[0] == 8 or protocol == ICMP6 and content[0] == 128:
      self.arrivals[name].append(time.monotonic())
      if not host or not host.answers_pings:
        return None
      reply = bytes([0 if protocol == ICMP else 129, 0, 0, 0]) + content[4:]
      return host.seconds, self._packet(target, source, protocol, reply)
    return None

  @staticmethod
  def _tcp(segment: bytes, flags: int) -> bytes:
    """A segment without data that replies to a SYN."""
    source, target, sequence = struct.unpack(">HHI", segment[:8])
    return struct.pack(">HHIIBBHHH", target, source, 1, (sequence + 1) & 0xFFFFFFFF, 5 << 4, flags, 65535, 0, 0)

  @staticmethod
  def _packet(source: bytes, target: bytes, protocol: int, content: bytes) -> bytes:
    """A packet with its checksums."""
    pseudo = source + target + struct.pack(">II", len(content), protocol)
    if len(source) == 4:
      pseudo = source + target + struct.pack(">BBH", 0, protocol, len(content))
    place = 16 if protocol == TCP else 2
    summed = checksum(content if protocol == ICMP else pseudo + content)
    content = content[:place] + struct.pack(">H", summed) + content[place + 2:]
    if len(source) == 16:
      return struct.pack(">IHBB", 6 << 28, len(content), protocol, 64) + source + target + content
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 0, 0, 64, protocol, 0) + source + target
    return header[:10] + struct.pack(">H", checksum(header)) + header[12:] + content


def connect_time(address: str, port: int) -> float:
  """Seconds that a connection takes."""
  began = time.monotonic()
  with socket.create_connection((address, port), timeout=3) as connection:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return time.monotonic() - began
