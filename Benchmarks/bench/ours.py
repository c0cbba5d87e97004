"""ours.py -- httpdnsd in the set-ups that are measured, and the simulator that it asks.

The command lines of both programs are here and nowhere else in the benchmark.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from .hotnames import FIRST_HOT_NAME, HOT_NAMES
from .peers import DOH_NAME, IDLE_SECONDS
from .servers import FIRST_NAME, LOCAL_NAME, Place, Role, Spec

#: What is asked: RFC 8484 at dnsdist, JSON at the simulator.
_PROVIDER_DOH = "doh"
_PROVIDER_JSON = "json"
_PROVIDER_JSON_TLS = "json-https"
#: The other kinds, as the simulator serves them over HTTP with the accounts of its defaults: the lines of a provider
#: behind its servers. A kind has a row of its own beside JSON's.
_KINDS = {
  "alidns, signed": """kind = "alidns"
scheme = "http"
account_id = "999999"
access_key_id = "TESTAKID00000001"
access_key_secret = "TESTSECRET0000000000000000000001"
""",
  "tencent, AES": 'kind = "tencent"\ncipher = "aes"\nid = "1234"\nkey = "AesKey0123456789"\n',
  "tencent, DES": 'kind = "tencent"\ncipher = "des"\nid = "1234"\nkey = "DesKey01"\n',
  "emas v1, signed": f"""kind = "emas"
scheme = "http"
schedule = false
account_id = "100000"
secret_key = "{bytes(range(32)).hex()}"
""",
  "emas v2, AES-GCM": f"""kind = "emas"
api = "v2"
scheme = "http"
schedule = false
account_id = "100000"
secret_key = "{bytes(range(32)).hex()}"
aes_secret_key = "00112233445566778899aabbccddeeff"
aes_mode = "gcm"
""",
}
#: The kind of provider that takes several names in one transfer.
_PROVIDER_BATCHES = "emas v1, signed"
#: A table of every name of the benchmark, which needs no transfer for a miss.
_TABLE = "table"
#: The file in the simulator's folder that holds its CA's certificate.
SIMULATOR_CA = "ca.pem"


def simulator_command(place: Place, https_port: int, *options: str) -> list[str]:
  """The simulator, HTTP on the place's port and HTTPS on another; it writes its CA's certificate into its folder."""
  return [str(place.lab.simulator), "--listen", f"127.0.0.1:{place.port}", "--listen-tls", f"127.0.0.1:{https_port}",
          "--ca-out", str(place.folder / SIMULATOR_CA), "--record-limit", "0", "--account", "999999",
          "--access-key-id", "TESTAKID00000001", "--access-key-secret", "TESTSECRET0000000000000000000001", *options]


def _provider_toml(provider: str, place: Place) -> str:
  lab = place.lab
  if provider == _PROVIDER_DOH:
    return f'kind = "doh"\nurl = "{lab.doh_url}"\nca_file = "{lab.certificate}"\n'
  if provider == _TABLE:
    domains = [{"domain": name, "ips": ["192.0.2.1"]} for name in (line.split()[0] for line in open(lab.names))]
    path = place.write("table.json", json.dumps({"service": "bench", "enable": 1, "domainlist": domains}))
    return f'kind = "table"\nfile = "{path}"\n'
  if provider in _KINDS:
    return f'{_KINDS[provider]}servers = ["{urlsplit(lab.json_url).netloc}"]\n'
  if provider == _PROVIDER_JSON_TLS:
    return f'kind = "json"\nurl = "{lab.json_tls_url}"\nca_file = "{lab.json_ca}"\n'
  return f'kind = "json"\nurl = "{lab.json_url}"\n'


def _configuration(place: Place, provider: str, *, cache: str, workers: int = 1, refresh: str = "") -> str:
  return _configuration_with(place, _provider_toml(provider, place), cache=cache, workers=workers, refresh=refresh)


def _configuration_with(place: Place, provider: str, *, cache: str, workers: int = 1, refresh: str = "",
                        limit: int = 0, rate_limit: int = 0) -> str:
  """The same; `provider` is the lines of its table."""
  # Programs of before a change may not know the key.
  limit_line = f"rate_limit = {rate_limit}\n" if rate_limit > 0 else ""
  return f"""state_directory = "{place.folder}"

[listen]
addresses = ["127.0.0.1:{place.port}"]
workers = {workers}
misses_per_client = {limit}
misses_per_domain = {limit}
{limit_line}
[[provider]]
name = "bench"
{provider}
[localdns]
servers = []
fallback = "never"

[cache]
{cache}

[refresh]
{refresh}
"""


def _spec(name: str, role: Role, provider: str, *, cached: bool = True, workers: int = 1, ready: str = FIRST_NAME,
          backend: str = "", note: str = "") -> Spec:
  # The TTLs are raised so that nothing expires, and so nothing is fetched again, while a run lasts. Hits are counted.
  cache = 'min_ttl = "24h"\nmax_ttl = "24h"' if cached else "enabled = false"

  def command(place: Place) -> list[str]:
    return _command(place, _configuration(place, provider, cache=cache, workers=workers))

  return Spec(name, role, command, backend=backend, ready_name=ready, note=note)


def _command(place: Place, configuration: str) -> list[str]:
  return [str(place.lab.httpdnsd), "run", "--config", place.write("httpdnsd.toml", configuration)]


def fresh_names(name: str, url: str, ca_file: str, is_json: bool, limit: int = 0, cache: str = "") -> Spec:
  """httpdnsd with its defaults, cache and refreshing on, in front of a provider over HTTPS; it misses each name once.

  `limit` is what a client and a domain may ask in a second; 0 counts nothing.
  """

  def command(place: Place) -> list[str]:
    provider = f'kind = "{"json" if is_json else "doh"}"\nurl = "{url}"\nca_file = "{ca_file}"\n'
    return _command(place, _configuration_with(place, provider, cache=cache, limit=limit))

  return Spec(name, Role.MISS, command)


def _hot_spec(name: str, provider: str, *, refresh: str = "", note: str = "") -> Spec:
  """httpdnsd in front of hot names. The default budget is for TTLs that are longer than those of the benchmark."""

  def command(place: Place) -> list[str]:
    return _command(place, _configuration(
      place, provider, cache="", refresh=f"budget_per_minute = 100000\nbudget_per_day = 1000000\n{refresh}"))

  return Spec(name, Role.OURS, command, ready_name=FIRST_HOT_NAME, note=note)


CACHED = _spec("httpdnsd", Role.OURS, _PROVIDER_JSON, backend="simulator")
TWO_WORKERS = _spec("httpdnsd two workers", Role.OURS, _PROVIDER_JSON, workers=2, backend="simulator")


def with_metrics(web: int) -> Spec:
  """The same, with metrics on that port."""

  def command(place: Place) -> list[str]:
    configuration = _configuration(place, _PROVIDER_JSON, cache='min_ttl = "24h"\nmax_ttl = "24h"')
    return _command(place, f'{configuration}\n[web]\naddress = "127.0.0.1:{web}"\n')

  return Spec("httpdnsd with metrics", Role.OURS, command, backend="simulator")


def with_dashboard(name: str, web: int, dashboard: bool | None, ready: str = FIRST_NAME) -> Spec:
  """The same, with the dashboard on or off; with None there is no such line, which programs of before do not know."""
  line = "" if dashboard is None else f"dashboard = {str(dashboard).lower()}\n"

  def command(place: Place) -> list[str]:
    configuration = _configuration(place, _PROVIDER_JSON, cache='min_ttl = "24h"\nmax_ttl = "24h"')
    return _command(place, f'{configuration}\n[web]\naddress = "127.0.0.1:{web}"\n{line}')

  return Spec(name, Role.OURS, command, backend="simulator", ready_name=ready)


def encrypted(name: str, dot_port: int, doh_port: int) -> Spec:
  """The same, with DNS over TLS and HTTPS and the certificate of the lab. One client may have all connections."""

  def command(place: Place) -> list[str]:
    configuration = _configuration(place, _PROVIDER_JSON, cache='min_ttl = "24h"\nmax_ttl = "24h"')
    return _command(place, f"""{configuration}
[encrypted]
dot = ["127.0.0.1:{dot_port}"]
doh = ["127.0.0.1:{doh_port}"]
name = "{DOH_NAME}"
certificate_file = "{place.lab.certificate}"
key_file = "{place.lab.key}"
allow = ["127.0.0.0/8"]
connections = 1024
per_client = 1024
new_per_second = 100000
idle = "{IDLE_SECONDS}s"
""")

  return Spec(name, Role.OURS, command, backend="simulator")


def encrypted_off(name: str) -> Spec:
  """The same with the section, but without an address in it."""

  def command(place: Place) -> list[str]:
    configuration = _configuration(place, _PROVIDER_JSON, cache='min_ttl = "24h"\nmax_ttl = "24h"')
    return _command(place, f"{configuration}\n[encrypted]\ndot = []\ndoh = []\ndoh_plain = []\n")

  return Spec(name, Role.OURS, command, backend="simulator")


def with_rate_limit(name: str, limit: int) -> Spec:
  """The same with a limit on the queries of a client; with 0 there is no limit."""

  def command(place: Place) -> list[str]:
    return _command(place, _configuration_with(place, _provider_toml(_PROVIDER_JSON, place),
                                               cache='min_ttl = "24h"\nmax_ttl = "24h"', rate_limit=limit))

  return Spec(name, Role.OURS, command, backend="simulator")


#: The control socket in a server's folder.
SOCKET = "control.sock"


def with_rules(name: str, rules: str) -> Spec:
  """The same, with rules, which may `use` the provider "listed", and a control socket."""

  def command(place: Place) -> list[str]:
    configuration = _configuration(place, _PROVIDER_JSON, cache='min_ttl = "24h"\nmax_ttl = "24h"')
    listed = f'[[provider]]\nname = "listed"\n{_provider_toml(_PROVIDER_JSON, place)}' if "listed" in rules else ""
    return _command(place, f'{configuration}\n{listed}\n{rules}\n[control]\nsocket = "{place.folder}/{SOCKET}"\n')

  return Spec(name, Role.OURS, command, backend="simulator")


def list_rule(path: Path, use: str = "listed") -> str:
  """The rule of a list: a provider of its own, or another `use`."""
  return f'[[rule]]\nname = "listed"\nlists = ["{path}"]\nuse = "{use}"\n'


def client_rules(count: int) -> str:
  """Rules that cut the clients into that many classes. That of this machine's clients is one; none has a name in use."""
  prefixes = ["127.0.0.0/8", *(f"10.7.{number}.0/24" for number in range(count - 2))]
  return "".join(f'[[rule]]\nnames = ["rule{number}.invalid"]\nclients = ["{prefix}"]\nuse = "nxdomain"\n'
                 for number, prefix in enumerate(prefixes))


def set_rule(domain: str, name: str) -> str:
  """The rule that adds the addresses below a domain to a set of nftables."""
  return f'[[rule]]\nnames = ["{domain}"]\nuse = "default"\nsets = ["{name}"]\n'


def _with_file(place: Place) -> list[str]:
  cache = f'min_ttl = "24h"\nmax_ttl = "24h"\nmax_entries = 200000\npersist = "{place.folder}/cache"'
  configuration = _configuration(place, _PROVIDER_JSON, cache=cache)
  return _command(place, f'{configuration}\n[control]\nsocket = "{place.folder}/{SOCKET}"\n')


#: With a cache file and a control socket.
WITH_FILE = Spec("httpdnsd with a cache file", Role.OURS, _with_file)

MISS_DOH = _spec("httpdnsd miss over RFC 8484", Role.MISS, _PROVIDER_DOH, cached=False)
MISS_JSON = _spec("httpdnsd miss over JSON", Role.MISS, _PROVIDER_JSON, cached=False)
MISS_JSON_TLS = _spec("httpdnsd miss over JSON and HTTPS", Role.MISS, _PROVIDER_JSON_TLS, cached=False)
MISS_KINDS = [_spec(f"httpdnsd miss through {kind}", Role.MISS, kind, cached=False) for kind in [*_KINDS, _TABLE]]
#: With an empty cache and a provider over HTTPS; nothing is asked of the provider until a test does.
FRESH_DOH = _spec("httpdnsd fresh", Role.OURS, _PROVIDER_DOH, ready=LOCAL_NAME)

#: What takes part in the rounds.
ALL = [CACHED, TWO_WORKERS, MISS_DOH, MISS_JSON, MISS_JSON_TLS, *MISS_KINDS]

#: With names that are hot across the ends of their TTLs.
HOT = _hot_spec("httpdnsd", _PROVIDER_JSON, note="refreshes hot names")
WITH_BATCHES, WITHOUT_BATCHES = "hot, with batches", "hot, without batches"
#: Ways of refreshing, each in front of a provider that takes five names at once.
WAYS = [
  _hot_spec("off", _PROVIDER_BATCHES, refresh="hot_hits = 0", note="a name is asked for when a client misses it"),
  _hot_spec("keep", _PROVIDER_BATCHES, refresh=f"hot_hits = 0\nkeep = {json.dumps(HOT_NAMES)}", note="with batches"),
  _hot_spec(WITHOUT_BATCHES, _PROVIDER_BATCHES, refresh="batch = false"),
  _hot_spec(WITH_BATCHES, _PROVIDER_BATCHES, note="the default"),
]
