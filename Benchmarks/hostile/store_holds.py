"""store_holds.py -- scenes of `holds.py`: what a hostile store of a fleet sends."""

from __future__ import annotations

import itertools
import signal
import subprocess
import time
from collections.abc import Callable

from bench.processes import BenchError

from .holding import LARGE_CACHE_KEYS, Scene, ask, fill
from .lab import GOOD_DOMAINS, Adversary, Lab, certificate

_SECRET = 'secret = "0123456789abcdef0123456789abcdef"\n'
_SECONDS = 8.0


def _fleet(store: Adversary, *, scheme: str = "redis", fleet: str = _SECRET, cache: str = "") -> str:
  # By default a store that is as slow as this one pauses.
  return (f'[cache]\nredis = "{scheme}://127.0.0.1:{store.port}"\n{cache}[fleet]\ntimeout = "500ms"\n'
          f'connect_timeout = "5s"\n{fleet}')


def _ask_for_new_names(port: int, seconds: float = _SECONDS) -> None:
  ask(port, [f"n{number}.good{number % GOOD_DOMAINS}.example" for number in range(int(seconds / 0.004))], 0.003)


def lies(lab: Lab) -> tuple[int, Callable[[], None]]:
  """A store that says anything, over TCP."""
  simulator, store = lab.simulator(), Adversary(lab, "store", "1")
  port = lab.daemon("json", simulator.port, None, more=_fleet(store))
  return port, lambda: _ask_for_new_names(port)


def over_tls(records: str | None) -> Scene:
  """A store over TLS: with records of that plan, or one that says anything."""
  def scene(lab: Lab) -> tuple[int, Callable[[], None]]:
    authority, key = certificate(lab.folder)
    store = Adversary(lab, "store", "1", str(authority), str(key), *([records] if records else []))
    fleet = f'ca_file = "{authority}"\n{_SECRET}'
    port = lab.daemon("json", lab.simulator().port, None, more=_fleet(store, scheme="rediss", fleet=fleet))
    return port, lambda: _ask_for_new_names(port)
  return scene


def flushes(*, are_sealed: bool) -> Scene:
  """A store whose stream of flushes has no end, for a daemon with a full cache: of its own making, or those of another daemon
  again and again."""
  def scene(lab: Lab) -> tuple[int, Callable[[], None]]:
    simulator, store = lab.simulator(), Adversary(lab, "flushes", "1")
    fleet = _SECRET if are_sealed else ""
    other = Lab(lab.programs, lab.folder / "other", lab.children)
    other.folder.mkdir()
    if are_sealed:
      other.daemon("json", simulator.port, None, more=_fleet(store, fleet=fleet))
    port = lab.daemon("json", simulator.port, None, more=_fleet(store, fleet=fleet, cache=LARGE_CACHE_KEYS))
    fill(lab, port)

    def attack() -> None:
      store.child.process.send_signal(signal.SIGUSR1)
      end = time.monotonic() + _SECONDS
      numbers = itertools.count()
      while time.monotonic() < end:
        if are_sealed:
          flush(other, [f"{'x' * 60}.{'y' * 60}.{'z' * 60}.n{next(numbers)}.example" for _ in range(200)])
        time.sleep(0.1)
      if "notes" not in store.done():
        raise BenchError("the daemon has not read the stream of flushes")
    return port, attack
  return scene


def flush(lab: Lab, names: list[str]) -> None:
  """Has a daemon flush names and what is below them, and tell its fleet."""
  subprocess.run([str(lab.programs.httpdnsd), "flush", "--socket", str(lab.folder / "control.sock"), *names],
                 capture_output=True)
