// CurlHandshake.swift -- a connection that libcurl opens and closes without a request: TCP, the proxy's tunnel, TLS.

import CCurl

/// An easy handle that only connects. Owned by its carrier; loop thread only.
final class CurlHandshake {
  /// libcurl's handle, owned.
  let easy: UnsafeMutableRawPointer
  let handshake: Handshake

  init?(
    _ handshake: Handshake, _ settings: OriginSettings, _ order: ConnectionOrder, carrier: UnsafeMutableRawPointer
  ) {
    guard let easy = curl_easy_init() else { return nil }
    self.easy = easy
    self.handshake = handshake
    configure(easy, settings, order, carrier: carrier)
    easy.set(CURLOPT_CONNECT_ONLY, 1)
    easy.set(CURLOPT_PIPEWAIT, 0)
    easy.set(CURLOPT_XFERINFODATA, Unmanaged.passUnretained(settings).toOpaque())
    _ = ccurl_setopt_progress_callback(easy, handshakeHasProgress)
  }

  deinit { curl_easy_cleanup(easy) }

  /// Reports how libcurl ended it.
  func ended(_ code: CURLcode) {
    guard code != CURLE_OK else { return handshake.succeed() }
    let systemError = Int32(easy.long(CURLINFO_OS_ERRNO))
    handshake.fail(easy.proxyFailure(code) ?? HTTPFailure(code: code, systemError: systemError, detail: ""))
  }
}

private func handshakeHasProgress(
  _ settings: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t, _: curl_off_t
) -> Int32 {
  Unmanaged<OriginSettings>.fromOpaque(settings!).takeUnretainedValue().mayStep() ? 0 : 1
}
