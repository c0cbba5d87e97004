// OperatorAction.swift -- what a page may do: the work of commands, with their answers as JSON.

import DNSWire
import Fleet
import Resolver

/// An action of an operator who may use the control socket.
package enum OperatorAction {
  case flush(FlushedNames)
  case refresh(DomainName)
  case reportBad(DomainName, IPAddress)

  /// The action as the command line has it.
  package var words: String {
    switch self {
    case .flush(.everything): "flush"
    case .flush(.names(let names, let isBelow)):
      "flush\(isBelow ? " --below" : "") \(names.map(\.text).joined(separator: " "))"
    case .refresh(let name): "refresh \(name.text)"
    case .reportBad(let name, let address): "report-bad \(name.text) \(address)"
    }
  }

  /// Does the work. Call it from a task that prefers the loop.
  ///
  /// - Returns: status 200 and JSON, or another status and a sentence.
  package func answer(from actions: any ControlActions) async -> (status: Int, text: String) {
    let text: any ControlText
    switch self {
    case .flush(let names):
      let (counts, reach) = await actions.flush(names, everywhere: true)
      text = FlushText(counts: counts, reach: reach)
    case .refresh(let name): text = RefreshText(name: name, summary: await actions.refresh(name, []))
    case .reportBad(let name, let address):
      text = BadAddressText(name: name, address: address, outcome: await actions.reportBad(address, of: name))
    }
    let line = text.text.split(separator: "\n").first.map(String.init) ?? ""
    return text.status == 200 ? (200, text.json) : (text.status, line)
  }
}
