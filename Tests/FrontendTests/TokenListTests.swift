// TokenListTests.swift -- which lines are tokens, which tokens are accepted, and that no message shows one.

import Ciphers
import Files
import Frontend
import TestSupport
import Testing

private let phone = "6f1ed002ab559585"
private let laptop = "A-very-LONG-token-of-63-characters-0123456789-0123456789-01234x"

private func list(_ text: String) throws(TokenList.Fault) -> TokenList { try TokenList(octets: Array(text.utf8)) }

private func fault(_ text: String) -> TokenList.Fault? {
  do throws(TokenList.Fault) {
    _ = try list(text)
    return nil
  } catch { return error }
}

extension TokenList {
  fileprivate func path(_ text: String) -> String? { entry(pathElement: Array(text.utf8))?.label }
  fileprivate func name(_ text: String) -> String? { entry(nameLabel: Array(text.utf8))?.label }
}

@Suite struct TokenListTests {
  @Test func `each line has a label and a token`() throws {
    let list = try list(
      """
      # devices
      phone \(phone)
      \t my.lap-top_1\t\t\(laptop)  # on the desk\r

      """)
    #expect(laptop.utf8.count == 63)
    #expect(list.labels == ["phone", "my.lap-top_1"])
    #expect(list.token(of: "phone") == Secret(phone))
    #expect(list.token(of: "my.lap-top_1") == Secret(laptop))
    #expect(list.token(of: "Phone") == nil)
    #expect(try TokenList(octets: []).labels == [])
  }

  @Test func `a path needs the token's letters, a name any case of them`() throws {
    let list = try list("phone \(phone)\nlaptop \(laptop)")
    #expect(list.path(phone) == "phone" && list.name(phone) == "phone")
    #expect(list.path(laptop) == "laptop" && list.name(laptop) == "laptop")
    #expect(list.name(laptop.lowercased()) == "laptop" && list.name(laptop.uppercased()) == "laptop")
    #expect(list.path(laptop.lowercased()) == nil && list.path(phone.uppercased()) == nil)
    for wrong in ["", "phone", String(phone.dropLast()), phone + "0", phone + "/", "\u{0}" + phone.dropFirst()] {
      #expect(list.path(wrong) == nil && list.name(wrong) == nil)
    }
  }

  @Test(arguments: [
    ("phone", TokenList.LineFault.form), ("phone \(phone) x", .form), ("\(phone)", .form), ("phone # \(phone)", .form),
    ("ph/one \(phone)", .label), ("ü \(phone)", .label), ("\(String(repeating: "l", count: 64)) \(phone)", .label),
    ("phone \(phone.dropLast())", .token), ("phone \(laptop)0", .token), ("phone 0123456789_abcdef", .token),
    ("phone 0123456789.abcdef", .token), ("phone -0123456789abcdef", .token), ("phone 0123456789abcdef-", .token),
    ("phone 0123456789abcdeü", .token),
  ]) func `one wrong line refuses the file, with its number`(line: String, reason: TokenList.LineFault) {
    #expect(fault("# first\n\(line)\nlaptop \(laptop)") == .line(2, reason))
  }

  @Test func `a label or token that an earlier line has is refused`() {
    #expect(fault("a \(phone)\n\na \(laptop)") == .line(3, .repeated(1)))
    #expect(fault("a \(phone)\nb \(phone)") == .line(2, .repeated(1)))
    #expect(fault("a \(laptop)\nb \(laptop.lowercased())") == .line(2, .repeated(1)))
    #expect(fault("a \(phone)\nA \(laptop)") == nil)
  }

  @Test func `a connection's token is found in a later list only if label and token are the same`() throws {
    let entry = try #require(try list("phone \(phone)").entry(pathElement: Array(phone.utf8)))
    #expect(try list("laptop \(laptop)\nphone \(phone)").accepts(entry))
    for text in ["", "phone \(laptop)", "other \(phone)", "phone \(phone.uppercased())"] {
      #expect(try !list(text).accepts(entry))
    }
    // By a name in another case it is the same entry.
    let upper = try list("phone \(phone)").entry(nameLabel: Array(phone.uppercased().utf8))
    #expect(upper == entry)
  }

  @Test func `no text shows a token`() throws {
    let list = try list("phone \(phone)")
    let entry = try #require(list.entry(pathElement: Array(phone.utf8)))
    #expect("\(entry)" == "phone")
    for line in ["\(phone)", "\(phone) phone", "phone \(phone) \(phone)", "a \(phone)\nb \(phone)"] {
      let text = fault(line).map { "\($0)" } ?? ""
      #expect(text.hasPrefix("line ") && !text.contains(phone), "\(text)")
    }
  }

  @Test func `a file that others can access is refused, unless it is provided so`() throws {
    let folder = TemporaryFolder()
    for mode: UInt32 in [0o640, 0o604, 0o620] {
      let path = folder.write("phone \(phone)\n", to: "tokens", mode: mode)
      #expect(throws: TokenList.Fault.exposed(mode: mode)) { try TokenList(path: path, credentials: nil) }
      #expect(try TokenList(path: path, credentials: folder.path).labels == ["phone"])
    }
    let path = folder.write("phone \(phone)\n", to: "tokens", mode: 0o600)
    #expect(try TokenList(path: path, credentials: nil).labels == ["phone"])
    let missing = folder.path(of: "no")
    #expect(throws: TokenList.Fault.file(.unreadable(2))) { try TokenList(path: missing, credentials: nil) }
    #expect(
      fault(String(repeating: "\n", count: TokenList.maximumSize + 1)) == .file(.tooLarge(limit: TokenList.maximumSize))
    )
  }
}
