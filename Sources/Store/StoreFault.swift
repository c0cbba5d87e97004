// StoreFault.swift -- why there is no connection to the store, in words for its users and in kinds for its owner.

import Glibc

/// Why a connection could not be made, or ended.
enum StoreFault: Error, Hashable {
  /// The store cannot be reached: it has no address, or refuses.
  case unreachable(String)
  /// Something took the connection, and then did not do what a store does.
  case unusable(String)
  /// TLS failed.
  case tls(String)
  /// A connection that was in use ended.
  case lost(String)
  /// What came is not used.
  case nonsense(String)
  /// The store refused a command of the beginning.
  case refused(command: String, StoreError)

  /// A failure of a system call.
  static func unreachable(_ code: Int32) -> StoreFault { .unreachable(words(code)) }

  /// A failure of a system call on a connection in use.
  static func lost(_ code: Int32) -> StoreFault { .lost(words(code)) }

  /// Words for a log line.
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
  /// All of it, but a full stop at its end.
  let text: String
  /// What it means for the commands that follow.
  let kind: Kind

  enum Kind: Hashable {
    /// The connection is not, or is no longer, authenticated.
    case identity
    /// The user lacks the permission for this command or its key.
    case permission
    /// Writes fail, reads do not.
    case writes
    /// Nothing works for now.
    case unready
    /// The store is a part of a Redis Cluster.
    case cluster
    /// This command failed, others need not.
    case command
  }

  init(_ text: String) {
    // Lines go on behind it.
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

  /// Its first word.
  var code: String { String(text.prefix { $0 != " " }) }
}
