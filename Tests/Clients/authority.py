"""authority.py -- a root authority, an intermediate one and the daemon's certificate, made by openssl."""

import pathlib
import subprocess

AUTHORITY = """basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
SERVER = """basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = {names}
"""
# Of the certificate, as public authorities issue them.
DAYS = 90


class Authority:
  """The files in `folder`: `root`, which clients trust; `chain` and `key`, which the daemon uses."""

  def __init__(self, folder: pathlib.Path, names: list[str]):
    """Makes a certificate for `names`, in the form of subjectAltName ("DNS:…"); the first is its subject, too."""
    self.folder = folder
    folder.mkdir()
    self.root, self.chain, self.key = folder / "root.pem", folder / "chain.pem", folder / "server.key"
    for name in ("root", "issuing", "server"):
      self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{name}.key")
    self._certify("root", "/CN=httpdnsd test root", AUTHORITY, "root", 3650)
    self._certify("issuing", "/CN=httpdnsd test issuer", AUTHORITY, "root", 3650)
    self._certify("server", f"/CN={names[0].partition(':')[2]}", SERVER.format(names=",".join(names)), "issuing", DAYS)
    self.chain.write_text((folder / "server.pem").read_text() + (folder / "issuing.pem").read_text())
    self.key.chmod(0o600)

  def _certify(self, name: str, subject: str, extensions: str, issuer: str, days: int) -> None:
    """Has an issuer sign a certificate; a certificate that is its own issuer is self-signed."""
    (self.folder / f"{name}.ext").write_text(extensions)
    self._openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
    signer = ["-signkey", "root.key"] if issuer == name else ["-CA", f"{issuer}.pem", "-CAkey", f"{issuer}.key",
                                                              "-CAcreateserial"]
    self._openssl("x509", "-req", "-in", f"{name}.csr", "-days", str(days), "-sha256", "-extfile", f"{name}.ext",
                  "-out", f"{name}.pem", *signer)

  def _openssl(self, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True, timeout=30)
