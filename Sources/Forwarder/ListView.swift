// ListView.swift -- the lists of a configuration as `httpdnsd check` shows them: files and saved copies, nothing fetched.

import Configuration
import DNSWire
import Glibc
import ListStore
import Lists
import Persistence
import Telemetry

/// What a configuration's lists are now.
package enum ListView {
  /// A line for each list, and one for each reason why lines of it are left out. Reads all of them; blocks.
  package static func lines(_ configuration: Configuration) -> [String] {
    let key = ListKey()
    let folder = ListFolder(StateFolder(path: configuration.stateDirectory) { _ in }) { _, _ in }
    return configuration.rulesByList().flatMap { source, users -> [String] in
      let rules = users.map(\.name).joined(separator: ", ")
      do throws(ListFault) {
        guard let text = try folder.textNow(source) else { return ["list \(source.name): not fetched yet; \(rules)"] }
        let names = try text.names(key, blocks: users.contains(where: \.blocks))
        let count = ListTable([names], uses: users.map { ListUse(list: 0, blocks: $0.blocks) }, key).nameCounts[0]
        let head = "list \(source.name): \(grouped(count)) \(count == 1 ? "name" : "names")"
        return ["\(head)\(age(text, source)); \(rules)"] + leftOut(names.leftOut)
      } catch { return ["list \(source.name): \(error); \(rules)"] }
    }
  }

  private static func age(_ text: ListText, _ source: ListSource) -> String {
    guard let time = text.confirmedAt else { return "" }
    let age = TimeText.rough(.seconds(max(0, Int64(Glibc.time(nil)) - time)))
    return if case .url = source.place { " (fetched \(age) ago)" } else { " (changed \(age) ago)" }
  }

  private static func leftOut(_ leftOut: LeftOut) -> [String] {
    leftOut.reasons.map { reason in
      let count = leftOut[reason]
      let first = leftOut.first(reason).map { "; the first is line \($0.number): \($0.text)" } ?? ""
      return "  \(grouped(count)) \(count == 1 ? "line" : "lines") left out: \(reason.text)\(first)"
    }
  }
}
