"""resolved.py -- systemd-resolved in a booted machine, with DNSOverTLS=yes."""

import subprocess

from lab import ADDRESS, GATEWAY, GUEST, HOST, NAME, PINNED, PINNED6, SIMULATED, Lab
from machine import Machine, wait_for
from report import expect, expect_match

# Seconds that the machine may be there.
LIMIT = 150
SETTINGS = "/etc/systemd/resolved.conf.d/lab.conf"


def check(lab: Lab) -> None:
  """The machine is linked with this network, and resolves by the daemon."""
  with Machine(LIMIT) as machine:
    machine.write("/usr/local/share/ca-certificates/lab.crt", lab.authority.root.read_text())
    said = machine.offline("chroot", str(machine.root), "env", "TMPDIR=/tmp", "update-ca-certificates")
    if "1 added" not in said:
      expect("resolved: update-ca-certificates", "1 added", said)
    machine.write(SETTINGS, _settings(NAME))
    wants = machine.root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "systemd-resolved.service").unlink(missing_ok=True)
    (wants / "systemd-resolved.service").symlink_to("/lib/systemd/system/systemd-resolved.service")
    machine.boot()
    _connect(machine)
    # It learns of the link from the kernel a moment later.
    wait_for("resolved uses the link", lambda: "Network is down" not in _resolve(machine, "-4", HOST))
    for name, address, kind in ((HOST, PINNED, "-4"), (HOST, PINNED6, "-6"), ("example.com", SIMULATED, "-4")):
      said = _resolve(machine, kind, name)
      expect_match(f"resolved with DNSOverTLS=yes, {name} {kind}", rf"{name}: {address}\b", said)
    expect_match("resolved, the answer came over TLS", "acquired via local or encrypted transport: yes", said)
    expect_match("resolved, NXDOMAIN", "not found", _resolve(machine, "missing.example.com"))
    machine.write(SETTINGS, _settings("other.example"))
    machine.run("systemctl", "restart", "systemd-resolved")
    said = _resolve(machine, "-4", HOST)
    expect("resolved refuses a certificate for another name", False, PINNED in said)


def _resolve(machine: Machine, *arguments: str) -> str:
  """What resolvectl prints of a name."""
  return machine.run("resolvectl", "query", *arguments, check=False)


def _settings(name: str) -> str:
  return f"[Resolve]\nDNS={ADDRESS}#{name}\nDNSOverTLS=yes\nDNSSEC=no\nDomains=~.\nLLMNR=no\nMulticastDNS=no\n"


def _connect(machine: Machine) -> None:
  """A link between this network and the machine's."""
  for command in (f"ip link add lab type veth peer name host netns {machine.leader}",
                  f"ip address add {GATEWAY} dev lab", "ip link set lab up"):
    subprocess.run(command.split(), check=True, timeout=30)
  for command in (f"ip address add {GUEST} dev host", "ip link set host up",
                  f"ip route add default via {GATEWAY.partition('/')[0]}"):
    machine.run(*command.split())
