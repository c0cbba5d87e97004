// Accounts.swift -- providers that know addresses alone, with the accounts that the simulator has from the start.

/// A kind of provider that knows nothing but addresses, and a way of speaking with it.
struct AccountKind: Sendable {
  let title: String
  let kind: String
  /// The account's keys, right as they stand here.
  let keys: String
  let isSecure: Bool
  /// The cipher that the simulator sees.
  var cipher: String?
  /// Whether the simulator has something to verify.
  var isVerified = true
  /// Billing units of one answer with addresses, or of a name.
  var price = 1
  /// Whether a name costs the same in one family and in both, with addresses and without.
  var isPricedByName = false
  /// Whether an empty answer for a listed name differs from one for a name that is not listed.
  var isCertain = false

  /// Whether each transfer asks for both families.
  var isAlwaysPaired = false

  /// Whether each transfer asks for one family.
  var isApart = false

  /// Whether each transfer asks for one name.
  var isSingle = false

  /// What both families of a name cost in one transfer.
  var pairPrice: Int { isPricedByName ? price : 2 * price }

  /// The name of its provider in tests, and of its dialect.
  var name: String { kind }
}

extension AccountKind {
  static let emasSecret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
  private static let emasAccount = "account_id = \"100000\"\nschedule = false"
  private static let emasSigned = "\(emasAccount)\nsecret_key = \"\(emasSecret)\""
  private static let emasSealed = "\(emasSigned)\napi = \"v2\"\naes_secret_key = \"00112233445566778899aabbccddeeff\""

  /// Each kind with each of its ciphers, over HTTP and HTTPS as far as the kind has both.
  static let all: [AccountKind] =
    [
      AccountKind(
        title: "tencent, https", kind: "tencent", keys: "cipher = \"https\"\ntoken = \"123456789\"", isSecure: true)
    ]
    + [false, true].flatMap { isSecure in
      let transport = isSecure ? "over HTTPS" : "over HTTP"
      return [
        AccountKind(
          title: "tencent, aes \(transport)", kind: "tencent",
          keys: "cipher = \"aes\"\nid = \"1234\"\nkey = \"AesKey0123456789\"", isSecure: isSecure, cipher: "cbc"),
        AccountKind(
          title: "tencent, des \(transport)", kind: "tencent",
          keys: "cipher = \"des\"\nid = \"1234\"\nkey = \"DesKey01\"", isSecure: isSecure, cipher: "des"),
        AccountKind(
          title: "emas, v1 unsigned \(transport)", kind: "emas", keys: emasAccount, isSecure: isSecure,
          isVerified: false, price: isSecure ? 5 : 1),
        AccountKind(
          title: "emas, v1 \(transport)", kind: "emas", keys: emasSigned, isSecure: isSecure, price: isSecure ? 5 : 1),
        AccountKind(
          title: "emas, v2 \(transport)", kind: "emas", keys: "\(emasSigned)\napi = \"v2\"", isSecure: isSecure,
          price: isSecure ? 5 : 1, isCertain: true),
        AccountKind(
          title: "emas, v2 cbc \(transport)", kind: "emas", keys: emasSealed, isSecure: isSecure, cipher: "cbc",
          price: isSecure ? 8 : 3, isCertain: true),
        AccountKind(
          title: "emas, v2 gcm \(transport)", kind: "emas", keys: "\(emasSealed)\naes_mode = \"gcm\"",
          isSecure: isSecure, cipher: "gcm", price: isSecure ? 8 : 3, isCertain: true),
        AccountKind(
          title: "baidu \(transport)", kind: "baidu", keys: "account_id = \"100001\"\nsecret = \"BaiduSecret01\"",
          isSecure: isSecure, price: isSecure ? 5 : 1, isPricedByName: true),
        AccountKind(
          title: "volcengine \(transport)", kind: "volcengine",
          keys: "account_id = \"2100000001\"\nsecret_key = \"VolcSecret01\"", isSecure: isSecure,
          price: isSecure ? 5 : 1, isPricedByName: true, isAlwaysPaired: true),
        AccountKind(
          title: "jdcloud \(transport)", kind: "jdcloud", keys: "account_id = \"123456\"\nkey = \"JdKey01\"",
          isSecure: isSecure, isPricedByName: true, isApart: true),
        AccountKind(
          title: "ucloud \(transport)", kind: "ucloud",
          keys:
            "auth_id = \"abc-0001\"\nauth_secret = \"UcloudSecret01\"\napp_id = \"com.example.app\"\nschedule = false",
          isSecure: isSecure, isPricedByName: true, isApart: true, isSingle: true),
        AccountKind(
          title: "text, 114 \(transport)", kind: "text",
          keys: "url = \"\(isSecure ? "https" : "http")://text.example/text\"\ndialect = \"114\"", isSecure: isSecure,
          isVerified: false, price: 0, isApart: true, isSingle: true),
      ]
    }

  /// The kinds whose service knows an account by one secret.
  static let further = all.filter { ["baidu", "volcengine", "jdcloud", "ucloud"].contains($0.kind) }

  /// One of `all` by its title.
  static func named(_ title: String) -> AccountKind { all.first { $0.title == title }! }

  /// What helps if the provider refuses the account: the keys that identify it.
  var remedy: String {
    let account = [
      "token", "id", "account_id", "key", "secret", "secret_key", "aes_secret_key", "auth_id", "auth_secret", "app_id",
    ]
    let given = account.filter { key in keys.split(separator: "\n").contains { $0.hasPrefix("\(key) = ") } }
    return "check " + given.dropLast().joined(separator: ", ") + (given.count > 1 ? " and " : "") + (given.last ?? "")
  }

  /// The provider's table; a simulator without HTTPS serves those over HTTP only.
  func provider(_ simulator: Simulator, _ more: String = "") -> String {
    guard isSecure, let https = simulator.https else {
      return Settings.provider(kind, "scheme = \"http\"\nservers = [\"\(simulator.http)\"]\n\(keys)\n\(more)")
    }
    let tlsNames = [
      "tencent": "119.29.29.99", "emas": "resolvers.httpdns.aliyuncs.com", "baidu": "httpdns.baidubce.com",
      "volcengine": "httpdns.volcengineapi.com", "jdcloud": "103.224.222.208",
      "ucloud": "httpdns.ucloud.cn", "text": "127.0.0.1",
    ]
    return Settings.provider(
      kind,
      """
      scheme = "https"
      servers = ["\(https.address)"]
      tls_name = "\(tlsNames[kind]!)"
      ca_file = "\(https.authority)"
      \(keys)
      \(more)
      """)
  }
}
