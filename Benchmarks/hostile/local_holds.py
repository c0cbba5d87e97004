"""local_holds.py -- scenes of `holds.py`: what clients, users of the machine, its network and its files do."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.dns import compose_query
from bench.processes import BenchError, free_port

from .holding import LARGE_CACHE, LARGE_CACHE_KEYS, Attack, LeftOut, Scene, ask, fill, request_text
from .lab import Adversary, Lab

_LARGE_HOSTS = 400_000
_SECONDS = 6.0
_COMMANDS = 3
#: Connections that ask at once: as many as the daemon has places for.
_CONNECTIONS = 32
_PING_GROUPS = Path("/proc/sys/net/ipv4/ping_group_range")


def nothing(lab: Lab) -> tuple[int, Attack]:
  """No client is hostile."""
  port = lab.daemon("json", lab.simulator().port, None)

  def attack() -> int:
    time.sleep(_SECONDS / 2)
    # That nothing is hostile is what this scene is there for.
    return 1
  return port, attack


def client(lab: Lab) -> tuple[int, Attack]:
  """A client with thousands of queries in one segment, and then a flood."""
  port = lab.daemon("json", lab.simulator().port, None)

  def attack() -> int:
    queries = b"".join(len(query).to_bytes(2, "big") + query
                       for query in (compose_query(f"n{number}.hostile.example", number) for number in range(2000)))
    answered = 0
    for _ in range(20):
      try:
        with socket.create_connection(("127.0.0.1", port), 5) as client:
          client.sendall(queries)
          answered += len(client.recv(65535)) > 0
      except OSError:
        pass
    ask(port, [f"n{number}.flood.example" for number in range(20_000)], 0)
    return answered
  return port, attack


def new_names(lab: Lab) -> tuple[int, Attack]:
  """A client with 200 questions in flight, all of names that the cache does not have, of 200 domains."""
  port = lab.daemon("json", lab.simulator().port, None, more=f"[cache]\n{LARGE_CACHE_KEYS}")

  def attack() -> int:
    fill(lab, port)
    return LARGE_CACHE
  return port, attack


def command(*words: str) -> Scene:
  """A command of the operator, with a large hosts file for a reload, and with a full cache for anything else."""
  def scene(lab: Lab) -> tuple[int, Attack]:
    simulator = lab.simulator()
    port = lab.daemon("json", simulator.port, None, more=f"[cache]\n{LARGE_CACHE_KEYS}")
    is_reload = words[0] == "reload"
    if is_reload:
      hosts, path = lab.folder / "hosts", lab.folder / "httpdnsd.toml"
      hosts.write_text("".join(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255} h{number}.hosts.example\n"
                               for number in range(_LARGE_HOSTS)))
      path.write_text(path.read_text().replace('hosts_file = ""', f'hosts_file = "{hosts}"'))
    else:
      fill(lab, port)

    def attack() -> int:
      for _ in range(_COMMANDS):
        subprocess.run([str(lab.programs.httpdnsd), *words, "--socket", str(lab.folder / "control.sock")], check=True,
                       capture_output=True)
        time.sleep(1)
      return _COMMANDS
    return port, attack
  return scene


def requests(paths: list[str], *, is_web: bool = False) -> Scene:
  """Requests on all connections at once, many in one segment and half ones too, for a daemon with a full cache."""
  def scene(lab: Lab) -> tuple[int, Attack]:
    web = free_port()
    more = f'[cache]\n{LARGE_CACHE_KEYS}[web]\naddress = "127.0.0.1:{web}"\n'
    port = lab.daemon("json", lab.simulator().port, None, more=more)
    fill(lab, port)

    def connect() -> socket.socket:
      connection = socket.socket() if is_web else socket.socket(socket.AF_UNIX)
      connection.settimeout(10)
      connection.connect(("127.0.0.1", web) if is_web else str(lab.folder / "control.sock"))
      return connection

    def attack() -> int:
      end, answered = time.monotonic() + _SECONDS, 0
      for number in itertools.count():
        if time.monotonic() > end:
          break
        path = paths[number % len(paths)]
        connections = [connect() for _ in range(_CONNECTIONS)]
        text = request_text(path, "application/json")
        if number % 3 == 1:
          text = request_text(path, is_last=False) * 20 + text
        half = text[:-2] if number % 3 == 2 else text
        try:
          for connection in connections:
            connection.sendall(half)
          for connection in connections:
            if half != text:
              connection.sendall(text[-2:])
          for connection in connections:
            answered += len(connection.recv(1 << 20)) > 0
            while connection.recv(1 << 20):
              pass
        except OSError:
          # The daemon makes room for another connection.
          pass
        for connection in connections:
          connection.close()
      return answered
    return port, attack
  return scene


def echoes(lab: Lab) -> tuple[int, Attack]:
  """Forged replies to each echo request by which addresses are measured."""
  if os.geteuid() != 0:
    raise LeftOut("forged echo replies take root, for a raw socket")
  try:
    _PING_GROUPS.write_text("0 2147483647")
  except OSError as error:
    raise LeftOut(f"{_PING_GROUPS} allows no ping socket, and cannot be set: {error.strerror}") from error
  server = Adversary(lab, "echo", program="floods.py")
  simulator = lab.simulator()
  names = [f"n{number}.echo.example" for number in range(500)]
  simulator.control("PUT", "zone", ("$TTL 5\n$ORIGIN example.\n@ SOA ns1.example. hostmaster.example. 1 3600 600 604800 60\n" + "".join(
    f"n{number}.echo A 127.1.{number % 250}.{last}\n" for number in range(500) for last in range(1, 9))).encode())
  ranking = '[ranking]\nprobe = "icmp"\ninterval = "1s"\nprobes_per_minute = 6000\ndomains = { "example" = "icmp" }\n'
  port = lab.daemon("json", simulator.port, None, more=ranking)

  def attack() -> int:
    ask(port, names * 4, 0.01)
    return server.count("replies")
  return port, attack


def links(lab: Lab) -> tuple[int, Attack]:
  """Links, addresses and routes that come and go as fast as the kernel takes them."""
  if os.geteuid() != 0:
    raise LeftOut("links and addresses take root")
  ip = ["ip", "-batch", "-"]
  lines = ["link add holds0 type veth peer name holds2", "link set holds2 up", "link set holds0 up", "addr add 10.66.0.2/24 dev holds0",
           "route add default via 10.66.0.1"]
  subprocess.run(["ip", "link", "del", "holds0"], capture_output=True)
  subprocess.run(ip, input="\n".join(lines), text=True, check=True, capture_output=True)
  port = lab.daemon_with([f'kind = "json"\nurl = "http://127.0.0.1:{lab.simulator().port}/resolve"\n'], ["system"], more="")

  def attack() -> int:
    burst = []
    for number in range(300):
      place = f"{number >> 8}.{number & 255}"
      burst += [f"addr add 10.67.{place}/32 dev holds0", f"addr add fd00::{number + 1:x}/128 dev holds0 nodad",
                f"route add 10.68.{place}/32 dev holds0"]
    burst += ["link set holds0 down", "link set holds0 up", "route add default via 10.66.0.1"]
    burst += [line.replace(" add ", " del ", 1).removesuffix(" nodad") for line in burst if line.startswith("addr")]
    burst += ["link add holds1 type veth peer name holds3", "link set holds1 up", "link del holds1"] * 5
    end, done = time.monotonic() + _SECONDS, 0
    while time.monotonic() < end:
      result = subprocess.run(["ip", "-force", *ip[1:]], input="\n".join(burst), text=True, capture_output=True)
      done += len(burst) - result.stderr.count("Command failed")
    return done
  return port, attack


def files(lab: Lab) -> tuple[int, Attack]:
  """Files of the network and a table that are written and renamed without a pause, and others beside them."""
  if os.geteuid() != 0:
    raise LeftOut("other files in place of /etc/resolv.conf take root, for a mount namespace")
  subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
  run, resolv, table = Path("/run/NetworkManager"), lab.folder / "resolv.conf", lab.folder / "table.json"
  run.mkdir()
  long = "".join(f"search a{number}.example b{number}.example\nnameserver 127.0.1.{number % 200}\n" for number in range(1000))
  texts = [f"{long}nameserver 127.0.0.{number + 2}\n" for number in range(8)]
  resolv.write_text(texts[0])
  subprocess.run(["mount", "--bind", str(resolv), "/etc/resolv.conf"], check=True)
  table.write_text('{"enable":1,"domainlist":[]}')
  providers = [f'kind = "table"\nfile = "{table}"\n',
               f'kind = "json"\nurl = "http://127.0.0.1:{lab.simulator().port}/resolve"\n']
  port = lab.daemon_with(providers, ["system"])

  def attack() -> int:
    end, number = time.monotonic() + _SECONDS, 0
    other = lab.folder / "other"
    for number in itertools.count():
      if time.monotonic() > end:
        break
      text = texts[number % len(texts)]
      resolv.write_text(text)
      for folder, name in ((run, "no-stub-resolv.conf"), (lab.folder, "table.json")):
        (folder / "new").write_text(text if folder == run else f'{{"enable":1,"domainlist":[],"x":{number}}}')
        (folder / "new").rename(folder / name)
      for _ in range(50):
        other.write_bytes(b"")
        other.rename(lab.folder / "another")
    subprocess.run(["umount", "/etc/resolv.conf", "/run"], check=True)
    return number
  return port, attack
