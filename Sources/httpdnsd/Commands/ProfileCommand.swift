// ProfileCommand.swift -- `httpdnsd profile`: what to enter in a device so that it uses the encrypted listeners.

import ArgumentParser
import Ciphers
import Configuration
import Frontend

/// Reads the configuration and the tokens; needs no running daemon.
struct ProfileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "profile",
    abstract: "Print what to enter in phones, browsers and routers, or a profile for Apple's devices.",
    discussion: """
      Without --doh and --dot: the URL for browsers and Windows, the name for Android's Private DNS, and the options by \
      which a router tells its network (DNR, RFC 9463). With one of them: an unsigned configuration profile \
      (.mobileconfig) for iPhone, iPad and Mac, on standard output. The same name, protocol and label give a profile \
      that replaces the older one.

      Example: httpdnsd profile
      Example: httpdnsd profile --doh --token phone > phone.mobileconfig

      Exit code 0: printed; 1: the configuration has a mistake, no name or no such listener or token; 64: a mistake on \
      the command line.
      """)

  enum Kind: String, EnumerableFlag {
    case doh, dot

    static func help(for value: Kind) -> ArgumentHelp? {
      switch value {
      case .doh: "Print a profile for DNS over HTTPS."
      case .dot: "Print a profile for DNS over TLS."
      }
    }
  }

  @OptionGroup var options: ConfigurationOption

  @Flag(exclusivity: .exclusive) var kind: Kind?

  @Option(
    help: ArgumentHelp("Use the token with this label in encrypted.tokens_file.", valueName: "label"))
  var token: String?

  func run() throws {
    let encrypted = try LoadedConfiguration(path: options.config).configuration.encrypted
    let settings: DeviceSettings
    let secret = try secret(encrypted)
    do throws(DeviceSettings.Fault) {
      settings = try DeviceSettings(encrypted, token: secret)
    } catch { throw Console.failure("\(options.config): \(error)") }
    switch kind {
    case .doh: try printDoHProfile(settings)
    case .dot: try printDoTProfile(settings)
    case nil: _ = Console.print(overview(settings))
    }
  }

  private func secret(_ encrypted: Configuration.Encrypted) throws -> (label: String, text: String)? {
    guard let label = token else {
      if encrypted.tokensFile != nil {
        Console.error("httpdnsd: clients without a token are not answered; give --token LABEL")
      }
      return nil
    }
    guard let path = encrypted.tokensFile else {
      throw Console.failure("\(options.config): encrypted.tokens_file: empty, so that there is no token for --token")
    }
    let list: TokenList
    do throws(TokenList.Fault) {
      list = try TokenList(path: path, credentials: Configuration.processEnvironment("CREDENTIALS_DIRECTORY"))
    } catch { throw Console.failure("\(options.config): encrypted.tokens_file: \(path): \(error)") }
    guard let secret = list.token(of: label) else {
      let known = list.labels.isEmpty ? "the file has none" : "known: \(list.labels.joined(separator: ", "))"
      throw Console.failure("httpdnsd: no token has the label '\(label)'; \(known)")
    }
    return (label, String(decoding: secret.reveal, as: UTF8.self))
  }

  private func printDoHProfile(_ settings: DeviceSettings) throws {
    guard let url = settings.url else {
      throw Console.failure("\(options.config): encrypted.doh: empty, so that there is no DNS over HTTPS")
    }
    if settings.isBehindProxy { Console.error("httpdnsd: \(DeviceSettings.proxyRemark)") }
    print(AppleProfile.Server.https(url: url), settings)
  }

  private func printDoTProfile(_ settings: DeviceSettings) throws {
    guard let name = settings.tlsName, let port = settings.dotPort else {
      throw Console.failure("\(options.config): encrypted.dot: empty, so that there is no DNS over TLS")
    }
    if port != 853 {
      Console.error(
        "httpdnsd: Apple's devices connect to port 853, and encrypted.dot has port \(port); forward 853 to it")
    }
    print(AppleProfile.Server.tls(name: name), settings)
  }

  private func print(_ server: AppleProfile.Server, _ settings: DeviceSettings) {
    let profile = AppleProfile(
      server: server, name: settings.name, label: settings.label, addresses: settings.published)
    _ = Console.print(profile.text)
  }

  private func overview(_ settings: DeviceSettings) -> String {
    var parts: [(heading: String, lines: [String])] = []
    if let url = settings.url {
      let remarks = settings.isBehindProxy ? [DeviceSettings.proxyRemark] : []
      parts.append(("Firefox, Chrome, Windows: DNS over HTTPS", [url] + remarks))
    }
    if let name = settings.tlsName, let port = settings.dotPort {
      let remarks =
        port == 853 ? [] : ["Android connects to port 853, and encrypted.dot has port \(port): forward 853 to it"]
      parts.append(("Android: Private DNS", [name] + remarks))
    }
    let option = settings.label.map { " --token \($0)" } ?? ""
    let flag = settings.url == nil ? "--dot" : "--doh"
    parts.append(("iPhone, iPad, Mac: install this file", ["httpdnsd profile \(flag)\(option) > dns.mobileconfig"]))
    let services = RouterOption.all(settings)
    for service in services {
      parts.append(("Router: DNR (RFC 9463)", service.lines + ["DHCPv6 option 144: \(service.dhcpv6)"]))
    }
    parts.append(("Router: all of it for DHCPv4", ["option 162: \(RouterOption.dhcpv4(services))"]))
    return parts.map { "\($0.heading)\n" + $0.lines.map { "  \($0)\n" }.joined() }.joined(separator: "\n")
  }
}

extension DeviceSettings {
  fileprivate static let proxyRemark =
    "the TLS proxy before encrypted.doh_plain is taken to serve this name at port 443"
}
