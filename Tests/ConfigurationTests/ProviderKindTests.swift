// ProviderKindTests.swift -- the keys of Tencent HTTPDNS, EMAS HTTPDNS and self-maintained tables.

import Ciphers
import Testing

@testable import Configuration

private let secrets = [
  "TOKEN": "4711", "AES": "AesKey0123456789", "DES": "DesKey01", "HEX": "00ff",
  "AES128": "000102030405060708090A0B0C0D0E0F",
]

private func provider(_ text: String) throws -> Configuration.Provider {
  try configuration("[[provider]]\n\(text)", environment: secrets).providers[0]
}

/// The servers of a text's provider, as scheme, host, port and path, with the name that is checked.
private func servers(_ text: String) throws -> [String] {
  try provider(text).servers.map {
    "\($0.scheme)://\($0.host.urlText):\($0.port)\($0.path) as \($0.tlsName)"
  }
}

private func warningLines(_ text: String) -> [String] {
  warnings("[[provider]]\n\(text)", environment: secrets)
}

private let tencent = "kind = \"tencent\"\n"
private let tencentHTTPS = tencent + "token_env = \"TOKEN\"\n"
private let tencentAES = tencent + "cipher = \"aes\"\nid = \"1234\"\nkey_env = \"AES\"\n"
private let tencentDES = tencent + "cipher = \"des\"\nid = \"1234\"\nkey_env = \"DES\"\n"
private let emas = "kind = \"emas\"\naccount_id = \"100000\"\n"
private let emasAES = emas + "api = \"v2\"\naes_secret_key_env = \"AES128\"\n"
private let table = "kind = \"table\"\n"
private let tableURL = table + "url = \"https://192.0.2.10/table.json\"\n"

// MARK: - What is read

@Test func `each cipher of Tencent has its own secret`() throws {
  #expect(try provider(tencentHTTPS).kind == .tencent(.https(token: Secret("4711"), id: nil)))
  #expect(try provider(tencentHTTPS + "id = \"7\"").kind == .tencent(.https(token: Secret("4711"), id: "7")))
  #expect(try provider(tencentAES).kind == .tencent(.aes(id: "1234", key: Secret("AesKey0123456789"))))
  #expect(try provider(tencentDES).kind == .tencent(.des(id: "1234", key: Secret("DesKey01"))))
}

@Test func `an EMAS account needs only its id`() throws {
  let expected = Configuration.EMASAccount(
    accountID: "100000", secretKey: nil, api: .v1, aesSecretKey: nil, aesMode: .cbc, region: .global, isScheduled: true)
  #expect(try provider(emas).kind == .emas(expected))
  #expect(try provider(emas).path == "/100000")
  #expect(warningLines(emas) == [])
}

@Test func `every key of an EMAS account is read`() throws {
  let text = emasAES + "secret_key_env = \"HEX\"\naes_mode = \"gcm\"\nregion = \"de\"\nschedule = false"
  let expected = Configuration.EMASAccount(
    accountID: "100000", secretKey: Secret("00ff"), api: .v2, aesSecretKey: Secret("000102030405060708090A0B0C0D0E0F"),
    aesMode: .gcm, region: .de, isScheduled: false)
  #expect(try provider(text).kind == .emas(expected))
  #expect(try provider(text).path == "/v2/d")
}

@Test func `an EMAS account may have parameters of its own`() throws {
  let text = emas + "parameters = { \"sdns-isp\" = \"mobile_1\", tags = \"a=b\" }"
  guard case .emas(let account) = try provider(text).kind else { return #expect(Bool(false)) }
  #expect(account.parameters == ["sdns-isp": "mobile_1", "tags": "a=b"])
  for refused in [
    "{ host = \"x\" }", "{ \"sdns-\" = \"x\" }", "{ \"sdns-a b\" = \"x\" }", "{ \"sdns-a\" = \"\" }",
    "{ \"sdns-a\" = \"\\\"\" }", "{ \"sdns-a\" = 1 }", "\"sdns-a\"",
    "{ \"sdns-a\" = \"\(String(repeating: "x", count: 995))\" }",
  ] {
    #expect(mistakes("[[provider]]\n" + emas + "parameters = \(refused)").count == 1, "\(refused)")
  }
}

@Test func `Tencent may demand requests that expire`() throws {
  #expect(
    try provider(tencentAES + "expiry = \"10m\"").kind
      == .tencent(.aes(id: "1234", key: Secret("AesKey0123456789")), expiry: .seconds(600)))
  #expect(try provider(tencentHTTPS + "expiry = \"0s\"").kind == .tencent(.https(token: Secret("4711"), id: nil)))
  #expect(mistakes("[[provider]]\n" + tencentHTTPS + "expiry = \"2d\"").count >= 1)
}

@Test func `a URL may be written as services print it`() throws {
  let text = "kind = \"doh\"\nurl = \"https://192.0.2.1/dns-query{?dns}\""
  #expect(try servers(text) == ["https://192.0.2.1:443/dns-query as 192.0.2.1"])
  for url in ["https://192.0.2.1/dns-query{?name}", "https://192.0.2.1/{?dns}/x", "https://192.0.2.1/d{?dns"] {
    #expect(mistakes("[[provider]]\nkind = \"doh\"\nurl = \"\(url)\"").count == 1)
  }
}

@Test func `a table has a URL or a file`() throws {
  let url = ProviderURL(text: "https://192.0.2.10/table.json")!
  #expect(try provider(tableURL).kind == .table(Configuration.TableSource(location: .url(url))))
  let text = tableURL + "host = \"Table.example.com\"\ninterval = \"30s\"\nttl = \"2m\""
  let expected = Configuration.TableSource(
    location: .url(url), host: "table.example.com", interval: .seconds(30), ttl: .seconds(120))
  #expect(try provider(text).kind == .table(expected))
  try withFile("{}") { _, path in
    let provider = try provider(table + "file = \"\(path)\"")
    #expect(provider.kind == .table(Configuration.TableSource(location: .file(path))))
    #expect(provider.servers.isEmpty)
  }
}

@Test func `the limits of a provider are read`() throws {
  let provider = try provider(
    """
    return_to_first = "5m"
    requests_per_second = 5
    units_per_day = 100000
    fallback_on_empty = false
    not_listed_ttl = "1m"
    """)
  #expect(provider.returnToFirst == .seconds(300))
  #expect(provider.requestsPerSecond == 5)
  #expect(provider.unitsPerDay == 100_000)
  #expect(!provider.fallbackOnEmpty)
  #expect(provider.notListedTTL == .seconds(60))
}

// MARK: - Where transfers go

private let resolved: [(text: String, servers: [String])] = [
  (tencentHTTPS, ["https://119.29.29.99:443/d as 119.29.29.99"]),
  (tencentAES, ["http://119.29.29.98:80/d as 119.29.29.98"]),
  (tencentDES, ["http://119.29.29.98:80/d as 119.29.29.98"]),
  (tencentAES + "scheme = \"https\"", ["https://119.29.29.99:443/d as 119.29.29.99"]),
  (
    tencentHTTPS + "servers = [\"192.0.2.1\", \"[2001:db8::1]:8443\", \"dns.example\"]",
    [
      "https://192.0.2.1:443/d as 192.0.2.1", "https://[2001:db8::1]:8443/d as 2001:db8::1",
      "https://dns.example:443/d as dns.example",
    ]
  ),
  (
    tencentHTTPS + "tls_name = \"dns.example\"\nservers = [\"192.0.2.1\"]",
    ["https://192.0.2.1:443/d as dns.example"]
  ),
  (
    emas + "region = \"sg\"",
    [
      "161.117.200.122", "47.74.222.190", "[240b:4000:f10::178]", "[240b:4000:f10::188]",
      "resolvers-sg.httpdns.aliyuncs.com",
    ].map { "https://\($0):443/100000 as resolvers.httpdns.aliyuncs.com" }
  ),
  (
    emasAES + "region = \"us\"\nfamily = \"ipv6\"\nscheme = \"http\"",
    [
      "http://[2404:2280:4000::2bb]:80/v2/d as 2404:2280:4000::2bb",
      "http://[2404:2280:4000::23e]:80/v2/d as 2404:2280:4000::23e",
      "http://resolvers-us.httpdns.aliyuncs.com:80/v2/d as resolvers-us.httpdns.aliyuncs.com",
    ]
  ),
  (
    emas + "servers = [\"127.0.0.1:8053\"]\ntls_name = \"emas.example\"",
    ["https://127.0.0.1:8053/100000 as emas.example"]
  ),
  (tableURL, ["https://192.0.2.10:443/table.json as 192.0.2.10"]),
  (tableURL + "host = \"table.example.com\"", ["https://192.0.2.10:443/table.json as table.example.com"]),
  (
    tableURL + "host = \"table.example.com\"\ntls_name = \"cdn.example\"",
    ["https://192.0.2.10:443/table.json as cdn.example"]
  ),
  (
    table + "url = \"https://cdn.example/t\"\nhost = \"table.example.com\"",
    ["https://cdn.example:443/t as cdn.example"]
  ),
  (
    tableURL + "host = \"table.example.com\"\nservers = [\"https://192.0.2.11/other.json\", \"192.0.2.12\"]",
    [
      "https://192.0.2.11:443/other.json as table.example.com",
      "https://192.0.2.12:443/table.json as table.example.com",
    ]
  ),
]

@Test(arguments: resolved)
func `the transfers of a service with an account go to its servers`(text: String, expected: [String]) throws {
  #expect(try servers(text) == expected)
}

@Test(arguments: Configuration.EMASRegion.allCases)
func `every region of EMAS has boot addresses of both families`(region: Configuration.EMASRegion) throws {
  let text = emas + "region = \"\(region.rawValue)\"\n"
  let all = try servers(text)
  let ipv4 = try servers(text + "family = \"ipv4\"")
  let ipv6 = try servers(text + "family = \"ipv6\"")
  // The last one is a name.
  #expect(ipv4.count >= 3 && ipv6.count >= 3)
  #expect(all == ipv4.dropLast() + ipv6)
  #expect(ipv6.dropLast().allSatisfy { $0.hasPrefix("https://[") })
}

@Test func `the list of EMAS servers is fetched over https, but from servers with a port of their own`() throws {
  let text = emas + "scheme = \"http\"\nservers = [\"192.0.2.1\", \"127.0.0.1:8053\"]"
  let servers = try provider(text).servers.map(\.ofSchedule)
  #expect(
    servers.map { "\($0.scheme)://\($0.host.urlText):\($0.port) as \($0.tlsName)" }
      == ["https://192.0.2.1:443 as resolvers.httpdns.aliyuncs.com", "http://127.0.0.1:8053 as 127.0.0.1"])
}

@Test func `the region global has the servers of mainland China`() throws {
  #expect(try servers(emas + "region = \"global\"") == servers(emas))
}

// MARK: - Warnings

@Test func `an encrypted answer over http causes no warning`() {
  #expect(warningLines(tencentAES) == [])
  #expect(
    warningLines(tencentDES).map { $0.hasPrefix("test.toml: provider[\"tencent\"].cipher: DES is broken") } == [true])
  #expect(warningLines(emasAES + "scheme = \"http\"") == [])
}

@Test(arguments: [
  (emas + "scheme = \"http\"", "scheme"), (emas + "api = \"v2\"\nscheme = \"http\"", "scheme"),
  (table + "url = \"http://192.0.2.10/table.json\"", "url"),
])
func `an unencrypted answer over http causes a warning`(text: String, key: String) {
  let kind = text.split(separator: "\"")[1]
  let start = "test.toml: provider[\"\(kind)\"].\(key): over http everyone"
  #expect(warningLines(text).map { $0.hasPrefix(start) } == [true])
}

@Test func `unneeded bootstrap resolvers cause a warning`() {
  let bootstrap = "bootstrap = [\"192.0.2.53\"]\n"
  let known = "bootstrap: not used: the addresses of this service are built in"
  for text in ["kind = \"alidns\"\n", "kind = \"doh\"\n", tencentHTTPS] {
    let kind = text.split(separator: "\"")[1]
    #expect(warningLines(text + bootstrap) == ["test.toml: provider[\"\(kind)\"].\(known)"])
  }
  let given = warningLines(bootstrap + "servers = [\"192.0.2.1\"]")
  #expect(given.map { $0.contains("bootstrap: not used: every server is an address") } == [true])
  #expect(warningLines(bootstrap + "servers = [\"192.0.2.1\", \"dns.example\"]") == [])
  // A list of servers may contain names, unless it is that of EMAS.
  #expect(warningLines(bootstrap + "schedule = true") == [])
  #expect(warningLines(bootstrap + "schedule = true\nservers = [\"192.0.2.1\"]") == [])
  #expect(warningLines(emas + bootstrap + "servers = [\"192.0.2.1\"]").map { $0.contains("not used") } == [true])
  #expect(warningLines(bootstrap + "kind = \"doh\"\nurl = \"https://dns.example/q\"") == [])
}
