"""scan.py -- testssl.sh on both ports: no finding above LOW but those that this laboratory or DNS explains."""

import json
import subprocess

from lab import ADDRESS, DOH, DOT, NAME, Lab
from report import expect

PORTS = {"DoT": DOT, "DoH": DOH}
# The longest that a scan may take, in seconds. On two cores both took 60 s side by side.
LIMIT = 300
# DEBUG is about the scan itself.
ACCEPTED = {"OK", "INFO", "LOW", "DEBUG"}
# Findings above LOW, by severity and id in the report, and why they are expected.
EXPECTED = {
  "HIGH cert_revocation": "the authority of this test publishes no CRL",
  "MEDIUM security_headers": "they protect pages in browsers; DNS over HTTPS has none",
  # What this machine's OpenSSL cannot try.
  "WARN engine_problem": "OpenSSL without GOST",
  "WARN RC4": "OpenSSL without RC4; no version that has it is offered",
  "WARN sessionresumption_ticket": "it does not always wait for a ticket of TLS 1.3; the part openssl does",
}
# What has to be in a report, so that a scan which saw nothing does not pass.
SEEN = {"TLS1": "not offered", "TLS1_1": "not offered", "TLS1_2": "offered", "TLS1_3": "offered with final",
        "cert_chain_of_trust": "passed.", "secure_client_renego": "not vulnerable"}


class Scan:
  """Two scans, which run until they are judged."""

  def __init__(self, lab: Lab):
    self.scans = {}
    for name, port in PORTS.items():
      report, log = lab.folder / f"testssl-{port}.json", lab.folder / f"testssl-{port}.log"
      with log.open("wb") as output:
        process = subprocess.Popen(
          ["timeout", "--kill-after=5", str(LIMIT), "testssl", "--quiet", "--color", "0", "--warnings", "batch",
           "--nodns", "none", "--ip", ADDRESS, "--fast", "--add-ca", str(lab.authority.root), "--protocols",
           "--server-defaults", "--server-preference", "--fs", "--headers", "--vulnerable", "--jsonfile", str(report),
           f"{NAME}:{port}"],
          stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
      self.scans[name] = report, log, process

  def judge(self) -> None:
    """Waits for both, and looks at what they found."""
    for name, (report, log, process) in self.scans.items():
      process.wait(LIMIT + 10)
      try:
        findings = json.loads(report.read_text(encoding="utf-8"))
      except (OSError, ValueError):
        expect(f"testssl {name}, a report", "a report", log.read_text(errors="replace"))
        continue
      by_id = {finding["id"]: finding["finding"] for finding in findings}
      for key, text in SEEN.items():
        expect(f"testssl {name}, {key}", text, by_id.get(key, "")[:len(text)])
      unexpected = []
      for finding in findings:
        key = f"{finding['severity']} {finding['id']}"
        if key in EXPECTED:
          print(f"  testssl {name}: {key} is expected: {EXPECTED[key]}")
        elif finding["severity"] not in ACCEPTED:
          unexpected.append(f"{key}: {finding['finding']}")
      expect(f"testssl {name}, findings above LOW", [], unexpected)
