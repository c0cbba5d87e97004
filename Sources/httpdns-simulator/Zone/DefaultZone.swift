// DefaultZone.swift -- the built-in zone: a copy of Config/demo.zone.

/// The text of Config/demo.zone; a test compares the two.
let defaultZoneText = ##"""
  ; demo.zone -- the zone that httpdns-simulator answers from when it is given none; a start for one of your own.
  ;
  ; name [TTL] [IN] TYPE RDATA. Names inside RDATA are written in full, with the final dot.
  ; Beside it the simulator answers synthetic names below example. (n1.bench.example, ttl-0.example, many-60.example,
  ; chain-5.example, txt-4000.example, nodata.example, servfail.example, refused.example).

  $TTL 300

  $ORIGIN example.com.
  @        900   SOA    ns1.example.com. hostmaster.example.com. (
                        2024010101 ; serial
                        3600 600 604800
                        60 )       ; the TTL of negative responses
  @              NS     ns1.example.com.
  @              A      192.0.2.1
  @              AAAA   2001:db8::1
  @              MX     10 mx.example.com.
  @              MX     20 mx2.example.com.
  @              TXT    "v=spf1 mx -all"
  @              CAA    0 issue "ca.example.net"
  @              HTTPS  1 . alpn=h3,h2 ipv4hint=192.0.2.1
  ns1            A      192.0.2.53
  mx             A      192.0.2.25
  mx2            AAAA   2001:db8::25
  www            A      192.0.2.1
  www            A      192.0.2.2
  www            AAAA   2001:db8::1
  v4only   60    A      192.0.2.4
  v6only   60    AAAA   2001:db8::6
  alias    600   CNAME  www.example.com.
  alias2   600   CNAME  alias.example.com.
  dangling       CNAME  nowhere.example.com.
  outside        CNAME  www.example.net.
  loop-a         CNAME  loop-b.example.com.
  loop-b         CNAME  loop-a.example.com.
  long           TXT    "the first of several strings" "the second one, with \"quotes\" and a \\ in it" "the third"
  *.wild         A      192.0.2.99
  *.wild         TXT    "from the wildcard"
  _sip._tcp      SRV    10 60 5060 sip.example.com.
  sip            NAPTR  100 10 "u" "E2U+sip" "!^.*$!sip:info@example.com!" .
  secure         DS     12345 13 2 49fd46e6c4b45c55d4ac49fd46e6c4b45c55d4ac49fd46e6c4b45c55d4acabcd
  opaque         TYPE65534 \# 4 c0000201

  $ORIGIN example.net.
  @        900   SOA    ns1.example.net. hostmaster.example.net. 2024010101 3600 600 604800 30
  @              A      198.51.100.1
  www      30    A      198.51.100.80
  www      30    AAAA   2001:db8:1::80

  $ORIGIN example.org.
  @        900   SOA    ns1.example.org. hostmaster.example.org. 2024010101 3600 600 604800 60
  @              A      203.0.113.1
  xn--fiqs8s     A      203.0.113.86

  """##
