// ListFault.swift -- why the text of a list is not used.

import Files
import Glibc
import Lists

/// Why the text of a list is not used. Its description is a part of a line for people; what strangers wrote in it is short
/// and printable.
public enum ListFault: Error, Hashable, Sendable {
  /// The file cannot be opened or read; the system's error number.
  case unreadable(Int32)
  /// The copy belongs to another user.
  case hiddenCopy
  /// The path leads to a folder, a FIFO, a device or a socket.
  case noFile(String)
  /// The file was written while it was read; it is read again.
  case changing
  /// The text exceeds the limit in octets.
  case tooLarge(Int)
  /// All lists together have more names than this.
  case tooManyNames(Int)
  /// The text is no list.
  case refused(ListRefusal)
  /// The server answered with something that is not taken.
  case unacceptable(String)
  /// The server was not reached, or did not send the whole text.
  case failed(String)
  /// The daemon stops, or the list is no longer configured.
  case cancelled

  /// Whether a text came that is not taken; else none came.
  public var isRefusal: Bool {
    switch self {
    case .noFile, .tooLarge, .tooManyNames, .refused, .unacceptable: true
    case .unreadable, .hiddenCopy, .changing, .failed, .cancelled: false
    }
  }

  /// Whether another fetch would cost much and find the same.
  var isCostly: Bool {
    switch self {
    case .tooLarge, .tooManyNames: true
    default: false
    }
  }
}

extension ListFault: CustomStringConvertible {
  public var description: String {
    switch self {
    case .unreadable(let code): FileFault.unreadable(code).description
    case .hiddenCopy: "its copy cannot be read as this user"
    case .noFile(let kind): "it is a \(kind)"
    case .changing: "it is being written"
    case .tooLarge(let limit): FileFault.tooLarge(limit: limit).description
    case .tooManyNames(let limit): "all lists together would have more than \(grouped(limit)) names"
    case .refused(let refusal): refusal.description
    case .unacceptable(let reason), .failed(let reason): reason
    case .cancelled: "httpdnsd is shutting down, or the list was removed"
    }
  }
}

/// A number with commas: `110,769`.
package func grouped(_ number: Int) -> String {
  let digits = Array(String(number.magnitude))
  let groups = stride(from: digits.count, to: 0, by: -3).map { String(digits[max(0, $0 - 3)..<$0]) }
  return (number < 0 ? "-" : "") + groups.reversed().joined(separator: ",")
}

/// At most 80 characters of a text that a stranger wrote, without those that could change a log line.
func shortened(_ text: some StringProtocol) -> String {
  let shown = text.unicodeScalars.prefix(81).map { 0x20...0x7E ~= $0.value ? Character($0) : "?" }
  return shown.count > 80 ? String(shown.prefix(77)) + "..." : String(shown)
}
