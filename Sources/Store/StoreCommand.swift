// StoreCommand.swift -- the commands that the daemon sends, and the replies that they can have.

/// The commands that the daemon sends. The documented user may send exactly these (docs/fleet.md).
public enum StoreCommand: String, CaseIterable, Sendable {
  case ping = "PING", auth = "AUTH", select = "SELECT", time = "TIME", get = "GET", set = "SET", del = "DEL"
  case incrby = "INCRBY", xadd = "XADD", xread = "XREAD", zadd = "ZADD", zrange = "ZRANGE"
  case zremrangebyscore = "ZREMRANGEBYSCORE"

  /// - Parameter name: in upper case. Nil if the daemon does not send it; then every reply is accepted.
  init?(_ name: [UInt8]) { self.init(rawValue: String(decoding: name, as: UTF8.self)) }

  /// The command's name and its arguments, as `StoreLink` sends them.
  public func words(_ arguments: any Sequence<UInt8>...) -> [[UInt8]] {
    [Array(rawValue.utf8)] + arguments.map { Array($0) }
  }

  /// Whether the command needs memory in the store. A full store refuses only these.
  var needsMemory: Bool {
    switch self {
    case .set, .incrby, .xadd, .zadd: true
    case .ping, .auth, .select, .time, .get, .del, .xread, .zrange, .zremrangebyscore: false
    }
  }

  /// Whether a reply has a type that the command can return. Another type means that replies are out of step with
  /// commands.
  func fits(_ reply: RESPValue) -> Bool {
    switch (self, reply) {
    case (_, .error): true
    case (.ping, _): reply == .status("PONG")
    case (.auth, _), (.select, _): reply == .status("OK")
    case (.get, .bulk), (.get, .null), (.xadd, .bulk), (.xadd, .null): true
    case (.set, .status), (.set, .bulk), (.set, .null): true
    case (.del, .integer), (.incrby, .integer), (.zadd, .integer), (.zremrangebyscore, .integer): true
    case (.time, .array), (.zrange, .array), (.xread, .array), (.xread, .null): true
    default: false
    }
  }
}
