// StoreFault.swift -- why there is no connection to the store, and the meaning of the store's error replies.

import Glibc
import Streams

/// Why a connection could not be made, or ended.
enum StoreFault: Error, Hashable {
  /// No address, or no address accepts a connection.
  case unreachable(String)
  /// The peer accepted the connection but did not behave like a store.
  case unusable(String)
  /// The TLS handshake failed, or the TLS settings are invalid.
  case tls(String)
  /// A connection in use ended.
  case lost(String)
  /// A malformed or unexpected reply.
  case nonsense(String)
  /// The store refused AUTH, SELECT or the first PING.
  case refused(command: String, StoreError)

  /// - Parameter code: the `errno` of a failed system call.
  static func unreachable(_ code: Int32) -> StoreFault { .unreachable(words(code)) }

  /// A TLS handshake that has failed.
  ///
  /// - Parameter name: the name that the certificate must have.
  init(handshake failure: TLSFailure, for name: String) {
    switch failure {
    case .otherName: self = .tls("the certificate is not for '\(name)'")
    case .certificate(let reason, isUntrusted: true):
      self = .tls("the certificate's issuer is not trusted (\(reason)); set fleet.ca_file")
    case .certificate(let reason, isUntrusted: false): self = .tls("the certificate is not accepted: \(reason)")
    case .error(let code) where !failure.isClosed: self = .tls(TLSFailure.reason(of: code))
    case .error, .closed: self = .tls("the store closed the connection during the handshake")
    }
  }

  /// Why a connection has ended.
  static func reason(of failure: StreamFailure) -> String {
    switch failure {
    case .system(let code): return words(code)
    case .tls(let failure):
      if case .error(let code) = failure, !failure.isClosed { return TLSFailure.reason(of: code) }
    case .closed, .handshake, .timeout: break
    }
    return "closed by the store"
  }

  /// The text for log lines.
  var text: String {
    switch self {
    case .unreachable(let reason): "cannot connect: \(reason)"
    case .unusable(let reason): "connected, but \(reason)"
    case .tls(let reason): "TLS failed: \(reason)"
    case .lost(let reason): "connection lost: \(reason)"
    case .nonsense(let reason): "reply not understood: \(reason)"
    case .refused(_, let error) where error.kind == .unready: "not ready: \(error.text)"
    case .refused(let command, let error): "\(command) was refused: \(error.text)"
    }
  }

  private static func words(_ code: Int32) -> String {
    var text = [CChar](repeating: 0, count: 128)
    guard let message = strerror_r(code, &text, text.count) else { return "error \(code)" }
    return String(cString: message).lowercased()
  }
}

/// An error reply of the store.
struct StoreError: Hashable {
  /// The error without a full stop at its end, since log lines continue after it.
  let text: String
  /// What the error means for later commands.
  let kind: Kind

  enum Kind: Hashable {
    /// The connection is not authenticated, or no longer.
    case identity
    /// The user lacks the permission for this command or its key.
    case permission
    /// Writes fail; reads do not.
    case writes
    /// The store temporarily refuses everything.
    case unready
    /// The store is part of a Redis Cluster.
    case cluster
    /// Only this command failed.
    case command
  }

  init(_ text: String) {
    self.text = text.hasSuffix(".") ? String(text.dropLast()) : text
    let code = text.prefix { $0 != " " }
    kind =
      switch code {
      case "NOAUTH", "WRONGPASS", "DENIED": .identity
      case "NOPERM": .permission
      case "OOM", "MISCONF", "READONLY", "NOREPLICAS": .writes
      case "LOADING", "MASTERDOWN": .unready
      case "MOVED", "ASK", "CLUSTERDOWN": .cluster
      default: text.hasPrefix("ERR max number of clients") ? .unready : .command
      }
  }

  /// The first word, such as `OOM`.
  var code: String { String(text.prefix { $0 != " " }) }
}
