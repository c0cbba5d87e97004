// SimulatorCommand.swift -- parses the command line and runs the simulator.

import ArgumentParser
import DNSWire
import EventLoop
import Glibc
import HTTPServer
import Streams

struct SimulatorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "httpdns-simulator",
    abstract: "An HTTPDNS service that speaks every provider's dialect, with faults on demand.",
    discussion: """
      Prints one line for every address it listens on, then serves until SIGTERM or SIGINT.

      Example: httpdns-simulator --listen 127.0.0.1:8053 --zone Config/demo.zone
      Example: httpdns-simulator --listen-tls 127.0.0.1:8443 --ca-out ca.pem --fault 'kind=delay&ms=200'
      """)

  @Option(
    help: ArgumentHelp(
      "Serve plain HTTP on an address such as 127.0.0.1:8053; port 0 picks a free one. May be repeated.",
      valueName: "address:port"))
  var listen: [SocketAddress] = []
  @Option(
    help: ArgumentHelp("Serve HTTPS on an address. May be repeated.", valueName: "address:port"))
  var listenTls: [SocketAddress] = []
  @Option(help: ArgumentHelp("Write the CA's certificate to this file, as PEM.", valueName: "file")) var caOut: String?
  @Option(
    help: ArgumentHelp(
      "One more host name or address for the certificate. May be repeated.", valueName: "name"))
  var tlsName: [String] = []
  @Option(
    help: ArgumentHelp(
      "How long ago the certificate became valid, in seconds.", valueName: "seconds"))
  var tlsAge = 3_600
  @Option(
    help: ArgumentHelp(
      "Serve the control paths also on an address or the path of a Unix socket.",
      valueName: "address:port|path"))
  var control: ControlEndpoint?
  @Option(
    help: ArgumentHelp(
      "Answer from this zone file instead of the built-in zone.", valueName: "file"))
  var zone: String?
  @Option(
    help: ArgumentHelp("The TTL of records that give none, in seconds.", valueName: "seconds"))
  var defaultTtl: UInt32 = 300
  @Option(
    help: ArgumentHelp(
      "The number of an account whose signatures are checked. May be repeated, with its two keys.",
      valueName: "number")
  )
  var account: [String] = []
  @Option(help: ArgumentHelp("The account's access key ID.", valueName: "id")) var accessKeyId: [String] = []
  @Option(help: ArgumentHelp("The account's access key secret.", valueName: "secret"))
  var accessKeySecret: [String] = []
  @Flag(help: "Refuse requests of accounts that are not signed.") var requireSignature = false
  @Option(
    help: ArgumentHelp(
      "How far a signature's time may be from the clock, in seconds.", valueName: "seconds"))
  var signatureWindow: Int64 = 600
  @Option(
    help: ArgumentHelp(
      "How far the service's clock is ahead of the machine's, in seconds.", valueName: "seconds"))
  var clockOffset: Int64 = 0
  @OptionGroup(title: "Tencent's account") var tencent: TencentArguments
  @OptionGroup(title: "EMAS's account") var emas: EMASArguments
  @OptionGroup(title: "Accounts with one secret") var secrets: SecretArguments
  @Option(
    help: ArgumentHelp(
      "A setting from the start, such as 'emas-signed-only=true'. May be repeated; GET /_simulator/settings lists them.",
      valueName: "key=value"))
  var setting: [String] = []
  @Flag(help: "End Cloudflare's names with a dot.") var cloudflareFinalDot = false
  @Flag(help: "Write Cloudflare's newer types as RFC 3597 text, as it was until 2026.") var cloudflareGeneric = false
  @Option(
    help: ArgumentHelp(
      "Send an Age field of this many seconds with RFC 8484 responses.", valueName: "seconds"))
  var age: UInt32?
  @Option(
    help: """
      A fault in force from the start, such as 'kind=delay&ms=200&path=/resolve'. May be repeated. Kinds: \
      \(Fault.Kind.allCases.map(\.rawValue).joined(separator: ", ")).
      """)
  var fault: [String] = []
  @Option(
    help: ArgumentHelp(
      "The seed of the dice that faults with a probability throw.", valueName: "number"))
  var seed: UInt64 = 1
  @Option(help: ArgumentHelp("How many requests the record keeps.", valueName: "count")) var recordLimit = 10_000

  func validate() throws {
    guard !listen.isEmpty || !listenTls.isEmpty else {
      throw ValidationError("nothing to listen on: give --listen or --listen-tls")
    }
    guard account.count == accessKeyId.count, account.count == accessKeySecret.count else {
      throw ValidationError("--account, --access-key-id and --access-key-secret come together")
    }
    guard recordLimit >= 0 else { throw ValidationError("--record-limit is 0 or more") }
    guard defaultTtl <= 0x7FFF_FFFF else { throw ValidationError("--default-ttl is 0 to 2147483647") }
  }

  func run() throws {
    let loop = try EventLoop()
    let simulator = Simulator(on: loop, service: try makeService(), faults: try makeFaults(), recordLimit: recordLimit)
    let signals = [SIGTERM, SIGINT].map { LoopEvent(on: loop, signal: $0) { loop.stop() } }
    try open(simulator, on: loop)
    withExtendedLifetime((simulator, signals)) { loop.run() }
  }

  /// Listens on every address and prints one line for each. A client may connect as soon as it reads the line.
  private func open(_ simulator: Simulator, on loop: EventLoop) throws {
    var tls: TLSServer?
    if !listenTls.isEmpty || caOut != nil {
      let authority = try CertificateAuthority(names: CertificateAuthority.providerNames + tlsName, age: tlsAge)
      if let caOut { try write(authority.caCertificate, to: caOut) }
      tls = TLSServer(authority.pair, protocols: ["http/1.1"], on: loop)
    }
    for address in listen { say("http", try simulator.serve(on: address).description) }
    for address in listenTls { say("https", try simulator.serve(on: address, tls: tls).description) }
    switch control {
    case .address(let address): say("control", try simulator.serveControl(on: address).description)
    case .unixPath(let path):
      try simulator.serveControl(unixPath: path)
      say("control", path)
    case nil: break
    }
  }

  private func makeService() throws -> Service {
    let accounts = account.indices.map {
      Account(identifier: account[$0], accessKeyID: accessKeyId[$0], accessKeySecret: accessKeySecret[$0])
    }
    var options = ServiceOptions(
      clockOffset: clockOffset, requiresSignature: requireSignature,
      signatureWindow: signatureWindow,
      cloudflareFinalDot: cloudflareFinalDot,
      cloudflareGenericForm: cloudflareGeneric, age: age)
    for text in setting {
      do throws(SimulatorError) {
        try options.take(Parameters(query: text))
      } catch {
        throw ValidationError("--setting \(text): \(error)")
      }
    }
    let text = try zone.map { try readText($0) } ?? defaultZoneText
    let secretAccounts = try secrets.accounts(Service(zone: Zone()).secretAccounts)
    do throws(ZoneError) {
      var service = Service(
        zone: try ZoneParser.parse(text, defaultTTL: defaultTtl), accounts: accounts,
        tencent: tencent.account, emas: emas.account, options: options)
      service.secretAccounts = secretAccounts
      return service
    } catch {
      throw ValidationError("\(zone ?? "the built-in zone"): \(error)")
    }
  }

  private func makeFaults() throws -> FaultTable {
    let faults = try fault.map { text in
      do throws(SimulatorError) {
        return try Fault(Parameters(query: text))
      } catch {
        throw ValidationError("--fault \(text): \(error)")
      }
    }
    return FaultTable(faults, seed: seed)
  }

  private func say(_ kind: String, _ address: String) {
    print("listening \(kind) \(address)")
    fflush(nil)
  }
}
