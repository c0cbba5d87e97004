"""discovery.py -- dnspython finds the encrypted listeners by asking at port 53 (DDR, RFC 9462), and uses them."""

import os
import pathlib
import re

from kdig import kdig
from lab import ADDRESS, ADDRESS6, DOH, DOT, HOST, NAME, PINNED, Lab
from report import call, expect_match

# A Python with dnspython[doh] 2.9 (Scripts/test-venv).
PYTHON = os.environ.get("HTTPDNSD_TEST_PYTHON") or \
  pathlib.Path(__file__).resolve().parent.parent.parent / ".build/clients-venv/bin/python3"
# Prints the servers before and after, and an answer that each of them gives.
PROGRAM = """
import sys, dns.resolver
resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers = [sys.argv[1]]
resolver.try_ddr()
for server in resolver.nameservers:
  alone = dns.resolver.Resolver(configure=False)
  alone.nameservers = [server]
  print(server, [data.to_text() for data in alone.resolve(sys.argv[2], "A", lifetime=5)])
"""


def check(lab: Lab) -> None:
  """The records, then dnspython with them."""
  said = call("kdig", f"@{ADDRESS}", "+retry=0", "_dns.resolver.arpa", "SVCB").text
  expect_match("kdig, discovery at port 53, DoH", rf'SVCB\s+1 {re.escape(NAME)}\. [^\n]*alpn="?h2"?\b', said)
  expect_match("kdig, discovery at port 53, DoT", rf'SVCB\s+2 {re.escape(NAME)}\. [^\n]*alpn="?dot"?\b', said)
  for kind, address in (("A", ADDRESS), ("AAAA", ADDRESS6)):
    said = kdig(lab, "+tls", NAME, kind).text
    expect_match(f"kdig, {kind} of the daemon's own name", rf"\sIN\s+{kind}\s+{re.escape(address)}\n", said)
  said = call(PYTHON, "-c", PROGRAM, ADDRESS, HOST, more={"SSL_CERT_FILE": str(lab.authority.root)}).text
  answer = re.escape(f"['{PINNED}']")
  expect_match("dnspython try_ddr, DoH", rf"https://{re.escape(NAME)}:{DOH}/dns-query\S* {answer}", said)
  expect_match("dnspython try_ddr, DoT", rf"DoT:{re.escape(ADDRESS)}@{DOT} {answer}", said)
  said = call(PYTHON, "-c", PROGRAM, ADDRESS, HOST).text
  expect_match("dnspython try_ddr without the authority stays at port 53", rf"^{re.escape(ADDRESS)} {answer}\s*$", said)
