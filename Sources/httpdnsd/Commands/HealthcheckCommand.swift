// HealthcheckCommand.swift -- `httpdnsd healthcheck`: checks that the running daemon answers, for container engines.

import ArgumentParser
import Configuration
import DNSWire
import EventLoop
import Glibc
import JSON
import LocalDNS
import Telemetry
import Upstreams

/// Asks the running daemon a question that it alone answers.
struct HealthcheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "healthcheck",
    abstract: "Check that the running daemon answers; exit code 0 or 1.",
    discussion: """
      Sends a question that only httpdnsd answers to every address of listen.addresses (or of HTTPDNSD_LISTEN), over \
      UDP and then over TCP, so an outage of the providers changes nothing, and another program on the port is no \
      httpdnsd. A wildcard address is asked on loopback. A refusal by listen.allow counts as an answer. An IPv6 address \
      that this machine does not have is ignored, as the daemon ignores it. Without --address, and if this user may use \
      the control socket, the daemon behind it has to be the one that answers. All questions together take at most 2 s.

      Example: httpdnsd healthcheck
      Example: httpdnsd healthcheck --address 127.0.0.1:5353 --json

      Exit code 0: it answers; 1: it does not, or the configuration cannot be read; 64: a mistake on the command line.
      """)

  /// The time limit for all addresses and the control socket together.
  private static let patience = Duration.seconds(2)

  @OptionGroup var options: ConfigurationOption

  @Option(
    help: ArgumentHelp(
      "Ask this address instead of those in the configuration.", valueName: "address:port"))
  var address: String?

  @Flag(help: "Print JSON.") var json = false

  func validate() throws {
    if let address, Endpoint(text: address) == nil {
      throw ValidationError("'\(address)' is not an address with a port, such as 127.0.0.1:53 or [::1]:53")
    }
  }

  func run() throws {
    let servers = try addresses().map { Healthcheck.target(of: $0) }
    let deadline = BootInstant.now + HealthcheckCommand.patience
    let findings: [HealthFinding]
    do throws(EventLoopError) {
      findings = try Healthcheck.run(servers, timeout: HealthcheckCommand.patience)
    } catch {
      throw Console.failure("httpdnsd: \(error)")
    }
    let path = Configuration.path(given: options.config)
    let rest = deadline - BootInstant.now
    let trial = MachineTrial(socket: socket, configuration: address == nil ? path : nil, patience: rest)
    let objections = findings.map { trial.objection(to: $0) }
    let isHealthy = objections.allSatisfy { $0 == nil }
    if json {
      let addresses = zip(findings, objections).map { $0.json($1) }
      print(JSONText.object(["healthy": "\(isHealthy)", "addresses": JSONText.array(addresses)]))
    } else {
      for (finding, objection) in zip(findings, objections) { print(objection?.sentence ?? finding.line) }
    }
    if !isHealthy { throw ExitCode.failure }
  }

  /// The control socket of the daemon that the configuration is for; nil if only an address was given.
  private var socket: String? {
    guard address == nil else { return nil }
    return (try? Configuration.control(path: options.config))?.socket
  }

  private func addresses() throws -> [SocketAddress] {
    if let address = address.flatMap({ SocketAddress(text: $0) }) { return [address] }
    let endpoints: [Endpoint]
    do throws(Mistakes) {
      endpoints = try Configuration.listenAddresses(path: options.config)
    } catch {
      for mistake in error.mistakes { Console.error("\(mistake)") }
      throw ExitCode.failure
    }
    guard endpoints.allSatisfy({ $0.port != 0 }) else {
      throw Console.failure("httpdnsd: listen.addresses uses port 0, so the kernel chooses a port; pass --address")
    }
    return endpoints.map { SocketAddress($0) }
  }
}

extension HealthFinding {
  /// A sentence with the address: how fast it answers, or why not.
  var line: String {
    let times = (TimeText.tenths(overUDP ?? .zero), TimeText.tenths(overTCP ?? .zero))
    guard let failure else { return "\(server) answers: UDP \(times.0) ms, TCP \(times.1) ms" }
    return "\(server) does not answer over \(transport): \(text(failure))"
  }

  /// Why nothing answers; nil if something does.
  var reason: String? { failure.map { "\(transport): \(text($0))" } }

  /// - Parameter objection: why the daemon does not answer there; nil if it does.
  fileprivate func json(_ objection: MachineTrial.Objection?) -> String {
    JSONText.object([
      "address": JSONText.string(server.description), "answers": "\(objection == nil)",
      "udp_ms": overUDP.map(TimeText.tenths), "tcp_ms": overTCP.map(TimeText.tenths),
      "reason": (objection?.reason).map { JSONText.string($0) },
    ])
  }

  private var transport: String { overUDP == nil ? "UDP" : "TCP" }

  private func text(_ failure: LocalDNSFailure) -> String {
    switch failure {
    case .network(ECONNREFUSED): "no process listens there"
    case .network(let code): String(cString: strerror(code))
    default: "no answer within 2 s"
    }
  }
}
