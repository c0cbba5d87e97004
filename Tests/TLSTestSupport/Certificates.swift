// Certificates.swift -- an authority, a server's certificate of it, and an authority that signed nothing; valid until 2125.

import TestSupport

/// Certificates and a key in PEM.
package enum Certificates {
  /// Signed `server`.
  package static let authority = TestAuthority.certificate

  /// Signed nothing that is used here.
  package static let otherAuthority = """
    -----BEGIN CERTIFICATE-----
    MIIBizCCATGgAwIBAgIUKcq7yzBdIxlBMKrFxafFuD8hqiswCgYIKoZIzj0EAwIw
    GjEYMBYGA1UEAwwPT3RoZXIgYXV0aG9yaXR5MCAXDTI2MTEyMTAwNTAzMFoYDzIx
    MjYxMDI4MDA1MDMwWjAaMRgwFgYDVQQDDA9PdGhlciBhdXRob3JpdHkwWTATBgcq
    hkjOPQIBBggqhkjOPQMBBwNCAASvOPsFlk2TPA7Q8CDDbhmF5MnWzLHdbnf4foK8
    OlEj4TL+Z6s3TSoVD/oCpGScGL000oKDyFMl215rTv3qZ/W3o1MwUTAdBgNVHQ4E
    FgQUq7EnCaSslQ+KOwHLfjLhOxK5V9wwHwYDVR0jBBgwFoAUq7EnCaSslQ+KOwHL
    fjLhOxK5V9wwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiAoNzgQ
    iQPlsy+qcG3ICpOsiq8kuRy5GM6XbsMV7BPL2gIhAODFLfoXdvoDXbbV1OCJHpAT
    WjJVMqDMp4carX9aZLhU
    -----END CERTIFICATE-----

    """

  /// For `dns.test`, 127.0.0.1 and ::1.
  package static let server = """
    -----BEGIN CERTIFICATE-----
    MIIBnzCCAUWgAwIBAgIUR1MuqLAcdNHdX5H4OfAmApdqMq4wCgYIKoZIzj0EAwIw
    GTEXMBUGA1UEAwwOVGVzdCBhdXRob3JpdHkwIBcNMjYxMTIxMDA1MDMwWhgPMjEy
    NjEwMjgwMDUwMzBaMBMxETAPBgNVBAMMCGRucy50ZXN0MFkwEwYHKoZIzj0CAQYI
    KoZIzj0DAQcDQgAE4iXK5iBSzHuhG6tc1LkSRRcGJCf9AXi3eRddDAVKMa00yxA/
    JUROaTDUjHKJM2k1kGk+Ap6gykJS3zsxa9tIHKNvMG0wKwYDVR0RBCQwIoIIZG5z
    LnRlc3SHBH8AAAGHEAAAAAAAAAAAAAAAAAAAAAEwHQYDVR0OBBYEFJ/H0lgIMgr2
    Yd46Ok/GKQuRv9aVMB8GA1UdIwQYMBaAFIU4SAaL3B2VQGbB/rQhkYlkLBjFMAoG
    CCqGSM49BAMCA0gAMEUCIQC1T8UpbU5gqdNq7cxnQnWkRuhE1SAM9Z2vgm12fzwH
    ugIgOzA26TRCJKbnt2NlrnkqbFk0fg66hgBau+R222k7M7g=
    -----END CERTIFICATE-----

    """

  /// The key of `server`; it protects nothing.
  package static let serverKey = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZ+e3I4JrK4Gk5fkA
    UhHavFknXoVt3uOtG8OFT1kCAgmhRANCAATiJcrmIFLMe6Ebq1zUuRJFFwYkJ/0B
    eLd5F10MBUoxrTTLED8lRE5pMNSMcokzaTWQaT4CnqDKQlLfOzFr20gc
    -----END PRIVATE KEY-----

    """

  package static let serverPin = "sha256//ThiQlQ7jZBBPeeTS78cbKgMxl2t9WPSmQXf/C+55S2I="
}
