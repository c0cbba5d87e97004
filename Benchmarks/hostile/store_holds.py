"""store_holds.py -- scenes of `holds.py`: what a hostile store of a fleet sends."""

from __future__ import annotations

import itertools
import signal
import subprocess
import time

from .holding import LARGE_CACHE_KEYS, Attack, Scene, ask, fill
from .lab import GOOD_DOMAINS, Adversary, Lab, certificate

_SECRET = 'secret = "0123456789abcdef0123456789abcdef"\n'
_SECONDS = 8.0
#: A seed with which the first connections of a store lie in one reply of five.
_SEED = "5"


def _fleet(store: Adversary, *, scheme: str = "redis", fleet: str = _SECRET, cache: str = "") -> str:
  # By default a store that is as slow as this one pauses.
  return (f'[cache]\nredis = "{scheme}://127.0.0.1:{store.port}"\n{cache}[fleet]\ntimeout = "500ms"\n'
          f'connect_timeout = "5s"\n{fleet}')


def _ask_for_new_names(port: int, seconds: float = _SECONDS) -> None:
  ask(port, [f"n{number}.good{number % GOOD_DOMAINS}.example" for number in range(int(seconds / 0.004))], 0.003)


def lies(lab: Lab) -> tuple[int, Attack]:
  """A store that says anything, over TCP."""
  simulator, store = lab.simulator(), Adversary(lab, "store", _SEED)
  port = lab.daemon("json", simulator.port, None, more=_fleet(store))

  def attack() -> int:
    _ask_for_new_names(port)
    return store.count("lies")
  return port, attack


def over_tls(records: str | None) -> Scene:
  """A store over TLS: with records of that plan, or one that says anything."""
  def scene(lab: Lab) -> tuple[int, Attack]:
    authority, key = certificate(lab.folder)
    store = Adversary(lab, "store", _SEED, str(authority), str(key), *([records] if records else []))
    fleet = f'ca_file = "{authority}"\n{_SECRET}'
    port = lab.daemon("json", lab.simulator().port, None, more=_fleet(store, scheme="rediss", fleet=fleet))

    def attack() -> int:
      _ask_for_new_names(port)
      return store.count("commands" if records else "lies")
    return port, attack
  return scene


def flushes(*, are_sealed: bool) -> Scene:
  """A store whose stream of flushes has no end, for a daemon with a full cache: of its own making, or those of another daemon
  again and again."""
  def scene(lab: Lab) -> tuple[int, Attack]:
    simulator, store = lab.simulator(), Adversary(lab, "flushes", "1")
    fleet = _SECRET if are_sealed else ""
    other = Lab(lab.programs, lab.folder / "other", lab.children)
    other.folder.mkdir()
    if are_sealed:
      other.daemon("json", simulator.port, None, more=_fleet(store, fleet=fleet))
    port = lab.daemon("json", simulator.port, None, more=_fleet(store, fleet=fleet, cache=LARGE_CACHE_KEYS))
    fill(lab, port)

    def attack() -> int:
      store.child.process.send_signal(signal.SIGUSR1)
      end = time.monotonic() + _SECONDS
      numbers = itertools.count()
      while time.monotonic() < end:
        if are_sealed:
          flush(other, [f"{'x' * 60}.{'y' * 60}.{'z' * 60}.n{next(numbers)}.example" for _ in range(200)])
        time.sleep(0.1)
      return store.count("notes")
    return port, attack
  return scene


def flush(lab: Lab, names: list[str]) -> None:
  """Has a daemon flush names and what is below them, and tell its fleet."""
  subprocess.run([str(lab.programs.httpdnsd), "flush", "--socket", str(lab.folder / "control.sock"), *names],
                 capture_output=True)
