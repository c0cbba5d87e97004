"""forwarders.py -- unbound and dnsdist ask over TLS, and for one domain a server that cannot prove its name."""

from lab import ADDRESS, DOH, DOT, HOST, NAME, PAGE_HOST, PINNED, SIMULATED, Lab
from report import call, expect, expect_match

UNBOUND, DNSDIST = 5301, 5302
# For names in here the forwarders expect a certificate for another name.
WRONG = "wrong.example"
UNBOUND_CONFIGURATION = f"""
server:
  interface: 127.0.0.1@{UNBOUND}
  username: ""
  chroot: ""
  directory: "FOLDER"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  module-config: "iterator"
  local-zone: "example." nodefault
  tls-cert-bundle: "ROOT"
remote-control:
  control-enable: no
forward-zone:
  name: "."
  forward-tls-upstream: yes
  forward-addr: {ADDRESS}@{DOT}#{NAME}
forward-zone:
  name: "{WRONG}"
  forward-tls-upstream: yes
  forward-addr: {ADDRESS}@{DOT}#other.example
"""
DNSDIST_CONFIGURATION = f"""
setSecurityPollSuffix("")
setLocal("127.0.0.1:{DNSDIST}")
function server(port, name, more)
  more.address, more.tls, more.subjectName, more.caStore = "{ADDRESS}:" .. port, "openssl", name, "ROOT"
  newServer(more):setUp()
end
server({DOT}, "{NAME}", {{}})
server({DOT}, "other.example", {{pool="wrong"}})
server({DOH}, "{NAME}", {{pool="doh", dohPath="/dns-query"}})
addAction("{WRONG}.", PoolAction("wrong"))
addAction("{PAGE_HOST}.", PoolAction("doh"))
"""


def check(lab: Lab) -> None:
  """One forwarder after the other."""
  for name, program, arguments, port, text in (
      ("unbound", "/usr/sbin/unbound", ["-d", "-c"], UNBOUND, UNBOUND_CONFIGURATION),
      ("dnsdist", "dnsdist", ["--supervised", "--disable-syslog", "-C"], DNSDIST, DNSDIST_CONFIGURATION)):
    path = lab.folder / f"{name}.conf"
    path.write_text(text.replace("FOLDER", str(lab.folder)).replace("ROOT", str(lab.authority.root)))
    lab.start_program([program, *arguments, path], "127.0.0.1", [port])
    for host, address in ((HOST, PINNED), ("example.com", SIMULATED)):
      expect(f"{name} over DoT, {host}", address, _ask(port, host))
    for transport in ("+notcp", "+tcp"):
      expect_match(f"{name} over DoT {transport}, NXDOMAIN", "status: NXDOMAIN",
                   call("kdig", "@127.0.0.1", "-p", port, transport, "+retry=0", "missing.example.com").text)
    expect(f"{name} refuses a certificate for another name", "", _ask(port, f"www.{WRONG}"))
  expect("dnsdist over DoH", PINNED, _ask(DNSDIST, PAGE_HOST))


def _ask(port: int, name: str) -> str:
  """The address of a name; nothing without one."""
  said = call("kdig", "@127.0.0.1", "-p", port, "+retry=0", "+time=5", "+short", name).text.strip()
  return "" if said.startswith(";") else said
