// ProviderKindMistakeTests.swift -- mistakes in the keys of Tencent HTTPDNS, EMAS HTTPDNS and self-maintained tables.

import Configuration
import Testing

private let secrets = [
  "TOKEN": "4711", "AES": "AesKey0123456789", "HEX": "00ff", "ODD": "00f", "LONG": "AesKey01234567890",
]

private func found(_ text: String) -> [String] { mistakes("[[provider]]\n\(text)", environment: secrets) }

private let pin = "pins = [\"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]"
private let tencent = "kind = \"tencent\"\n"
private let tencentAES = tencent + "cipher = \"aes\"\nid = \"1234\"\n"
private let emas = "kind = \"emas\"\naccount_id = \"100000\"\n"
private let table = "kind = \"table\"\n"
private let tableURL = table + "url = \"https://192.0.2.10/table.json\"\n"

private let lines: [(text: String, line: String)] = [
  (tencent, "token: missing; expected token_file, token_credential or token_env for cipher \"https\""),
  (
    tencent + "token_env = \"TOKEN\"\nkey_env = \"AES\"",
    "key_env: not used by cipher \"https\", which takes token; remove key_env or set cipher = \"aes\" or \"des\""
  ),
  (
    tencent + "token_env = \"TOKEN\"\nscheme = \"http\"",
    "scheme: \"http\" is not valid with cipher \"https\"; expected \"https\", or cipher = \"aes\", which needs no TLS"
  ),
  (tencentAES, "key: missing; expected key_file, key_credential or key_env for cipher \"aes\""),
  (
    tencent + "cipher = \"aes\"\nkey_env = \"AES\"",
    "id: missing; expected the account's id for cipher \"aes\""
  ),
  (
    tencentAES + "key_env = \"LONG\"",
    "key_env: the secret has the wrong form; expected exactly 16 ASCII characters for cipher \"aes\""
  ),
  (
    tencent + "cipher = \"des\"\nid = \"1234\"\nkey = \"DesKey0\"",
    "key: the secret has the wrong form; expected at least 8 ASCII characters for cipher \"des\""
  ),
  (
    tencentAES + "key = \"AesKey012345678é\"",
    "key: the secret has the wrong form; expected exactly 16 ASCII characters for cipher \"aes\""
  ),
  (
    tencentAES + "key_env = \"AES\"\ntoken_env = \"TOKEN\"",
    "token_env: not used by cipher \"aes\", which takes id and key; remove token_env"
  ),
  (
    tencent + "token = \"a&b\"",
    "token: the secret has the wrong form; expected 1 to 63 letters, digits, \"-\", \"_\" or \".\""
  ),
  (
    tencent + "token_env = \"TOKEN\"\nid = 1234",
    "id: an integer (not shown) is not valid; expected 1 to 10 digits in quotes, e.g. \"1234\""
  ),
  (tencent + "cipher = \"rot13\"", "cipher: \"rot13\" is not valid; expected one of \"https\", \"aes\", \"des\""),
  ("kind = \"emas\"", "account_id: missing; expected the id of the EMAS account"),
  (
    emas + "aes_secret_key_env = \"AES\"",
    "aes_secret_key_env: not supported by api \"v1\", which does not encrypt; remove aes_secret_key_env or set "
      + "api = \"v2\""
  ),
  (
    emas + "aes_mode = \"gcm\"",
    "aes_mode: not supported by api \"v1\", which does not encrypt; remove aes_mode or set api = \"v2\""
  ),
  (
    emas + "api = \"v2\"\naes_mode = \"cbc\"",
    "aes_mode: has no effect without aes_secret_key; give the encryption key or remove aes_mode"
  ),
  (
    emas + "api = \"v2\"\nsecret_key_env = \"ODD\"",
    "secret_key_env: the secret has the wrong form; expected an even number of hexadecimal digits for api \"v2\""
  ),
  (
    emas + "api = \"v2\"\naes_secret_key_env = \"HEX\"",
    "aes_secret_key_env: the secret has the wrong form; expected 32 hexadecimal digits"
  ),
  (
    emas + "region = \"fr\"",
    "region: \"fr\" is not valid; expected one of \"cn\", \"hk\", \"sg\", \"de\", \"us\", \"global\""
  ),
  (table, "url: missing; expected url or file with the location of the table"),
  (tableURL + "file = \"/dev/null\"", "file: url is given too; remove one of the two"),
  (
    tableURL + "client_subnet = \"from-client\"",
    "client_subnet: \"from-client\" is not valid with kind \"table\"; expected \"\", because a table is the same for every "
      + "client"
  ),
  (tableURL + "scheme = \"http\"", "scheme: \"http\" contradicts url; expected \"https\", or no scheme"),
  (
    "kind = \"json\"\nservers = [\"192.0.2.1\"]\nscheme = \"http\"",
    "scheme: \"http\" contradicts the default url https://dns.google/resolve; expected a url that begins with http://"
  ),
  (
    tencent + "token = 123456789",
    "token: an integer (not shown) is not valid; expected one line of text in quotes, not empty"
  ),
]

@Test(arguments: lines)
func `the message about a kind's own keys names the allowed values`(text: String, line: String) {
  let kind = text.split(separator: "\"")[1]
  #expect(found(text) == ["test.toml: provider[\"\(kind)\"].\(line)"])
}

private let refusals: [(text: String, key: String)] = [
  (emas + "api = \"v3\"", "api"),
  (emas + "schedule = \"yes\"", "schedule"),
  (emas + "api = \"v2\"\naes_mode = \"ecb\"", "aes_mode"),
  (emas + "servers = [\"https://192.0.2.1/v2/d\"]", "servers[#1]"),
  (emas + "url = \"https://192.0.2.1/v2/d\"", "url"),
  (emas + "token = \"4711\"", "token"),
  (tencent + "token_env = \"TOKEN\"\nservers = [\"https://192.0.2.1/d\"]", "servers[#1]"),
  (tencent + "token_env = \"TOKEN\"\nfamily = \"ipv6\"", "family"),
  (tencent + "token_env = \"TOKEN\"\nid = \"\"", "id"),
  (tencent + "token_env = \"TOKEN\"\nid = \"12345678901\"", "id"),
  (tencentAES + "key_env = \"AES\"\n" + pin, "pins"),
  (tencentAES + "key_env = \"AES\"\nshort = true", "short"),
  (table + "url = \"192.0.2.10/table.json\"", "url"),
  (table + "file = \"table.json\"", "file"),
  (table + "file = \"/nonexistent/table.json\"", "file"),
  (tableURL + "host = \"a b\"", "host"),
  (tableURL + "interval = \"500ms\"", "interval"),
  (tableURL + "interval = \"2d\"", "interval"),
  (tableURL + "ttl = \"8d\"", "ttl"),
  (tableURL + "ttl = 60", "ttl"),
  ("return_to_first = \"0s\"", "return_to_first"),
  ("requests_per_second = -1", "requests_per_second"),
  ("units_per_day = 1.5", "units_per_day"),
  ("fallback_on_empty = \"no\"", "fallback_on_empty"),
  ("not_listed_ttl = \"1500ms\"", "not_listed_ttl"),
]

@Test(arguments: refusals)
func `a service that cannot work is one mistake`(text: String, key: String) {
  let found = found(text)
  #expect(found.count == 1, "\(found)")
  #expect(found.first?.contains("].\(key): ") == true, "\(found)")
}

@Test(arguments: [
  "host = \"table.example\"", "scheme = \"https\"", "servers = [\"192.0.2.1\"]", "tls_name = \"table.example\"", pin,
  "bootstrap = [\"192.0.2.53\"]", "proxy = \"http://127.0.0.1:3128\"", "family = \"ipv4\"",
])
func `a table in a file takes no key of transfers`(line: String) throws {
  try withFile("{}") { _, path in
    let found = found(table + "file = \"\(path)\"\n\(line)")
    #expect(found.count == 1, "\(found)")
    let message = "has no effect with file, which needs no transfer; remove the key"
    #expect(found.first?.hasSuffix(message) == true, "\(found)")
  }
}

@Test func `a mistyped kind makes no other key a mistake`() {
  let text = "kind = \"emsa\"\nsecret_key_file = \"/x\"\nregion = \"cn\"\nservers = [\"192.0.2.1\"]\nnonsense = 1"
  #expect(found(text).map { $0.contains(".kind: ") || $0.contains(".nonsense: ") } == [true, true])
}

@Test func `a mistyped cipher makes no other key a mistake`() {
  #expect(found("kind = \"tencent\"\ncipher = \"ase\"\nid = \"1\"\nkey_env = \"AES\"").count == 1)
}

@Test(arguments: [
  ("kind = \"tencent\"\n", "token"), (tencentAES, "key"), (emas, "secret_key"),
  (emas + "api = \"v2\"\n", "aes_secret_key"),
])
func `the message about an unreadable secret names a remedy`(text: String, key: String) {
  let found = found(text + "\(key)_file = \"/nonexistent/secret\"")
  #expect(found.count == 1, "\(found)")
  #expect(found.first?.contains(".\(key)_file: no such file; create it with mode 0600") == true, "\(found)")
  #expect(found.first?.hasSuffix("or use a systemd credential") == true)
}
