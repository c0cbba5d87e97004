"""hotnames.py -- the names that are asked for across the ends of their TTLs, and the zone that they stand in."""

from __future__ import annotations

#: The zone of the hot names; native/arrivals.c knows it too, and the addresses.
ORIGIN = "hot.example"
#: Names that are in use, each with an address of either family.
COUNT = 50
HOT_NAMES = [f"n{number}.{ORIGIN}" for number in range(COUNT)]
FIRST_HOT_NAME = HOT_NAMES[0]
#: Seconds. Shorter ones are not refreshed ahead by default.
TTL = 12
#: Milliseconds that the provider takes for an answer.
DELAY = 100


def zone_text(origin: str, ttl: int, records: str) -> str:
  """A zone file."""
  server = f"ns.{origin}."
  return (f"$ORIGIN {origin}.\n$TTL {ttl}\n@ SOA {server} hostmaster.{origin}. 1 3600 600 86400 60\n@ NS {server}\n"
          f"ns A 127.0.0.1\n{records}")


ZONE = zone_text(ORIGIN, TTL, "".join(
  f"n{number} A 192.0.2.{number + 1}\nn{number} AAAA 2001:db8::{number + 1:x}\n" for number in range(COUNT)))
