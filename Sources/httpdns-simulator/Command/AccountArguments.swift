// AccountArguments.swift -- the simulated accounts of Tencent and EMAS on the command line; the defaults are no secrets.

import ArgumentParser

/// `--tencent-…`.
struct TencentArguments: ParsableArguments {
  @Option(help: "The account's id, 1 to 100000.")
  var tencentId = TencentAccount().identifier
  @Option(help: "Its key for DES; 8 octets count.")
  var tencentDesKey = TencentAccount().desKey
  @Option(help: "Its key for AES, 16 octets.")
  var tencentAesKey = TencentAccount().aesKey
  @Option(help: "Its token for HTTPS.")
  var tencentToken = TencentAccount().token

  var account: TencentAccount {
    TencentAccount(identifier: tencentId, desKey: tencentDesKey, aesKey: tencentAesKey, token: tencentToken)
  }

  func validate() throws {
    guard let number = Int(tencentId), (1...100_000).contains(number) else {
      throw ValidationError("--tencent-id is 1 to 100000")
    }
    guard tencentAesKey.utf8.count == 16 else { throw ValidationError("--tencent-aes-key has 16 octets") }
  }
}

/// `--emas-…`.
struct EMASArguments: ParsableArguments {
  @Option(help: "The account's number.")
  var emasAccount = EMASAccount().identifier
  @Option(help: "Its secret: v1 signs with the text, v2 with the octets of its hexadecimal digits. Empty: unchecked.")
  var emasSecret = EMASAccount().secret
  @Option(help: "Its AES key for v2, 32 hexadecimal digits. Empty: v2's encrypted modes are refused.")
  var emasAesSecret = EMASAccount().aesSecret

  var account: EMASAccount {
    EMASAccount(identifier: emasAccount, secret: emasSecret, aesSecret: emasAesSecret)
  }

  func validate() throws {
    guard emasAesSecret.isEmpty || hexDecoded(Array(emasAesSecret.utf8))?.count == 16 else {
      throw ValidationError("--emas-aes-secret has 32 hexadecimal digits")
    }
  }
}
