// NameSignature.swift -- the signature that several services share: MD5 of names, secret and time.

import Ciphers
import DNSWire

/// The lower-case hexadecimal MD5 of the names as they are sent, the secret and the expiry, joined by hyphens. It covers
/// nothing else of the request.
func nameSignature(of names: String, _ secret: Secret, expiry: String) -> String {
  var message: [UInt8] = []
  message.reserveCapacity(256)
  message.append(names)
  message.append(UInt8(ascii: "-"))
  message.append(contentsOf: secret.reveal)
  message.append(UInt8(ascii: "-"))
  message.append(expiry)
  return Hexadecimal.encode(Digest.md5(message))
}
