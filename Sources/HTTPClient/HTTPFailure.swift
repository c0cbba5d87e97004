// HTTPFailure.swift -- why a transfer brought no response, from libcurl's codes.

import CCurl
import Glibc

/// Why a transfer brought no response.
public struct HTTPFailure: Error, Hashable, Sendable {
  /// The reasons that are told apart.
  public enum Kind: String, Hashable, CaseIterable, Sendable {
    /// The time was up.
    case timeout
    /// Too many transfers were in flight, or there was no descriptor for a connection; nothing was sent.
    case busy
    /// The server's machine refused the connection.
    case refused
    /// No way to the server, or none of its addresses may be used.
    case unreachable
    /// The certificate is not for this name, not valid, or of an authority that is not trusted.
    case certificate
    /// The certificate's key is none of the pinned ones.
    case pin
    /// TLS failed in another way.
    case tls
    /// The proxy did not connect us.
    case proxy
    /// The connection ended in the middle.
    case reset
    /// The server asked for fewer transfers (ENHANCE_YOUR_CALM, RFC 9113 section 7), now or a moment ago.
    case calm
    /// The content was longer than allowed.
    case tooLarge
    /// What came was not HTTP.
    case badHTTP
    /// The request was not fit to be sent.
    case badRequest
    /// The origin was closed.
    case cancelled
    /// libcurl failed in itself.
    case `internal`
  }

  /// The reason, to decide by.
  public var kind: Kind
  /// More of it for the log: one line without target, header fields or secrets.
  public var reason: String
  /// Whether the request may have reached the server.
  public var wasSent: Bool

  /// A failure of that kind.
  public init(_ kind: Kind, _ reason: String, wasSent: Bool = false) {
    self.kind = kind
    self.reason = reason
    self.wasSent = wasSent
  }
}

extension HTTPFailure: CustomStringConvertible {
  /// `kind: reason`.
  public var description: String { "\(kind.rawValue): \(reason)" }
}

extension HTTPFailure {
  /// Adds what is probably wrong in the configuration.
  ///
  /// - Parameters:
  ///   - detail: libcurl's own sentence.
  ///   - isFirst: whether the server has answered nothing yet.
  mutating func explain(_ code: CURLcode, scheme: HTTPServerAddress.Scheme, detail: String, isFirst: Bool) {
    switch (kind, scheme) {
    case (.tls, .https) where detail.contains("wrong version number") || detail.contains("packet length too long"):
      reason = "the server does not speak TLS; is its URL http://?"
    case (.reset, .http) where isFirst && (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR):
      reason += "; is it an https port?"
    case (.certificate, _) where detail.contains("issuer certificate") || detail.contains("self-signed certificate"):
      reason += "; if the server is your own, give its CA by ca_file"
    default: break
    }
  }

  /// What a code of libcurl means.
  ///
  /// - Parameters:
  ///   - systemError: the `errno` of a socket that was not made, or the last one of a failed connect; or 0.
  ///   - detail: libcurl's own sentence; used only where it can tell of nothing but connection and certificate.
  init(code: CURLcode, systemError: Int32, detail: String) {
    let general = String(cString: curl_easy_strerror(code))
    switch code {
    case CURLE_OPERATION_TIMEDOUT: self.init(.timeout, general)
    case CURLE_COULDNT_CONNECT:
      let reason = systemError == 0 ? general : String(cString: strerror(systemError))
      switch systemError {
      case ECONNREFUSED: self.init(.refused, reason)
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: self.init(.busy, reason)
      default: self.init(.unreachable, reason)
      }
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_INTERFACE_FAILED: self.init(.unreachable, general)
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
      self.init(.certificate, detail.isEmpty ? general : detail)
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH: self.init(.pin, general)
    case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_USE_SSL_FAILED,
      CURLE_SSL_CACERT_BADFILE:
      self.init(.tls, detail.isEmpty ? general : detail)
    case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: self.init(.proxy, general)
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM:
      self.init(.reset, general)
    case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR:
      self.init(.badHTTP, general)
    case CURLE_ABORTED_BY_CALLBACK: self.init(.cancelled, general)
    default: self.init(.internal, general)
    }
  }
}
