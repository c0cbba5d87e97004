// ListLineTests.swift -- every form of a line: what it selects, and why it is left out.

import Testing

@testable import Lists

@Suite struct `A line of a list` {
  @Test(arguments: [
    // AdGuard's filters.
    ("||x.example^", "subtree x.example"), ("||x.example", "subtree x.example"),
    ("||x.example^$important", "subtree x.example"), ("||x.example$important", "subtree x.example"),
    ("@@||x.example^", "exception x.example"), ("@@||x.example", "exception x.example"),
    ("@@||x.example^$important", "exception x.example"), ("||com^", "subtree com"),
    ("||x.example^ # why", "subtree x.example"), ("||x.example^|", "subtree x.example"),
    ("||x.example|", "subtree x.example"),
    ("@@||x.example^|", "exception x.example"), ("@@||x.example^|$important", "exception x.example"),
    // dnsmasq.
    ("server=/x.example/114.114.114.114", "subtree x.example"), ("server=/x.example/", "subtree x.example"),
    ("server=/x.example/192.0.2.1#5353 # why", "subtree x.example"),
    ("address=/x.example/0.0.0.0", "subtree x.example"), ("address=/x.example/#", "subtree x.example"),
    ("local=/x.example/", "subtree x.example"), ("ipset=/x.example/set,other", "subtree x.example"),
    ("nftset=/x.example/4#inet#fw#domestic4,6#inet#fw#domestic6", "subtree x.example"),
    ("server=/a.example/b.example/c.example/192.0.2.1", "subtree a.example, subtree b.example, subtree c.example"),
    ("SERVER=/X.Example/192.0.2.1", "subtree x.example"), ("server=/*.x.example/192.0.2.1", "subtree x.example"),
    ("server=/.x.example/192.0.2.1", "subtree x.example"),
    // Hosts files.
    ("0.0.0.0 x.example", "alone x.example"), ("127.0.0.1\tx.example", "alone x.example"),
    (":: x.example", "alone x.example"), ("::1 \t x.example", "alone x.example"),
    ("0.0.0.0 a.example b.example\tc.example", "alone a.example, alone b.example, alone c.example"),
    ("0.0.0.0 x.example # why", "alone x.example"), ("0.0.0.0\r\tx.example\r\r", "alone x.example"),
    ("127.0.0.1 localhost", "alone localhost"),
    // v2fly's texts.
    ("domain:x.example", "subtree x.example"), ("full:x.example", "alone x.example"),
    ("x.example @ads", "subtree x.example"), ("x.example @!cn @ads", "subtree x.example"),
    ("full:x.example @cn &other", "alone x.example"), ("domain:x.example:@cn", "subtree x.example"),
    ("full:x.example:@ads,@cn", "alone x.example"), ("x.example:@cn", "subtree x.example"),
    ("x.example &other # why", "subtree x.example"), ("DOMAIN:X.example @ADS", "subtree x.example"),
    // Clash's rules.
    ("DOMAIN-SUFFIX,x.example", "subtree x.example"), ("DOMAIN-SUFFIX,x.example,DIRECT", "subtree x.example"),
    ("DOMAIN,x.example", "alone x.example"), ("DOMAIN,x.example,Proxy,no-resolve", "alone x.example"),
    ("DOMAIN,x.example,##", "alone x.example"),
    ("DOMAIN-SUFFIX, x.example , DIRECT", "subtree x.example"), ("domain-suffix,x.example", "subtree x.example"),
    ("  - DOMAIN-SUFFIX,x.example", "subtree x.example"), ("  - '+.x.example'", "subtree x.example"),
    ("- \"x.example\"", "subtree x.example"), ("- '+.x.example' # why", "subtree x.example"),
    ("'x.example'", "subtree x.example"), ("-\tx.example", "subtree x.example"), ("+.x.example", "subtree x.example"),
    // Bare names.
    ("x.example", "subtree x.example"), ("*.x.example", "subtree x.example"), (".x.example", "subtree x.example"),
    ("=x.example", "alone x.example"), ("X.EXAMPLE", "subtree x.example"), ("x.example.", "subtree x.example"),
    (" \t x.example \t ", "subtree x.example"), ("cn", "subtree cn"), ("a_b.-c-.example", "subtree a_b.-c-.example"),
    ("_dmarc.x.example", "subtree _dmarc.x.example"), ("1.2.0.192.in-addr.arpa", "subtree 1.2.0.192.in-addr.arpa"),
    ("123.example", "subtree 123.example"), ("163.com", "subtree 163.com"), ("1e100", "subtree 1e100"),
    ("xn--fiqs8s", "subtree xn--fiqs8s"), ("4.cn # 5.cn", "subtree 4.cn"), ("x.example\t# why", "subtree x.example"),
  ])
  func `a line selects what its form says`(line: String, names: String) {
    let reading = Reading(line)
    #expect(reading.text == names)
    #expect(reading.leftOut.total == 0 && reading.refusal == nil)
  }

  @Test(arguments: [
    "", " ", "\t \r", "# x.example", "#x.example", "   # x.example", "! x.example", "!x.example", "[Adblock Plus 2.0]",
    "[/x.example/]192.0.2.1", "payload:", " payload: ", "payload: # rules", "PAYLOAD:", "##.banner", "''", "!", "-",
    "- # x", "-\t''", "- payload:",
    "#", "[",
  ])
  func `a line that says nothing selects nothing and is not counted`(line: String) {
    let reading = Reading(line + "\ny.example")
    #expect(reading.text == "subtree y.example")
    #expect(reading.leftOut == LeftOut())
  }

  @Test(arguments: [
    ("keyword:ads", LeftOutReason.keyword), ("DOMAIN-KEYWORD,ads,REJECT", .keyword),
    ("regexp:^ads[0-9]+\\.", .regularExpression), ("/^ads[0-9]+\\./", .regularExpression),
    ("/ads/$important", .regularExpression), ("@@/ads/", .regularExpression), ("/ads$/", .regularExpression),
    ("/ads$/$denyallow=x.example", .regularExpression),
    ("/a/b$/$client=/x/", .regularExpression), ("URL-REGEX,^http", .regularExpression),
    ("DOMAIN-REGEX,^ads", .regularExpression),
    ("*", .wildcard), ("a*.example", .wildcard), ("a.*.example", .wildcard), ("x.*", .wildcard),
    ("*x.example", .wildcard),
    ("||a*b.example^", .wildcard), ("||*.example^", .wildcard), ("*.*.example", .wildcard), ("0.0.0.0 *", .wildcard),
    ("DOMAIN-WILDCARD,*.x.example", .wildcard), ("full:*.x.example", .wildcard), ("DOMAIN,*.x.example", .wildcard),
    ("=*.x.example", .wildcard), ("server=/a*/192.0.2.1", .wildcard),
    ("||x.example^$client=192.0.2.7", .modifier), ("||x.example^$denyallow=y.example", .modifier),
    ("@@||x.example^$dnstype=AAAA", .modifier), ("||x.example^$important,dnstype=A", .modifier),
    ("||x.example^$", .modifier), ("x.example$dnsrewrite=192.0.2.1", .modifier), ("||x.example^$badfilter", .modifier),
    ("x.example##.banner", .cosmetic), ("x.example#@#.banner", .cosmetic), ("x.example##.a > .b", .cosmetic),
    ("a.example,b.example##.banner", .cosmetic), ("x.example#?#.a:has(.b)", .cosmetic), ("x.example#$#body", .cosmetic),
    ("x.example#%#alert(1)", .cosmetic), ("~x.example##.banner", .cosmetic), ("x.example##.a, .b", .cosmetic),
    ("x.example##a[href=/b]", .cosmetic),
    ("x.example##.a,.b", .cosmetic), ("x.*##.a", .cosmetic), ("x.*,y.example#?#.a:has(.b)", .cosmetic),
    ("x.example$ctag=/b", .modifier), ("x.example$ctag=a,b", .modifier),
    ("x.example#@$#body", .cosmetic),
    ("x.example#@?#.a", .cosmetic),
    ("x.example#$?#.a", .cosmetic), ("x.example#@$?#.a", .cosmetic), ("x.example#@%#alert", .cosmetic),
    ("||x.example##.a", .cosmetic),
    ("192.0.2.1 x.example", .otherAddress), ("255.255.255.255 broadcasthost", .otherAddress),
    ("fe80::1 x.example", .otherAddress), ("fe80::1%lo0 localhost", .otherAddress),
    ("::ffff:192.0.2.1 x.example", .otherAddress), ("ff02::1 ip6-allnodes", .otherAddress),
    ("0.0.0.1 x.example", .otherAddress),
    ("192.0.2.0/24", .network), ("2001:db8::/32", .network), ("IP-CIDR,192.0.2.0/24,no-resolve", .network),
    ("IP-CIDR6,2001:db8::/32", .network), ("GEOIP,CN,DIRECT", .network), ("IP-ASN,64496", .network),
    ("- '192.0.2.0/24'", .network), ("||192.0.2.0/24^", .network),
    ("include:geolocation-cn", .include), ("include:apple @cn", .include), ("geosite:cn", .include),
    ("GEOSITE,cn,DIRECT", .include), ("RULE-SET,cn,DIRECT", .include), ("DOMAIN-SET,https://x.example/,P", .include),
    ("AND,((DOMAIN,x),(NETWORK,UDP)),P", .include),
    ("192.0.2.1", .address), ("2001:db8::1", .address), ("::1", .address), ("0.0.0.0", .address),
    ("||192.0.2.1^", .address), ("0.0.0.0 0.0.0.0", .address), ("full:192.0.2.1", .address), ("fe80::1%lo0", .address),
    ("300.1.1.1", .address),
    ("::", .address),
    (".", .noName), ("..", .noName), ("a..example", .noName), ("x.example..", .noName), ("..x.example", .noName),
    ("/", .noName), ("/x", .noName), ("/ads/banner.js", .noName), ("//", .noName), ("/x$important", .noName),
    ("||", .noName), ("||^", .noName), ("|x.example^", .noName),
    ("@@|x.example^|", .noName), ("||x.", .noName), ("||x.|", .noName), ("||x.example|^", .noName),
    ("||x.example^^", .noName), ("|||x.example^", .noName), ("||x.^", .noName), ("@@||x.^|", .noName),
    (".x.example^", .noName),
    ("*.x.example^", .noName), ("-x.example^", .noName), ("@x||y.example^", .noName), ("@", .noName), ("@@", .noName),
    ("@@x.example", .noName), ("=", .noName), ("=.x.example", .noName), ("full:+.x.example", .noName), ("+", .noName),
    ("+x.example", .noName), ("*.", .noName), ("+.", .noName),
    ("x example", .noName), ("x.example y.example", .noName), ("bücher.example", .noName), ("x.example/path", .noName),
    ("||x.example/path", .noName), ("https://x.example/", .noName), ("x.example:443", .noName), ("face.de:80", .noName),
    ("dead:beef x.example", .noName), ("123", .noName), ("192.0.2", .noName),
    ("x.123", .noName), ("1234567 x.example", .noName), ("1..2.3.4", .noName),
    ("(x.example)", .noName),
    ("server=192.0.2.1", .noName), ("server=/x.example", .noName), ("server=//192.0.2.1", .noName),
    ("server=/#/192.0.2.1", .noName), ("conf-dir=/etc/dnsmasq.d", .noName), ("domain:", .noName), ("full:", .noName),
    ("DOMAIN-SUFFIX,", .noName), ("DOMAIN,", .noName), ("PROCESS-NAME,x", .noName), ("MATCH,Proxy", .noName),
    (",", .noName),
    ("domain:x.example y.example", .noName), ("x.example @ads y", .noName), ("rules:", .noName), (":", .noName),
    ("x\u{1}.example", .noName), ("'x.example", .noName), ("\"", .noName), ("{\"x\": 1}", .noName),
    ("x;example", .noName), ("x#y#z.example", .noName), ("x.example#why", .noName),
  ])
  func `a line that cannot be used is left out for its reason`(line: String, reason: LeftOutReason) {
    let reading = Reading("y.example\n" + line)
    #expect(reading.text == "subtree y.example")
    #expect(reading.reason == reason && reading.leftOut.total == 1)
    #expect(reading.leftOut.first(reason)?.number == 2)
    #expect(Reading(line).refusal == .empty)
  }

  @Test(arguments: [
    ("0.0.0.0 a.example * b.example", "alone a.example, alone b.example", LeftOutReason.wildcard),
    ("server=/a.example/*b/c.example/", "subtree a.example, subtree c.example", .wildcard),
    ("127.0.0.1 0.0.0.0 x.example *", "alone x.example", .address),
  ])
  func `the names of a line are used though one is left out, which counts once`(
    line: String, names: String, reason: LeftOutReason
  ) {
    let reading = Reading(line)
    #expect(reading.text == names)
    #expect(reading.reason == reason && reading.leftOut.total == 1)
  }
}
