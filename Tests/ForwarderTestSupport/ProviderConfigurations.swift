// ProviderConfigurations.swift -- providers whose settings a test chooses.

import Ciphers

@testable import Configuration

extension Configuration.Provider {
  /// A provider without limits unless the test sets them; the dialect is the test's.
  ///
  /// - Parameter hasAccount: whether requests carry an account.
  static func tested(
    name: String, hasAccount: Bool = false, timeout: Duration = .seconds(2), attemptsBeforeSwitch: Int = 3,
    returnToFirst: Duration = .seconds(600), clientSubnet: Configuration.ClientSubnet = .none,
    requestsPerSecond: Int = 0, unitsPerDay: Int = 0,
    unitsReserve: Double = 0, fallsBackOnEmpty: Bool = true
  ) -> Configuration.Provider {
    var provider = Configuration.Provider()
    provider.name = name
    if hasAccount { provider.kind = .tencent(.https(token: Secret("token"), id: nil)) }
    provider.timeout = timeout
    provider.attemptsBeforeSwitch = attemptsBeforeSwitch
    provider.returnToFirst = returnToFirst
    provider.clientSubnet = clientSubnet
    provider.requestsPerSecond = requestsPerSecond
    provider.unitsPerDay = unitsPerDay
    provider.unitsReserve = unitsReserve
    provider.subnetsPerName = 0
    provider.fallbackOnEmpty = fallsBackOnEmpty
    return provider
  }

  /// A table at a URL.
  static var table: Configuration.Provider {
    var provider = tested(name: "table")
    provider.kind = .table(
      Configuration.TableSource(location: .url(ProviderURL(text: "https://table.example/table.json")!)))
    return provider
  }
}
