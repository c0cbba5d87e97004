"""kdig.py -- DNS over TLS and over HTTPS by kdig, with padding and connections that are kept."""

import pathlib
import re

from lab import ADDRESS6, ADDRESS, HOST, NAME, PINNED, PINNED6, SIMULATED, STRANGER, Lab
from report import Output, call, expect, expect_match

# Padded responses have a multiple of this many octets (RFC 8467).
BLOCK = 468
ANSWERED = rf"status: NOERROR.*{re.escape(HOST)}\.\s+\d+\s+IN\s+A\s+{re.escape(PINNED)}\b"
# How kdig names the option of RFC 7828.
KEEPALIVE = r"KEEPALIVE|OPTION \(?11\b"


def kdig(lab: Lab, *arguments: str, server: str = ADDRESS, name: str = NAME) -> Output:
  """Asks a server, which has to prove that it is `name`."""
  return call("kdig", f"@{server}", f"+tls-ca={lab.authority.root}", f"+tls-hostname={name}", "+retry=0", "+time=8",
              *arguments)


def has_answer(said: str) -> bool:
  """Whether kdig printed a TLS session or a response."""
  return "TLS session" in said or "status:" in said


def check(lab: Lab) -> None:
  """All of it."""
  _over_tls(lab)
  _over_https(lab)
  _padding(lab)
  _connections(lab)


def _over_tls(lab: Lab) -> None:
  answered = rf"TLS session \(TLS1\.3\).*{ANSWERED}"
  expect_match("kdig +tls", answered, kdig(lab, "+tls", HOST).text)
  expect_match("kdig +tls, IPv6 transport", answered, kdig(lab, "+tls", HOST, server=ADDRESS6).text)
  expect_match("kdig +tls, AAAA", rf"AAAA\s+{PINNED6}\b", kdig(lab, "+tls", HOST, "AAAA").text)
  said = kdig(lab, "+tls", "example.com").text
  expect_match("kdig +tls, an answer of the provider", rf"\sA\s+{re.escape(SIMULATED)}\b", said)
  expect_match("kdig +tls, NXDOMAIN", "status: NXDOMAIN", kdig(lab, "+tls", "missing.example.com").text)
  expect_match("kdig +tls, by the address in the certificate", answered, kdig(lab, "+tls", HOST, name=ADDRESS).text)
  said = kdig(lab, "+tls", HOST, name="other.example").text
  expect_match("kdig +tls, another name is refused by kdig", "handshake failed.*certificate", said)
  said = kdig(lab, "+tls", "-b", STRANGER, HOST).text
  expect("kdig +tls, answer for a client outside of allow", False, has_answer(said))


def _over_https(lab: Lab) -> None:
  for option, method in (("+https", "POST"), ("+https-get", "GET")):
    said = kdig(lab, option, HOST, server=NAME).text
    expect_match(f"kdig {option}", rf"HTTP session \(HTTP/2-{method}\)[^\n]*status: 200.*{ANSWERED}", said)
  expect_match("kdig +https, NXDOMAIN has status 200", r"status: 200.*status: NXDOMAIN",
               kdig(lab, "+https", "missing.example.com", server=NAME).text)


def _padding(lab: Lab) -> None:
  for option in ("+tls", "+https"):
    size = _received(kdig(lab, option, "+padding", HOST, server=NAME).text)
    expect(f"kdig {option} +padding, octets of the response", BLOCK, size)
    size = _received(kdig(lab, option, "+nopadding", HOST, server=NAME).text)
    expect(f"kdig {option} +nopadding, the response is shorter ({size} octets)", True, 0 < size < BLOCK)


def _connections(lab: Lab) -> None:
  before = _opened()
  said = kdig(lab, "+tls", "+keepopen", HOST, "A", HOST, "AAAA", HOST, "TXT").text
  expect("kdig +keepopen, responses and connections", (3, 1), (said.count("status: NOERROR"), _opened() - before))
  said = kdig(lab, "+tls", "+ednsopt=11", HOST).text
  expect_match("kdig, keepalive option over TLS", KEEPALIVE, said.upper())


def _opened() -> int:
  """The TCP connections that programs of this network have opened so far."""
  names, values = re.findall(r"^Tcp: (.*)$", pathlib.Path("/proc/net/snmp").read_text(encoding="ascii"), re.MULTILINE)
  return int(values.split()[names.split().index("ActiveOpens")])


def _received(said: str) -> int:
  """The octets of the response; 0 if there is none."""
  found = re.search(r"Received (\d+) B", said)
  return int(found.group(1)) if found else 0
