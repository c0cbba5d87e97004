// ServiceMistakeTests.swift -- what is wrong with the keys of Tencent HTTPDNS, EMAS HTTPDNS and self-built tables.

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
  (tencent, "token: found nothing; allowed: token_file, _credential or _env, which cipher \"https\" needs"),
  (
    tencent + "token_env = \"TOKEN\"\nkey_env = \"AES\"",
    "key_env: found a string (not shown); allowed: nothing here with cipher \"https\", which takes token; "
      + "or cipher = \"aes\""
  ),
  (
    tencent + "token_env = \"TOKEN\"\nscheme = \"http\"",
    "scheme: found \"http\"; allowed: \"https\" with cipher \"https\"; or cipher = \"aes\", which needs no TLS"
  ),
  (tencentAES, "key: found nothing; allowed: key_file, _credential or _env, which cipher \"aes\" needs"),
  (
    tencent + "cipher = \"aes\"\nkey_env = \"AES\"",
    "id: found nothing; allowed: the account's id, which cipher \"aes\" needs"
  ),
  (
    tencentAES + "key_env = \"LONG\"",
    "key_env: found a secret of another form; allowed: exactly 16 characters of ASCII with cipher \"aes\""
  ),
  (
    tencent + "cipher = \"des\"\nid = \"1234\"\nkey = \"DesKey0\"",
    "key: found a secret of another form; allowed: at least 8 characters of ASCII with cipher \"des\""
  ),
  (
    tencentAES + "key = \"AesKey012345678é\"",
    "key: found a secret of another form; allowed: exactly 16 characters of ASCII with cipher \"aes\""
  ),
  (
    tencentAES + "key_env = \"AES\"\ntoken_env = \"TOKEN\"",
    "token_env: found a string (not shown); allowed: nothing here with cipher \"aes\", which takes id and key"
  ),
  (
    tencent + "token = \"a&b\"",
    "token: found a secret of another form; allowed: up to 63 letters, digits, \"-\", \"_\" or \".\""
  ),
  (
    tencent + "token_env = \"TOKEN\"\nid = 1234",
    "id: found an integer (not shown); allowed: 1 to 10 digits as text, such as \"1234\""
  ),
  (tencent + "cipher = \"rot13\"", "cipher: found \"rot13\"; allowed: one of \"https\", \"aes\", \"des\""),
  ("kind = \"emas\"", "account_id: found nothing; allowed: the account's id, with kind \"emas\""),
  (
    emas + "aes_secret_key_env = \"AES\"",
    "aes_secret_key_env: found a string (not shown); allowed: nothing here with api \"v1\", which encrypts nothing; "
      + "or api = \"v2\""
  ),
  (
    emas + "aes_mode = \"gcm\"",
    "aes_mode: found \"gcm\"; allowed: nothing here with api \"v1\", which encrypts nothing; or api = \"v2\""
  ),
  (
    emas + "api = \"v2\"\naes_mode = \"cbc\"",
    "aes_mode: found \"cbc\"; allowed: nothing here without aes_secret_key, the key to encrypt with"
  ),
  (
    emas + "api = \"v2\"\nsecret_key_env = \"ODD\"",
    "secret_key_env: found a secret of another form; allowed: an even number of hexadecimal digits with api \"v2\""
  ),
  (
    emas + "api = \"v2\"\naes_secret_key_env = \"HEX\"",
    "aes_secret_key_env: found a secret of another form; allowed: 32 hexadecimal digits"
  ),
  (
    emas + "region = \"fr\"",
    "region: found \"fr\"; allowed: one of \"cn\", \"hk\", \"sg\", \"de\", \"us\", \"global\""
  ),
  (table, "url: found nothing; allowed: url or file: where the table is"),
  (tableURL + "file = \"/dev/null\"", "file: found \"/dev/null\"; allowed: only one of url and file"),
  (
    tableURL + "client_subnet = \"from-client\"",
    "client_subnet: found \"from-client\"; allowed: \"\" with kind \"table\", which is the same for every client"
  ),
  (tableURL + "scheme = \"http\"", "scheme: found \"http\"; allowed: \"https\", as in url, or no scheme"),
]

@Test(arguments: lines)
func `a mistake in a service's own keys says what is allowed`(text: String, line: String) {
  #expect(found(text) == ["test.toml: provider[0].\(line)"])
}

private let refusals: [(text: String, key: String)] = [
  (emas + "api = \"v3\"", "api"),
  (emas + "schedule = \"yes\"", "schedule"),
  (emas + "api = \"v2\"\naes_mode = \"ecb\"", "aes_mode"),
  (emas + "servers = [\"https://192.0.2.1/v2/d\"]", "servers[0]"),
  (emas + "url = \"https://192.0.2.1/v2/d\"", "url"),
  (emas + "token = \"4711\"", "token"),
  (tencent + "token_env = \"TOKEN\"\nservers = [\"https://192.0.2.1/d\"]", "servers[0]"),
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
func `a table in a file has no use for what transfers need`(line: String) throws {
  try withFile("{}") { _, path in
    let found = found(table + "file = \"\(path)\"\n\(line)")
    #expect(found.count == 1, "\(found)")
    #expect(found.first?.hasSuffix("allowed: nothing here with file, for which nobody is asked") == true, "\(found)")
  }
}

@Test func `a kind that is mistyped takes no other key with it`() {
  let text = "kind = \"emsa\"\nsecret_key_file = \"/x\"\nregion = \"cn\"\nservers = [\"192.0.2.1\"]\nnonsense = 1"
  #expect(found(text).map { $0.contains(".kind: ") || $0.contains(".nonsense: ") } == [true, true])
}

@Test func `a cipher that is mistyped takes no other key with it`() {
  #expect(found("kind = \"tencent\"\ncipher = \"ase\"\nid = \"1\"\nkey_env = \"AES\"").count == 1)
}

@Test(arguments: [
  ("kind = \"tencent\"\n", "token"), (tencentAES, "key"), (emas, "secret_key"),
  (emas + "api = \"v2\"\n", "aes_secret_key"),
])
func `a secret of any service that cannot be read says what would help`(text: String, key: String) {
  let found = found(text + "\(key)_file = \"/nonexistent/secret\"")
  #expect(found.count == 1, "\(found)")
  #expect(found.first?.contains(".\(key)_file: no such file; create it with mode 0600") == true, "\(found)")
  #expect(found.first?.hasSuffix("or use a systemd credential") == true)
}
