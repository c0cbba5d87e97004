"""booted_package.py -- the Debian package on a machine that runs: its service, setup, an upgrade, and the removal."""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path

from machine import REPOSITORY, Machine, check, wait_for
from scene import CONFIGURATION, CONFIGURATION_FILE, LINK, NAME, NETWORK, PROVIDER, SERVER, SERVICE, Scene

RESOLVER = "../run/systemd/resolve/stub-resolv.conf"
LINK_FILE = "/etc/systemd/network/net0.network"
# What systemd-sysusers writes.
USERS = {f"etc/{name}{old}" for name in ("passwd", "group", "shadow", "gshadow") for old in ("", "-")} | {"etc/.pwd.lock"}
# Where dpkg's own scripts find their programs.
ENVIRONMENT = ("env", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive")
DPKG = (*ENVIRONMENT, "dpkg")

# Of `systemd-analyze security`, where 0 is the best there is.
LARGEST_EXPOSURE = 1.5
# Seconds that a restart may take: a lookup that meets it waits for five until the machine's resolver asks again.
RESTART = 15


def try_booted(release: str, package: Path, newer: Path) -> None:
  """Installs the package beside systemd-resolved, upgrades it to the newer one while it is asked, and removes it."""
  with Machine(release=release) as machine:
    scene = beside_resolved(machine)
    for file in (package, newer):
      shutil.copy(file, machine.root / "root" / file.name)
    scene.boot()
    try:
      before = scene.tree()
      resolver = machine.run("cat", "/etc/resolv.conf")
      installed(scene, package)
      analysed(machine)
      overridden(scene)
      upgraded(scene, newer)
      removed(scene, before, resolver)
      edited(scene, newer)
    finally:
      scene.end()


def beside_resolved(machine: Machine) -> Scene:
  """A machine whose names systemd-resolved finds, and to which a package is going to come."""
  scene = Scene(machine, is_installed=False)
  machine.write(LINK_FILE, LINK)
  scene.enable("systemd-resolved.service", "/lib")
  scene.resolver(RESOLVER)
  return scene


def analysed(machine: Machine) -> None:
  """What the machine's own systemd says of the units."""
  version = machine.run("systemctl", "--version").split()[1]
  said = machine.run("systemd-analyze", "verify", SERVICE, "httpdnsd.socket", check=False)
  check(said == "", f"systemd {version}: systemd-analyze verify says nothing {said}")
  said = machine.run("systemd-analyze", "security", SERVICE)
  level = float(re.search(r"exposure level for httpdnsd.service: ([\d.]+)", said)[1])
  check(level <= LARGEST_EXPOSURE, f"systemd {version}: systemd-analyze security: {level}, at most {LARGEST_EXPOSURE}")
  said = machine.journal()
  check("Unknown key" not in said and "deprecated" not in said, "and its log has nothing against the unit")


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
  check("'/usr/bin/httpdnsd' setup resume" in said, "setup's hooks start the package's program")
  scene.expect(PROVIDER, "setup resolved --apply: the machine uses it")


def overridden(scene: Scene) -> None:
  """`make install` overrides the package's unit; `make uninstall` gives the service back to it, also at the next boot."""
  machine = scene.machine
  sources = machine.root / "root/sources"
  for path in ("Scripts/install", "Scripts/manual", "README.md", "README.zh-CN.md"):
    (sources / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(REPOSITORY / path, sources / path)
  for folder in ("Config", "docs", "systemd"):
    shutil.copytree(REPOSITORY / folder, sources / folder)
  # The package's own program, which this release can run.
  program = sources / ".build/bin/httpdnsd"
  program.parent.mkdir(parents=True)
  shutil.copy(machine.root / "usr/bin/httpdnsd", program)
  machine.run("/root/sources/Scripts/install")
  machine.run("systemctl", "restart", SERVICE)
  check(machine.show(SERVICE, "FragmentPath").startswith("/usr/local/"), "make install overrides the package's unit")
  said = machine.run("/root/sources/Scripts/install", "--remove")
  check("systemd now uses" in said, f"make uninstall reports the package's unit: {said.strip()}")
  check(not machine.show(SERVICE, "FragmentPath").startswith("/usr/local/")
        and machine.show(SERVICE, "ActiveState") == "active", "which runs then")
  check(machine.show(SERVICE, "UnitFileState") == "enabled", "and starts at boot")
  scene.expect(NETWORK, "make uninstall has undone setup")
  scene.setup("resolved", "--apply")
  scene.expect(PROVIDER, "applied again: the machine uses the package's program")
  shutil.rmtree(sources)


def secret(machine: Machine) -> None:
  """A secret as README.md says: the service reads it, and check says so."""
  path = "/etc/httpdnsd/alidns.secret"
  machine.run("install", "-m", "600", "-o", "httpdnsd", "/dev/stdin", path, text="demo-secret\n")
  account = f'[[provider]]\naccount_id = "1"\naccess_key_id = "id"\naccess_key_secret_file = "{path}"\n'
  machine.write(CONFIGURATION_FILE, CONFIGURATION + account)
  machine.run("systemctl", "restart", SERVICE)
  check(machine.show(SERVICE, "ActiveState") == "active", "a secret of the user httpdnsd is read by the service")
  said = machine.run("/usr/bin/httpdnsd", "check")
  check("access_key_secret_file: the service's user httpdnsd can read it" in said, "httpdnsd check says so")
  machine.run("rm", path)
  machine.write(CONFIGURATION_FILE, CONFIGURATION)
  machine.run("systemctl", "restart", SERVICE)


@contextlib.contextmanager
def repeated(machine: Machine, command: str):
  """Runs a line of shell over and over from now on; gives what ends that, and returns when each was done and what it said."""
  stop = machine.root / f"root/stop-{len(command)}"
  inside = f"/root/{stop.name}"
  program = subprocess.Popen(
    machine.command("bash", "-c", f"until [ -e {inside} ]; do said=$({command}); echo $EPOCHREALTIME $said; done"),
    stdout=subprocess.PIPE, text=True)

  def end() -> list[tuple[float, str]]:
    stop.touch()
    lines = (line.split(" ", 1) for line in program.communicate(timeout=60)[0].splitlines())
    stop.unlink()
    return [(float(time), said) for time, said in lines]

  try:
    yield end
  finally:
    program.kill()
    program.wait()


def lookups(scene: Scene):
  """Looks the name up over and over: the address that a program of the machine's gets, or `nothing`."""
  return repeated(scene.machine, f"getent ahostsv4 {NAME} | head -n 1 | grep -o '^[^ ]*' || echo nothing")


def starts(machine: Machine):
  """Starts the program over and over: whether it is able to."""
  return repeated(machine, "/usr/bin/httpdnsd --version > /dev/null 2>&1 && echo able || echo unable; sleep 0.1")


def without(wanted: str, found: list[tuple[float, str]]) -> float:
  """The longest time, in seconds, between two that said what is wanted."""
  times = [time for time, said in found if said == wanted]
  return max((after - before for before, after in zip(times, times[1:])), default=float("inf"))


def answered(found: list[tuple[float, str]]) -> None:
  """No lookup went past the daemon, which was away for as long as a restart takes."""
  addresses = [said for _, said in found]
  check(NETWORK not in addresses and PROVIDER in addresses,
        f"of {len(found)} lookups meanwhile none went to the network's server ({addresses.count('nothing')} found nothing)")
  longest = without(PROVIDER, found)
  check(longest < RESTART, f"and {longest:.1f} s passed at most between two that found the provider's answer")


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
        "the service was started again")
  answered(found)
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
  check(machine.main_pid() == 0 and "refused" in machine.dig("@127.0.0.1", NAME), "and the port is free")
  check((machine.root / CONFIGURATION_FILE.lstrip("/")).exists(), "the configuration stays")
  machine.run(*DPKG, "--purge", "httpdnsd", seconds=120)
  check("httpdnsd:" in machine.run("cat", "/etc/passwd"), "purged, its user stays, who may own secrets")
  wait_for("the service's end", lambda: machine.show(SERVICE, "LoadState") == "not-found")
  found = machine.run("find", "/etc", "/var", "/usr", "/run", "-xdev", "-name", "*httpdnsd*", check=False).split()
  left = [path for path in found if not path.startswith("/var/log/")]
  check(not left, f"purged, nothing of it is left {left or ''}")
  scene.same(before, "and but for that user as before the installation", but=USERS)
  scene.expect(NETWORK, "the network's server answers")


def edited(scene: Scene, package: Path) -> None:
  """The administrator leaves httpdnsd alone in a plain /etc/resolv.conf, and the package is removed, or purged at once."""
  machine = scene.machine
  machine.run("systemctl", "mask", "--now", "systemd-resolved.service")
  path = machine.root / "etc/resolv.conf"
  path.unlink()
  text = f"# by hand\nnameserver {SERVER}\n"
  machine.write("/etc/resolv.conf", text)
  for command in ("remove", "purge"):
    machine.run(*DPKG, "--install", f"/root/{package.name}", seconds=120)
    machine.write(CONFIGURATION_FILE, CONFIGURATION)
    machine.run("systemctl", "restart", SERVICE)
    scene.setup("file", "--apply")
    edit = "nameserver 127.0.0.1\n"
    path.write_text(edit)
    scene.expect(PROVIDER, "/etc/resolv.conf lists httpdnsd alone: the provider answers")
    said = machine.run(*ENVIRONMENT, "apt-get", "-q", "-y", command, "httpdnsd", seconds=120)
    check("the changed file is /etc/resolv.conf.httpdnsd-changed" in said, f"apt {command} names the edited file")
    scene.expect(NETWORK, "the network's server answers")
    check(path.read_text() == text, "/etc/resolv.conf is as it was before setup")
    kept = machine.root / "etc/resolv.conf.httpdnsd-changed"
    check(kept.read_text() == edit, "the edit is kept beside it")
    kept.unlink()
    check(not (machine.root / "var/lib/httpdnsd-setup").exists(), "nothing is left of setup")
