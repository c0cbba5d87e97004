// ForwarderLists.swift -- what operators can read of the lists and sets of rules, and do with them.
//
// Resolver's loop only.

import Configuration
import DNSWire
import EventLoop
import FirewallSets
import ListStore
import Lists
import Persistence

/// A line of a list that decides about a name.
package struct ListHit: Sendable {
  /// The list, as it is shown.
  package var list: String
  package var finding: ListFinding
  /// The rules that use the list, as they are shown.
  package var rules: [String]

  package init(list: String, finding: ListFinding, rules: [String]) {
    (self.list, self.finding, self.rules) = (list, finding, rules)
  }
}

extension Forwarder {
  /// The state of each list, in the order of the configuration.
  package func listReports() -> [ListReport] { ruleParts.lists.reports }

  /// For each list without a text, a line that says why. Its rules have no names of it.
  package var absentLists: [String] {
    let lists = preparation.plan.lists
    return lists.sources.filter { lists.texts[$0.place] == nil }.map { source in
      "list \(source.name) has no text here: \(lists.texts.faults[source.place]?.description ?? "not fetched yet")"
    }
  }

  /// The firewall sets as they are now, in the order of the configuration. Call it from a task that prefers the loop.
  ///
  /// - Parameter refilled: whether the addresses of all cached answers are added to them again before.
  package func setStatuses(refilled: Bool) async -> [SetStatus] { await ruleParts.sets.look(refilled: refilled) }

  /// Fetches lists now and reads files again; returns when they are in use, or have failed. Call it from a task that prefers
  /// the loop.
  ///
  /// - Parameter name: of a list; nil for all.
  package func updateLists(_ name: String?) async -> [ListUpdate] { await ruleParts.lists.update(name) }

  /// The lists that have a name, with the line that decides. Call it from a task that prefers the loop.
  package func findInLists(_ name: DomainName) async -> [ListHit] {
    let (texts, lists) = (ruleParts.lists.texts, configuration.rulesByList())
    return await BlockingTask.value("lists", on: loop) {
      lists.compactMap { list in
        // Rules that block leave public suffixes out.
        let blocks = list.rules.allSatisfy(\.blocks)
        let finding = try? texts[list.source.place]?.find(name.lowercased, blocks: blocks)
        return finding.map { ListHit(list: list.source.name, finding: $0, rules: list.rules.map(\.name)) }
      }
    }
  }
}

extension Configuration {
  /// Each list with the rules that use it, and whether these block.
  func rulesByList() -> [(source: ListSource, rules: [(name: String, blocks: Bool)])] {
    let (used, ofRules) = usedLists()
    return used.enumerated().map { number, list in
      let users = rules.indices.filter { ofRules[$0].contains(number) }
      return (ListSource(list), users.map { (ruleName($0), rules[$0].use.blocks) })
    }
  }

  /// A rule as messages call it: `rule 2 "domestic"`.
  func ruleName(_ index: Int) -> String { "rule \(index + 1)" + (rules[index].name.map { " \"\($0)\"" } ?? "") }
}
