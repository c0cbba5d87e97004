// AccountArguments.swift -- options for the simulated accounts; the defaults are not secret.

import ArgumentParser
import DNSWire

/// The options `--tencent-…`.
struct TencentArguments: ParsableArguments {
  @Option(help: ArgumentHelp("The account's id, 1 to 100000.", valueName: "number"))
  var tencentId = TencentAccount().identifier
  @Option(help: ArgumentHelp("Its key for DES; 8 octets count.", valueName: "key"))
  var tencentDesKey = TencentAccount().desKey
  @Option(help: ArgumentHelp("Its key for AES, 16 octets.", valueName: "key"))
  var tencentAesKey = TencentAccount().aesKey
  @Option(help: ArgumentHelp("Its token for HTTPS.", valueName: "token")) var tencentToken = TencentAccount().token

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

/// The options `--emas-…`.
struct EMASArguments: ParsableArguments {
  @Option(help: ArgumentHelp("The account's number.", valueName: "number")) var emasAccount = EMASAccount().identifier
  @Option(
    help: ArgumentHelp(
      "Its secret: v1 signs with the text, v2 with the octets of its hexadecimal digits. Empty: unchecked.",
      valueName: "secret"))
  var emasSecret = EMASAccount().secret
  @Option(
    help: ArgumentHelp(
      "Its AES key for v2, 32 hexadecimal digits. Empty: v2's encrypted modes are refused.",
      valueName: "key"))
  var emasAesSecret = EMASAccount().aesSecret

  var account: EMASAccount { EMASAccount(identifier: emasAccount, secret: emasSecret, aesSecret: emasAesSecret) }

  func validate() throws {
    guard emasAesSecret.isEmpty || Hexadecimal.decode(emasAesSecret)?.count == 16 else {
      throw ValidationError("--emas-aes-secret has 32 hexadecimal digits")
    }
  }
}

/// The option for accounts with one secret.
struct SecretArguments: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The secret of the account of a service, such as baidu=SECRET. May be repeated.", valueName: "service=secret"))
  var secret: [String] = []

  /// The accounts of all such services.
  func accounts(_ standard: [String: SecretAccount]) throws -> [String: SecretAccount] {
    var accounts = standard
    for text in secret {
      let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2, accounts[parts[0]] != nil else {
        throw ValidationError(
          "--secret takes SERVICE=SECRET; services: \(standard.keys.sorted().joined(separator: ", "))")
      }
      accounts[parts[0]]?.secret = parts[1]
    }
    return accounts
  }
}
