// ForwardedClientTests.swift -- the client in X-Forwarded-For.

import Frontend
import Testing

@Suite struct ForwardedClientTests {
  @Test(arguments: [
    ("192.0.2.1", "192.0.2.1"), ("2001:DB8::1", "2001:db8::1"), ("::ffff:192.0.2.1", "192.0.2.1"),
    (" 192.0.2.1\t", "192.0.2.1"), ("10.0.0.1, 192.0.2.1", "192.0.2.1"), ("10.0.0.1,192.0.2.1", "192.0.2.1"),
    ("unknown, , \"x\", 192.0.2.1", "192.0.2.1"), ("\u{0}, 192.0.2.1", "192.0.2.1"),
  ]) func `the last element counts, whatever stands before it`(value: String, address: String) {
    #expect(ForwardedClient.last(in: value.utf8)?.description == address)
  }

  @Test(arguments: [
    "", " ", ",", "192.0.2.1,", "192.0.2.1, ", "unknown", "_hidden", "dns.example", "192.0.2.1:80", "[2001:db8::1]",
    "[2001:db8::1]:80", "\"192.0.2.1\"", "192.0.2", "192.0.2.256", "192.0.2.01", "192.0.2.1/32", "fe80::1%eth0",
    "for=192.0.2.1", "192.0.2.1 192.0.2.2", "192.0.2.1\u{0}", "192.0.2.1\r", "192.0.2.1;", "192.0.2.1, unknown", "ü",
  ]) func `a last element that is not an address alone is unusable`(value: String) {
    #expect(ForwardedClient.last(in: value.utf8) == nil)
  }
}
