// ProviderNamesTests.swift -- the names of a file's providers, which a shell completes.

import Configuration
import Testing

@Test(arguments: [
  ("", ["alidns"]), ("listen.workers = 2", ["alidns"]),
  ("[[provider]]\nname = \"one\"\n[[provider]]\nkind = \"doh\"\n[[provider]]", ["one", "doh", "alidns"]),
  ("[[provider]]\nkind = \"tencent\"\ntoken_file = \"/no/such/file\"\nunknown = 1", ["tencent"]),
  ("[[provider]]\nname = \"a b\"", []), ("provider = 1", []), ("no TOML", []),
])
func `the names of a file's providers are found despite mistakes elsewhere`(text: String, names: [String]) throws {
  try withFile(text) { _, path in
    #expect(Configuration.providerNames(path: path, environment: { _ in nil }) == names)
  }
}

@Test func `the names of providers in the environment replace those of the file`() throws {
  try withFile("[[provider]]\nname = \"one\"") { _, path in
    let names = Configuration.providerNames(path: path) { $0 == "HTTPDNSD_PROVIDER" ? "json doh" : nil }
    #expect(names == ["json", "doh"])
  }
}

@Test func `a file that is not there has no names of providers`() {
  #expect(Configuration.providerNames(path: "/no/such/file", environment: { _ in nil }) == [])
}
