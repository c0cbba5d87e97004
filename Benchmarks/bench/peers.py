"""peers.py -- the servers that httpdnsd is measured beside, each set up to answer from its cache with one thread."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable

from . import hotnames
from .hotnames import zone_text
from .processes import BenchError, find_program
from .servers import Place, Role, Spec

#: Names in the zone, all of which every cache must hold.
ZONE_NAMES = 10_000
#: The DoH server of the part `misses`: its name, which is also that of the encrypted listeners, and its address. Both are
#: in the certificate.
DOH_NAME = "doh.bench.example"
DOH_ADDRESS = "127.0.0.44"
#: How long an encrypted connection may be idle.
IDLE_SECONDS = 120
#: Entries that each cache may hold: enough that none is evicted.
CACHE_ENTRIES = 50_000


def program(name: str) -> str:
  """The path of an installed program."""
  path = find_program(name)
  if path is None:
    raise BenchError(f"{name} is missing: run Benchmarks/setup first")
  return path


def _user() -> str:
  """Who runs the benchmark: servers that would change to a user of their own stay as they are."""
  return pwd.getpwuid(os.getuid()).pw_name


def _echo(place: Place) -> list[str]:
  return [str(place.lab.echo), "wait", str(place.port)]


def _echo_epoll(place: Place) -> list[str]:
  return [str(place.lab.echo), "epoll", str(place.port)]


def _nsd(place: Place) -> list[str]:
  records = "".join(f"n{number} A 192.0.2.{number % 254 + 1}\n" for number in range(ZONE_NAMES))
  return _nsd_with(place, "bench.example", zone_text("bench.example", 86400, records))


def nsd_of_everything(zone: str) -> Spec:
  """nsd with this zone of the root."""
  return Spec("nsd of everything", Role.REFERENCE, lambda place: _nsd_with(place, ".", zone), package="nsd")


def _hot_nsd(place: Place) -> list[str]:
  return _nsd_with(place, hotnames.ORIGIN, hotnames.ZONE)


def _nsd_with(place: Place, origin: str, text: str) -> list[str]:
  zone = place.write("zone", text)
  configuration = place.write("nsd.conf", f"""
server:
  ip-address: 127.0.0.1@{place.port}
  server-count: 1
  username: ""
  database: ""
  zonesdir: "{place.folder}"
  pidfile: "{place.folder}/nsd.pid"
  xfrdfile: "{place.folder}/xfrd.state"
  zonelistfile: "{place.folder}/zone.list"
  xfrdir: "{place.folder}"
  rrl-ratelimit: 0
remote-control:
  control-enable: no
zone:
  name: {origin}
  zonefile: "{zone}"
""")
  return [program("nsd"), "-d", "-c", configuration]


def _unbound(place: Place) -> list[str]:
  return _unbound_with(place)


def unbound_for_misses(upstream_port: int) -> Spec:
  """unbound that asks an upstream over UDP."""

  def command(place: Place) -> list[str]:
    return _unbound_with(place, upstream_port=upstream_port)

  return Spec("unbound, upstream over UDP", Role.PEER, command, package="unbound")


def _unbound_with(place: Place, *settings: str, upstream_port: int | None = None) -> list[str]:
  lines = "\n  ".join(settings)
  configuration = place.write("unbound.conf", f"""
server:
  interface: 127.0.0.1@{place.port}
  num-threads: 1
  username: ""
  chroot: ""
  directory: "{place.folder}"
  pidfile: ""
  use-syslog: no
  do-not-query-localhost: no
  module-config: "iterator"
  msg-cache-size: 64m
  rrset-cache-size: 128m
  minimal-responses: yes
  {lines}
remote-control:
  control-enable: no
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@{upstream_port or place.lab.authority_port}
""")
  return [program("unbound"), "-d", "-p", "-c", configuration]


def _dnsmasq(place: Place) -> list[str]:
  return _dnsmasq_with(place)


def dnsmasq_with(name: str, *settings: str) -> Spec:
  """dnsmasq with further lines of its configuration."""
  return Spec(name, Role.PEER, lambda place: _dnsmasq_with(place, *settings), package="dnsmasq", backend="nsd")


def _dnsmasq_with(place: Place, *settings: str) -> list[str]:
  configuration = place.write("dnsmasq.conf", "".join(f"{setting}\n" for setting in settings))
  return [
    program("dnsmasq"), "--keep-in-foreground", f"--conf-file={configuration}", f"--port={place.port}",
    "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts", f"--user={_user()}",
    "--pid-file=", "--log-facility=-", f"--cache-size={CACHE_ENTRIES}", "--dns-forward-max=1000",
    f"--server=127.0.0.1#{place.lab.authority_port}"]


def _run_dnsdist(place: Place, configuration: str) -> list[str]:
  return [program("dnsdist"), "--supervised", "--disable-syslog", "-C", place.write("dnsdist.conf", configuration)]


def _dnsdist_common(place: Place) -> str:
  return f"""
setSecurityPollSuffix("")
setACL({{"127.0.0.0/8"}})
newServer({{address="127.0.0.1:{place.lab.authority_port}", healthCheckMode="up"}})
getPool(""):setCache(newPacketCache({CACHE_ENTRIES}, {{maxTTL=86400}}))
"""


def _dnsdist(batch: int) -> Callable[[Place], list[str]]:
  """dnsdist that receives up to `batch` datagrams at once; 1 is its default, in which it does without recvmmsg."""

  def command(place: Place) -> list[str]:
    return _run_dnsdist(place, _dnsdist_common(place) + f"""
setUDPMultipleMessagesVectorSize({batch})
setLocal("127.0.0.1:{place.port}")
""")

  return command


def dnsdist_doh(doh_port: int) -> Spec:
  """dnsdist as the provider of RFC 8484: HTTP/2 and TLS on `doh_port`, its packet cache in front of the zone."""

  def command(place: Place) -> list[str]:
    lab = place.lab
    return _run_dnsdist(place, _dnsdist_common(place) + f"""
setLocal("127.0.0.1:{place.port}")
addDOHLocal("127.0.0.1:{doh_port}", "{lab.certificate}", "{lab.key}", "/dns-query", {{minTLSVersion="tls1.2"}})
""")

  return Spec("dnsdist DoH", Role.REFERENCE, command, package="dnsdist")


def dnsdist_for_misses() -> Spec:
  """dnsdist that answers every name by itself, over HTTP/2 and TLS at port 443 of an address, and over UDP."""

  def command(place: Place) -> list[str]:
    lab = place.lab
    return _run_dnsdist(place, _dnsdist_common(place) + f"""
setLocal("127.0.0.1:{place.port}")
addDOHLocal("{DOH_ADDRESS}:443", "{lab.certificate}", "{lab.key}", "/dns-query", {{minTLSVersion="tls1.2"}})
addAction("{DOH_NAME}.", SpoofAction({{"{DOH_ADDRESS}"}}))
addAction(AllRule(), SpoofAction({{"192.0.2.1"}}, {{ttl=300}}))
""")

  return Spec("dnsdist DoH", Role.REFERENCE, command, package="dnsdist")


def unbound_encrypted(name: str, dot_port: int, doh_port: int) -> Spec:
  """unbound that also serves DNS over TLS and HTTPS."""

  def command(place: Place) -> list[str]:
    # By default it takes ten connections, and closes those that idle sooner once half of the places are taken.
    return _unbound_with(
      place, f"interface: 127.0.0.1@{dot_port}", f"interface: 127.0.0.1@{doh_port}", f"tls-port: {dot_port}",
      f"https-port: {doh_port}", f'tls-service-key: "{place.lab.key}"', f'tls-service-pem: "{place.lab.certificate}"',
      "incoming-num-tcp: 1024", f"tcp-idle-timeout: {IDLE_SECONDS}000")

  return Spec(name, Role.PEER, command, package="unbound", backend="nsd")


def dnsdist_encrypted(name: str, dot_port: int, doh_port: int) -> Spec:
  """dnsdist that also serves DNS over TLS and HTTPS, with one thread for connections."""

  def command(place: Place) -> list[str]:
    pair = f'"{place.lab.certificate}", "{place.lab.key}"'
    return _run_dnsdist(place, _dnsdist_common(place) + f"""
setUDPMultipleMessagesVectorSize(64)
setMaxTCPClientThreads(1)
setTCPRecvTimeout({IDLE_SECONDS})
setLocal("127.0.0.1:{place.port}")
addTLSLocal("127.0.0.1:{dot_port}", {pair}, {{provider="openssl", minTLSVersion="tls1.2"}})
addDOHLocal("127.0.0.1:{doh_port}", {pair}, "/dns-query", {{minTLSVersion="tls1.2", idleTimeout={IDLE_SECONDS}}})
""")

  return Spec(name, Role.PEER, command, package="dnsdist", backend="nsd")


#: What the page of dnsdist asks for.
WEB_PASSWORD = "bench"


def dnsdist_with_page(name: str, web_port: int) -> Spec:
  """dnsdist with its own page."""

  def command(place: Place) -> list[str]:
    return _run_dnsdist(place, _dnsdist_common(place) + f"""
setUDPMultipleMessagesVectorSize(64)
setLocal("127.0.0.1:{place.port}")
webserver("127.0.0.1:{web_port}")
setWebserverConfig({{password="{WEB_PASSWORD}", apiKey="{WEB_PASSWORD}", acl="127.0.0.0/8"}})
""")

  return Spec(name, Role.PEER, command, package="dnsdist", backend="nsd")


def openssl_server() -> Spec:
  """`openssl s_server`: handshakes and nothing else. It does not read its input while it waits for a request over HTTP."""

  def command(place: Place) -> list[str]:
    return [program("openssl"), "s_server", "-accept", f"127.0.0.1:{place.port}", "-cert", str(place.lab.certificate), "-key",
            str(place.lab.key), "-quiet", "-WWW"]

  return Spec("openssl s_server", Role.REFERENCE, command, package="openssl")


def https_dns_proxy(path: str, bootstrap_port: int) -> Spec:
  """https_dns_proxy, which connects to port 443 of the address that its bootstrap resolver returns."""

  def command(place: Place) -> list[str]:
    return [path, "-p", str(place.port), "-b", f"127.0.0.1:{bootstrap_port}", "-r", f"https://{DOH_NAME}/dns-query", "-C",
            str(place.lab.certificate), "-4"]

  return Spec("https_dns_proxy", Role.PEER, command)


def _smartdns(place: Place) -> list[str]:
  return _smartdns_with(place, "prefetch-domain no")


def smartdns_with(name: str, *settings: str) -> Spec:
  """smartdns with further lines of its configuration, which may use the group "listed" of servers."""

  def command(place: Place) -> list[str]:
    listed = f"server 127.0.0.1:{place.lab.authority_port} -group listed -exclude-default-group"
    return _smartdns_with(place, "prefetch-domain no", listed, *settings)

  return Spec(name, Role.PEER, command, package="smartdns", backend="nsd")


def _smartdns_with(place: Place, *settings: str) -> list[str]:
  lines = "\n".join(settings)
  configuration = place.write("smartdns.conf", f"""
bind 127.0.0.1:{place.port}
server 127.0.0.1:{place.lab.authority_port}
cache-size {CACHE_ENTRIES}
cache-persist no
{lines}
serve-expired no
speed-check-mode none
dualstack-ip-selection no
log-level error
log-file {place.folder}/smartdns.log
audit-enable no
user {_user()}
""")
  return [program("smartdns"), "-f", "-p", "-", "-c", configuration]


def _kresd(place: Place) -> list[str]:
  configuration = place.write("kresd.conf", f"""
net.listen("127.0.0.1", {place.port}, {{ kind = "dns" }})
trust_anchors.remove(".")
modules.unload("ta_update")
modules.unload("ta_signal_query")
modules.unload("priming")
modules.unload("detect_time_skew")
modules.unload("detect_time_jump")
cache.open(200 * MB, "lmdb://{place.folder}/cache")
policy.add(policy.all(policy.STUB("127.0.0.1@{place.lab.authority_port}")))
""")
  return [program("kresd"), "-n", "-c", configuration, str(place.folder)]


ECHO = Spec("echo", Role.FLOOR, _echo, note="blocks in recvmmsg")
ECHO_EPOLL = Spec("echo epoll", Role.REFERENCE, _echo_epoll, note="waits with epoll first, as an event loop must")
NSD = Spec("nsd", Role.REFERENCE, _nsd, package="nsd", note="authoritative: it has no cache")

#: The floor, then the peers in the order of the tables.
ALL = [
  ECHO,
  ECHO_EPOLL,
  NSD,
  Spec("unbound", Role.PEER, _unbound, package="unbound", backend="nsd"),
  Spec("dnsdist", Role.PEER, _dnsdist(64), package="dnsdist", backend="nsd", note="batches of 64, its best"),
  Spec("dnsdist default", Role.REFERENCE, _dnsdist(1), backend="nsd", note="no batches"),
  Spec("knot-resolver", Role.PEER, _kresd, package="knot-resolver", backend="nsd"),
  Spec("smartdns", Role.PEER, _smartdns, package="smartdns", backend="nsd"),
  Spec("dnsmasq", Role.PEER, _dnsmasq, package="dnsmasq", backend="nsd"),
]

#: The nameserver of the hot names.
HOT_NSD = Spec("nsd with hot names", Role.REFERENCE, _hot_nsd, ready_name=hotnames.FIRST_HOT_NAME)


def _hot_spec(name: str, command: Callable[[Place], list[str]], note: str) -> Spec:
  return Spec(name, Role.PEER, command, package=name, ready_name=hotnames.FIRST_HOT_NAME, note=note)


#: Peers in front of hot names, each with what it has against waiting that does not answer beyond the TTL.
HOT = [
  _hot_spec("unbound", lambda place: _unbound_with(place, "prefetch: yes"), "`prefetch: yes`"),
  # By default it raises short TTLs to ten minutes, and what it has prefetched gets five: bounds keep to the zone's TTL.
  _hot_spec("smartdns", lambda place: _smartdns_with(place, "prefetch-domain yes", "rr-ttl-min 1",
                                                     f"rr-ttl-max {hotnames.TTL}"), "`prefetch-domain yes`"),
  _hot_spec("dnsmasq", _dnsmasq, "it does not prefetch"),
]
