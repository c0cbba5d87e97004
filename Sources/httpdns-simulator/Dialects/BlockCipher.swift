// BlockCipher.swift -- the services' ciphers, with keys of any length.

import Ciphers

extension BlockCipher {
  /// - Parameter key: octets; padded with zeros or cut to the length of the cipher's key.
  init(_ mode: Mode, padding key: [UInt8]) {
    let length = mode.keyLength
    self.init(mode, key: Array((key + [UInt8](repeating: 0, count: length)).prefix(length)))
  }
}
