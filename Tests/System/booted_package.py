"""booted_package.py -- the Debian package on a machine that runs: its service, setup, an upgrade, and the removal."""

import contextlib
import shutil
import subprocess
from pathlib import Path

from machine import Machine, check, wait_for
from scene import CONFIGURATION, CONFIGURATION_FILE, LINK, NAME, NETWORK, PROVIDER, SERVICE, Scene

RESOLVER = "../run/systemd/resolve/stub-resolv.conf"
LINK_FILE = "/etc/systemd/network/net0.network"
# What systemd-sysusers writes.
USERS = {f"etc/{name}{old}" for name in ("passwd", "group", "shadow", "gshadow") for old in ("", "-")} | {"etc/.pwd.lock"}
# Where dpkg's own scripts find their programs.
DPKG = ("env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "dpkg")


def try_booted(package: Path, newer: Path) -> None:
  """Installs the package beside systemd-resolved, upgrades it to the newer one while it is asked, and removes it."""
  with Machine() as machine:
    scene = Scene(machine, is_installed=False)
    machine.write(LINK_FILE, LINK)
    scene.enable("systemd-resolved.service", "/lib")
    scene.resolver(RESOLVER)
    for file in (package, newer):
      shutil.copy(file, machine.root / "root" / file.name)
    scene.boot()
    try:
      before = scene.tree()
      resolver = machine.run("cat", "/etc/resolv.conf")
      installed(scene, package)
      upgraded(scene, newer)
      removed(scene, before, resolver)
    finally:
      scene.end()


def installed(scene: Scene, package: Path) -> None:
  """The service runs, and the machine does not use it until it is told to."""
  machine = scene.machine
  machine.run(*DPKG, "--install", f"/root/{package.name}", seconds=120)
  check(machine.show(SERVICE, "ActiveState") == "active", "installed on a running machine, the service runs")
  check(machine.show(SERVICE, "UnitFileState") == "enabled", "and starts at boot")
  scene.expect(NETWORK, "the machine does not use it yet")
  machine.write(CONFIGURATION_FILE, CONFIGURATION)
  machine.run("systemctl", "restart", SERVICE)
  said = machine.dig("+short", "@127.0.0.1", NAME)
  check(said == PROVIDER, f"with a configuration, a name is found through it: {said}")
  secret(machine)
  said = scene.setup("resolved", "--apply")
  check("ExecStartPost=+-/usr/bin/httpdnsd setup resume" in said, "setup's hooks start the package's program")
  scene.expect(PROVIDER, "setup resolved --apply: the machine uses it")


def secret(machine: Machine) -> None:
  """A secret as README.md says: the service reads it, and check says so."""
  path = "/etc/httpdnsd/alidns.secret"
  machine.run("install", "-m", "600", "-o", "httpdnsd", "/dev/stdin", path, text="demo-secret\n")
  account = f'[[provider]]\naccount_id = "1"\naccess_key_id = "id"\naccess_key_secret_file = "{path}"\n'
  machine.write(CONFIGURATION_FILE, CONFIGURATION + account)
  machine.run("systemctl", "restart", SERVICE)
  check(machine.show(SERVICE, "ActiveState") == "active", "a secret of the user httpdnsd is read by the service")
  said = machine.run("/usr/bin/httpdnsd", "check")
  check("access_key_secret_file: the service, user httpdnsd, can read it" in said, "httpdnsd check says so")
  machine.run("rm", path)
  machine.write(CONFIGURATION_FILE, CONFIGURATION)
  machine.run("systemctl", "restart", SERVICE)


@contextlib.contextmanager
def lookups(scene: Scene):
  """Looks the name up over and over from now on; gives what ends that, and tells what was found."""
  stop = scene.machine.root / "root/stop"
  lookup = f"getent ahostsv4 {NAME} | head -n 1 | grep -o '^[^ ]*' || echo nothing"
  program = subprocess.Popen(
    scene.machine.command("sh", "-c", f"until [ -e /root/stop ]; do {lookup}; done"), stdout=subprocess.PIPE, text=True)

  def end() -> list[str]:
    stop.touch()
    return program.communicate(timeout=60)[0].split()

  try:
    yield end
  finally:
    program.kill()
    program.wait()


def upgraded(scene: Scene, newer: Path) -> None:
  """Another build takes the place of the one that runs."""
  machine, before, old = scene.machine, scene.tree(), scene.machine.main_pid()
  with lookups(scene) as end:
    machine.run(*DPKG, "--install", f"/root/{newer.name}", seconds=120)
    scene.expect(PROVIDER, "upgraded, the provider answers", 3)
    found = end()
  version = machine.run("dpkg-query", "--show", "--showformat=${Version}", "httpdnsd")
  check(version in newer.name, f"the package is {version}")
  check(machine.main_pid() not in (0, old) and machine.show(SERVICE, "ActiveState") == "active",
        "the service was started anew")
  check(NETWORK not in found and PROVIDER in found,
        f"of {len(found)} lookups meanwhile none went to the network's server ({found.count('nothing')} found nothing)")
  scene.same(before, "the configuration and what setup has made stay")
  check("applied: resolved" in scene.setup(), "setup is applied as before")
  machine.run("systemctl", "stop", SERVICE)
  scene.expect(NETWORK, "stopped, the network's server answers", 3)
  machine.run("systemctl", "start", SERVICE)
  scene.expect(PROVIDER, "started, the provider answers", 3)


def removed(scene: Scene, before: dict[str, tuple], resolver: str) -> None:
  """Names are found as before the package was there, and nothing of it is left."""
  machine = scene.machine
  said = machine.run(*DPKG, "--remove", "httpdnsd", seconds=120)
  check("could not be undone" not in said, "removal undoes setup")
  scene.expect(NETWORK, "removed, the network's server answers", 3)
  check(machine.run("cat", "/etc/resolv.conf") == resolver, "/etc/resolv.conf is octet for octet as before")
  gone = ("/run/systemd/resolved.conf.d/httpdnsd.conf", "/var/lib/httpdnsd-setup", "/run/httpdnsd-setup",
          "/etc/systemd/system/httpdnsd.service.d")
  said = machine.run("ls", "-d", *gone, check=False)
  check(said.count("No such file") == len(gone), "what setup has made is gone")
  check(machine.main_pid() == 0 and "refused" in machine.dig("@127.0.0.1", NAME), "and nobody has the port")
  check((machine.root / CONFIGURATION_FILE.lstrip("/")).exists(), "the configuration stays")
  machine.run(*DPKG, "--purge", "httpdnsd", seconds=120)
  check("httpdnsd:" in machine.run("cat", "/etc/passwd"), "purged, its user stays, who may own secrets")
  wait_for("the service's end", lambda: machine.show(SERVICE, "LoadState") == "not-found")
  found = machine.run("find", "/etc", "/var", "/usr", "/run", "-xdev", "-name", "*httpdnsd*", check=False).split()
  left = [path for path in found if not path.startswith("/var/log/")]
  check(not left, f"purged, nothing of it is left {left or ''}")
  scene.same(before, "and but for that user as before the installation", but=USERS)
  scene.expect(NETWORK, "the network's server answers")
