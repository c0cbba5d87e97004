// TestAuthority.swift -- the certificate of an authority that signs for tests only; valid until 2126.

/// A certificate authority that no other program trusts.
public enum TestAuthority {
  /// Its certificate, in PEM.
  public static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBijCCAS+gAwIBAgIUMU0EB051gczqD9iyxx5C6HMXikwwCgYIKoZIzj0EAwIw
    GTEXMBUGA1UEAwwOVGVzdCBhdXRob3JpdHkwIBcNMjYxMTIxMDA1MDMwWhgPMjEy
    NjEwMjgwMDUwMzBaMBkxFzAVBgNVBAMMDlRlc3QgYXV0aG9yaXR5MFkwEwYHKoZI
    zj0CAQYIKoZIzj0DAQcDQgAES18NOggj485ZmoCC3yYEHiVLJ8IwRPOeIhEY5ZoF
    ZGwsCCgOywppSMwEv6e5FWlU2HVXB/ayS2rAvgMRQnsVTaNTMFEwHQYDVR0OBBYE
    FIU4SAaL3B2VQGbB/rQhkYlkLBjFMB8GA1UdIwQYMBaAFIU4SAaL3B2VQGbB/rQh
    kYlkLBjFMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAIZqvrZl
    3uTjbU6kAFpCaA5vo0tkoduveP9mWlY69/HQAiEApojgGkgfGdw+s4+A0TfKlBf/
    FzTyiXb4HxDS4PAplt0=
    -----END CERTIFICATE-----

    """
}
