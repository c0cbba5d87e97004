// HTTPFailure.swift -- the reason why a transfer has no response.

import CCurl
import Glibc
import Streams

/// The reason why a transfer has no response.
public struct HTTPFailure: Error, Hashable, Sendable {
  /// The kinds of failure that callers distinguish.
  public enum Kind: String, Hashable, CaseIterable, Sendable {
    /// The transfer's time expired.
    case timeout
    /// Too many transfers were in flight, or no descriptor or connection was free.
    case busy
    /// The server's host refused the connection.
    case refused
    /// No route to the server, or no address of an allowed family.
    case unreachable
    /// The certificate is for another name, not valid, or from an untrusted authority.
    case certificate
    /// The certificate's key matches no pin.
    case pin
    /// TLS failed in another way.
    case tls
    /// The proxy did not connect to the server.
    case proxy
    /// The connection was closed during the transfer.
    case reset
    /// The server asked for fewer transfers (ENHANCE_YOUR_CALM, RFC 9113 section 7), now or shortly before.
    case calm
    /// The content exceeds the limit.
    case tooLarge
    /// The server's reply is not HTTP.
    case badHTTP
    /// The request is malformed and was not sent.
    case badRequest
    /// The origin was closed, or the transfer made room for others: no failure of the server.
    case cancelled
    /// The client itself failed: no memory, or a library refused what it was given.
    case `internal`

    /// The label of the metrics and of JSON, in snake case.
    public var label: String {
      switch self {
      case .tooLarge: "too_large"
      case .badHTTP: "bad_http"
      case .badRequest: "bad_request"
      case .timeout, .busy, .refused, .unreachable, .certificate, .pin, .tls, .proxy, .reset, .calm, .cancelled,
        .internal:
        rawValue
      }
    }
  }

  /// The kind of failure, for decisions.
  public var kind: Kind
  /// Details for the log: one line without target, header fields or secrets.
  public var reason: String
  /// How often the request was put on the wire, repeats by this client included.
  public var timesSent: Int
  /// Whether the request may have reached the server.
  public var wasSent: Bool { timesSent > 0 }
  /// Whether this machine has no route to the server, or no address of its family.
  public private(set) var hasNoRoute = false

  /// `reason` must not contain secrets.
  public init(_ kind: Kind, _ reason: String, wasSent: Bool = false) {
    self.kind = kind
    self.reason = reason
    timesSent = wasSent ? 1 : 0
  }
}

extension HTTPFailure: CustomStringConvertible {
  /// `kind: reason`.
  public var description: String { "\(kind.rawValue): \(reason)" }
}

extension HTTPFailure {
  static let calm = HTTPFailure(.calm, "the server asked for fewer transfers")
  /// The connection ended, and the owner of the transfer does not let it be sent once more.
  static let notRepeated = HTTPFailure(.reset, "the connection ended, and the request may not be sent once more")
  /// Its clients had been answered, and it waited, or another transfer waited for its place.
  static let noClients = HTTPFailure(.cancelled, "the clients have been answered")

  /// A failed system call for a connection.
  ///
  /// - Parameter systemError: its `errno`.
  init(connecting systemError: Int32) {
    let reason = String(cString: strerror(systemError))
    switch systemError {
    case ECONNREFUSED: self.init(.refused, reason)
    case EMFILE, ENFILE, ENOBUFS, ENOMEM: self.init(.busy, reason)
    default: self.init(.unreachable, reason)
    }
    hasNoRoute = [ENETUNREACH, EAFNOSUPPORT, EADDRNOTAVAIL].contains(systemError)
  }

  /// A TLS handshake that has failed.
  ///
  /// - Parameter name: the server's.
  init(handshake failure: TLSFailure, for name: String) {
    switch failure {
    case .otherName: self.init(.certificate, "no alternative certificate subject name matches '\(name)'")
    case .certificate(let reason, _): self.init(.certificate, "SSL certificate problem: \(reason)")
    case .error(let code): self.init(.tls, TLSFailure.text(of: code))
    case .closed: self.init(.tls, "the server closed the connection during the TLS handshake")
    }
    explain(scheme: .https, detail: reason, isFirst: false)
  }

  /// Whether TLS did not succeed.
  var isOfHandshake: Bool { kind == .certificate || kind == .pin || kind == .tls }

  /// Whether another address of the server may do better than the one at which a handshake failed so.
  var isOfAddress: Bool { kind == .timeout || kind == .refused || kind == .unreachable || isOfHandshake }

  /// The server has no address of a family that may be used.
  static let noAddress = {
    var failure = HTTPFailure(.unreachable, "the server has no address of the family that may be used")
    failure.hasNoRoute = true
    return failure
  }()

  /// Whether the server has a valid certificate, but for another name.
  package var isForAnotherName: Bool {
    kind == .certificate
      && (reason.contains("no alternative certificate subject name") || reason.contains("does not match"))
  }

  /// Whether the server seems to serve the other scheme at its port.
  package var isForAnotherScheme: Bool {
    reason.hasSuffix(HTTPFailure.httpPort) || reason.hasSuffix(HTTPFailure.httpsPort)
  }

  private static let httpPort = "; is it an http port?"
  private static let httpsPort = "; is it an https port?"

  /// Adds a hint about a probable mistake in the configuration.
  ///
  /// - Parameters:
  ///   - detail: the error message of libcurl or OpenSSL.
  ///   - isFirst: whether the server closed the connection and has not answered yet.
  mutating func explain(scheme: HTTPServerAddress.Scheme, detail: String, isFirst: Bool) {
    switch (kind, scheme) {
    case (.tls, .https) where detail.contains("wrong version number") || detail.contains("packet length too long"):
      reason = "the server does not speak TLS\(HTTPFailure.httpPort)"
    case (.tls, .https) where detail.contains("asn1 encoding routines"):
      reason = "the certificate has a wrong signature; `httpdnsd reload` reads a ca_file that was replaced"
    case (.reset, .http) where isFirst: reason += HTTPFailure.httpsPort
    case (.certificate, _) where detail.contains("issuer certificate") || detail.contains("self-signed certificate"):
      reason += "; if the server is your own, give its CA with ca_file"
    default: break
    }
  }

  /// Translates a code of libcurl.
  ///
  /// - Parameters:
  ///   - systemError: the `errno` of the failed socket() call or of the last failed connect; or 0.
  ///   - detail: libcurl's error message, used only for TLS and certificate errors, where it contains no request data.
  init(code: CURLcode, systemError: Int32, detail: String) {
    let general = String(cString: curl_easy_strerror(code))
    switch code {
    case CURLE_OPERATION_TIMEDOUT: self.init(.timeout, general)
    case CURLE_COULDNT_CONNECT:
      if systemError == 0 { self.init(.unreachable, general) } else { self.init(connecting: systemError) }
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
