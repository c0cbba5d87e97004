"""encrypted.py -- the part about DNS over TLS and HTTPS: measures all of it, beside unbound, dnsdist and OpenSSL's server."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .encrypted_handshakes import Handshakes, Storm, measure_handshakes, measure_storms
from .encrypted_hits import EncryptedHits, measure_encrypted, measure_plain
from .encrypted_idle import IdleCosts, Presence, count_presence, measure_idle
from .encrypted_lab import OURS, surroundings
from .encrypted_renewal import Renewals, measure_renewals
from .processes import BenchError
from .servers import Lab


@dataclass
class EncryptedCosts:
  """What was measured; what is None was not."""

  hits: EncryptedHits = field(default_factory=EncryptedHits)
  handshakes: Handshakes | None = None
  storms: dict[str, Storm] | None = None
  idle: IdleCosts | None = None
  renewals: Renewals | None = None
  presence: dict[str, Presence] | None = None
  failures: list[str] = field(default_factory=list)


def measure(lab: Lab, programs: list[str], before: Path | None, rounds: int, seconds: float,
            say: Callable[[str], None]) -> EncryptedCosts:
  """Measures `programs`; what fails does not keep the rest from being measured."""
  costs = EncryptedCosts()

  def attempt(what: str, action: Callable[[], None]) -> bool:
    try:
      action()
      return True
    except BenchError as error:
      say(f"encrypted: {what} failed: {error}")
      costs.failures.append(f"encrypted: {what} failed: {str(error).splitlines()[0]}")
      return False

  with surroundings(lab, programs, before) as around:
    has_ours = around.has_ours

    def try_ours() -> None:
      around.start(OURS).server.process.stop()

    # Without encrypted listeners of ours, the peers and port 53 are measured all the same.
    if has_ours and not attempt("the start of httpdnsd", try_ours):
      around = dataclasses.replace(around, programs=around.peers)

    def handshakes() -> None:
      costs.handshakes = measure_handshakes(around, rounds, seconds, say)

    def storms() -> None:
      costs.storms = measure_storms(around, rounds, max(2, seconds), say)

    def idle() -> None:
      costs.idle = measure_idle(around, max(1, rounds // 3), say)

    def renewals() -> None:
      costs.renewals = measure_renewals(around, max(2, rounds // 2), say)

    def presence() -> None:
      costs.presence = count_presence(around)

    if around.programs:
      attempt("hits over TLS and HTTPS", lambda: measure_encrypted(costs.hits, around, rounds, seconds, say))
      attempt("handshakes", handshakes)
      attempt("handshakes beside answers", storms)
      attempt("idle connections", idle)
    if around.has_ours:
      attempt("renewals", renewals)
    if has_ours:
      attempt("hits on port 53", lambda: measure_plain(costs.hits, around, rounds, seconds, say))
      attempt("threads and sockets", presence)
  return costs
