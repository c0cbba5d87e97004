// swift-tools-version: 6.2
// Package.swift -- the modules, their layers, and what each may import (docs/architecture.md, "Modules").

import PackageDescription

/// Whether libFuzzer is wanted (`FUZZ=1 make fuzz`): every module then tells it which branches an input took, and only the
/// fuzzer links.
let isFuzzing = Context.environment["FUZZ"] == "1"

/// Settings of a test target: Swift 6 mode, and a warning is an error.
let testSettings: [SwiftSetting] =
  [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableExperimentalFeature("Lifetimes"),
  ]
  + (isFuzzing
    ? [.unsafeFlags(["-sanitize=fuzzer"])]
    // docs/adr/0028-no-access-checks-in-a-release.md
    : [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))])

/// Settings of every other Swift target: a file also imports whose members it uses. Not so in tests: the compiler attributes
/// glibc's `timespec`, which no module map has, to whichever module a target's first file happens to load first.
let strict = testSettings + [.enableUpcomingFeature("MemberImportVisibility")]

/// The file that holds Chart.js, if it is not Debian's.
let chart = Context.environment["CHART_JS"].map { [CSetting.define("CHART_JS", to: "\"\($0)\"")] } ?? []

/// Code that runs at a start, at a reload and for an operator is as small as it can be.
let cold = strict + [.unsafeFlags(["-Osize"], .when(configuration: .release))]

/// Every C header sees the same glibc: two modules with different feature macros disagree about `fd_set`.
let glibc: [CSetting] = [.define("_GNU_SOURCE")]

/// A library target with its test target beside it.
///
/// - Parameters:
///   - tests: what only the tests depend on.
///   - data: whether `Tests/<Module>Tests/Data` holds vectors or corpora, which tests read by their path.
func module(
  _ name: String, _ dependencies: [Target.Dependency] = [], tests: [Target.Dependency] = [], data: Bool = false,
  settings: [SwiftSetting] = strict
) -> [Target] {
  [
    .target(name: name, dependencies: dependencies, cSettings: glibc, swiftSettings: settings),
    .testTarget(
      name: "\(name)Tests", dependencies: [.byName(name: name)] + dependencies + tests + ["TestSupport"],
      exclude: data ? ["Data"] : [], cSettings: glibc, swiftSettings: testSettings),
  ]
}

let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

// Layer 0: one C library each.
let layer0: [Target] = [
  .systemLibrary(name: "CEvent", pkgConfig: "libevent", providers: [.apt(["libevent-dev"])]),
  .systemLibrary(name: "CTLS", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
  .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
  .systemLibrary(name: "CHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev", "libssl-dev"])]),
  .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
  .target(name: "CJSON", cSettings: glibc, linkerSettings: [.linkedLibrary("simdjson")]),
  .target(name: "CTOML", cSettings: glibc),
  .target(name: "CSocket", cSettings: glibc),
  .target(name: "CHotPath", cSettings: glibc),
  .target(name: "CProcess", cSettings: glibc),
  .systemLibrary(name: "CNetlink"),
  .systemLibrary(
    name: "CFirewall", pkgConfig: "libnftnl", providers: [.apt(["libmnl-dev", "libnftnl-dev"])]),
  .systemLibrary(name: "CAccess"),
  .target(name: "CPage", exclude: ["Page"], cSettings: glibc + chart),
  .systemLibrary(name: "CPublicSuffix", pkgConfig: "libpsl", providers: [.apt(["libpsl-dev"])]),
]

// Layer 1: octets, loop, digests, configuration, telemetry.
let layer1: [Target] =
  module("DNSWire", data: true)
  + module("EventLoop", ["CEvent"])
  + module("HTTPMessage")
  + module("Ciphers", ["CCrypto"], tests: ["DNSWire"])
  + module("Configuration", ["DNSWire", "Ciphers", "Files", "Telemetry", "CProcess", "CTOML", logging], settings: cold)
  + module("JSON", ["CJSON"])
  + module("Telemetry", ["JSON", logging])
  + module("Files")
  + module("ServiceManager", ["EventLoop"])
  + module("Streams", ["EventLoop", "Files", "CTLS"], tests: ["TLSTestSupport"])
  + module("Terminal", settings: cold)
  + module("PublicSuffixes", ["DNSWire", "CPublicSuffix"])
  + module("Lists", ["DNSWire", "PublicSuffixes"])

// Layer 2: one responsibility each. Some know others of the layer: Listener and HTTPClient FairShares, Persistence
// MessageCache, ListStore HTTPClient and Persistence, Fleet Store and Persistence, Ranking and Refresh the cache and what
// they work with.
let layer2: [Target] =
  module("HTTPDNS", ["DNSWire", "Ciphers", "Configuration", "HTTPMessage", "JSON"], data: true)
  + module("MessageCache", ["DNSWire", "CHotPath"])
  + module("Routing", ["DNSWire", "FairShares", "Files", "Lists", "PublicSuffixes"])
  + module("Listener", ["EventLoop", "FairShares", "Streams", "CSocket", "CEvent"])
  + module(
    "HTTPClient", ["EventLoop", "HTTPMessage", "Streams", "FairShares", "CCurl", "CHTTP2", "CTLS", "CProcess"],
    tests: ["TLSTestSupport"])
  + module("LocalDNS", ["EventLoop", "DNSWire", "Files"], tests: ["CEvent", "LocalDNSTestSupport"])
  + module(
    "Refresh",
    ["DNSWire", "EventLoop", "Configuration", "Files", "HTTPDNS", "FairShares", "MessageCache", "Persistence"])
  + module("Probing", ["EventLoop", "CSocket"])
  + module(
    "Ranking",
    ["DNSWire", "EventLoop", "Configuration", "Files", "FairShares", "MessageCache", "Routing", "Probing"])
  + module("Store", ["EventLoop", "Streams", "Ciphers", "Configuration", logging], tests: ["Files", "TLSTestSupport"])
  + module("FairShares", ["DNSWire", "EventLoop", "CHotPath", "PublicSuffixes"])
  + module("NetworkWatch", ["EventLoop", "DNSWire", "Ciphers", "CNetlink"], settings: cold)
  + module("FirewallSets", ["EventLoop", "DNSWire", "Configuration", "Routing", "CFirewall"], tests: ["JSON"])
  + module("Persistence", ["MessageCache", "EventLoop", "Ciphers", "Files"], tests: ["DNSWire"])
  + module(
    "ListStore",
    ["DNSWire", "EventLoop", "Ciphers", "Files", "HTTPClient", "HTTPMessage", "Lists", "Persistence", logging],
    tests: ["TLSTestSupport"])
  + module(
    "Fleet", ["DNSWire", "EventLoop", "Ciphers", "Configuration", "Files", "Telemetry", "Store", "Persistence"],
    tests: ["FleetTestSupport"])
  + module(
    "HTTPServer", ["EventLoop", "HTTPMessage", "Streams", "CHTTP2"], tests: ["HTTPTestSupport", "TLSTestSupport"])
  + module("SystemSetup", ["Files", "CAccess"], settings: cold)

// Layer 3: the parts of the daemon. What clients meet and whom it asks do not know each other.
let daemonLibraries: [Target.Dependency] = [
  "DNSWire", "EventLoop", "Ciphers", "Configuration", "JSON", "Telemetry", "HTTPDNS", "MessageCache", "Routing",
  "Listener", "HTTPMessage", "HTTPClient", "LocalDNS", "NetworkWatch", "Refresh", "Persistence", "CSocket", "CHotPath",
  "ServiceManager", "Files", "Streams",
  "PublicSuffixes", "FairShares", "Ranking", "Probing", "Fleet", "Store", "Lists", "ListStore", "FirewallSets", logging,
]
let daemonParts: [Target.Dependency] = ["Frontend", "Upstreams", "BusyNames", "Resolver"]

/// A part of the daemon. Its tests may use all the others, which their scenes join, but not the forwarder, which assembles
/// them.
func part(_ name: String, _ dependencies: [Target.Dependency], tests: [Target.Dependency] = []) -> [Target] {
  [
    .target(name: name, dependencies: dependencies, cSettings: glibc, swiftSettings: strict),
    .testTarget(
      name: "\(name)Tests",
      dependencies: daemonParts + daemonLibraries + [
        "ForwarderTestSupport", "FleetTestSupport", "LocalDNSTestSupport", "TestSupport",
      ] + tests,
      cSettings: glibc, swiftSettings: testSettings),
  ]
}

let layer3: [Target] =
  part(
    "Frontend",
    [
      "DNSWire", "EventLoop", "Ciphers", "Files", "JSON", "Routing", "MessageCache", "Listener", "FairShares",
      "Telemetry", "Streams", "HTTPMessage", "HTTPServer",
      "ServiceManager", "CSocket", "CHotPath", "CEvent", logging,
    ])
  + part(
    "Upstreams",
    [
      "DNSWire", "EventLoop", "Ciphers", "Configuration", "HTTPMessage", "HTTPDNS", "HTTPClient", "LocalDNS",
      "Persistence", "FairShares", "PublicSuffixes", "Files", "Refresh", "Telemetry", logging,
    ])
  // Its tests are the resolver's, in whose scenes names become busy.
  + [
    .target(
      name: "BusyNames", dependencies: ["Upstreams", "DNSWire", "EventLoop", "MessageCache", "HTTPDNS"],
      cSettings: glibc, swiftSettings: strict)
  ]
  + part(
    "Resolver",
    [
      "Frontend", "Upstreams", "BusyNames", "DNSWire", "EventLoop", "Configuration", "MessageCache", "Routing",
      "Refresh", "Ranking", "Fleet", "FirewallSets", "HTTPDNS", "JSON", "LocalDNS", "FairShares", "Telemetry",
    ])

// Layer 4: the assembly and the two HTTP faces. Layer 5: the programs.
let programs: [Target] =
  part("Forwarder", daemonParts + daemonLibraries, tests: ["Forwarder", "TLSTestSupport"])
  // Scenes of the daemon's tests: test targets, since they look inside what they join.
  + [
    .testTarget(
      name: "ForwarderTestSupport",
      dependencies: daemonParts + daemonLibraries + ["LocalDNSTestSupport", "TestSupport"],
      cSettings: glibc,
      swiftSettings: testSettings)
  ]
  + module(
    "Control",
    [
      "DNSWire", "EventLoop", "Configuration", "MessageCache", "HTTPMessage", "HTTPServer", "Frontend", "Upstreams",
      "BusyNames", "Resolver", "Refresh", "Ranking", "Fleet", "Store", "Persistence",
      "Forwarder", "JSON", "FirewallSets", "Lists", "ListStore", "Telemetry", "Terminal", "CAccess",
    ],
    tests: ["HTTPTestSupport", logging], settings: cold)
  + module(
    "Dashboard",
    [
      "DNSWire", "EventLoop", "Files", "Ciphers", "Configuration", "HTTPMessage", "HTTPServer", "Frontend", "Upstreams",
      "BusyNames", "Resolver", "Refresh", "Ranking", "Fleet", "Store", "MessageCache", "Persistence", "Forwarder",
      "Control", "JSON", "Telemetry", "CPage",
    ],
    tests: ["HTTPTestSupport", "ListStore", "FirewallSets"])
  + module(
    "Web",
    [
      "Dashboard", "DNSWire", "EventLoop", "Ciphers", "Configuration", "MessageCache", "HTTPMessage", "HTTPServer",
      "Frontend",
      "Upstreams",
      "Resolver", "Refresh", "Ranking", "Fleet", "Store", "Forwarder", "LocalDNS", "Lists", "FirewallSets", "ListStore",
      "Telemetry",
    ],
    tests: ["HTTPTestSupport"])
  + [
    .executableTarget(
      name: "httpdnsd",
      dependencies: [
        "Forwarder", "Control", "Dashboard", "Web", "HTTPServer", "SystemSetup", "Terminal", "CProcess", argumentParser,
      ]
        + daemonParts + daemonLibraries,
      cSettings: glibc, swiftSettings: cold),
    .executableTarget(
      name: "httpdns-simulator",
      dependencies: [
        "HTTPMessage", "HTTPServer", "Streams", "EventLoop", "DNSWire", "Ciphers", "CCrypto", "Files", "JSON",
        argumentParser,
      ],
      cSettings: glibc, swiftSettings: strict),
    .testTarget(
      name: "SimulatorTests",
      dependencies: [
        "httpdns-simulator", "HTTPMessage", "HTTPServer", "Streams", "EventLoop", "DNSWire", "Ciphers",
        "HTTPTestSupport",
      ],
      exclude: ["Data"], cSettings: glibc, swiftSettings: testSettings),
    // What saving and loading the cache costs; not installed.
    .executableTarget(
      name: "cache-bench", dependencies: ["Persistence", "MessageCache", "EventLoop", "DNSWire"],
      path: "Benchmarks/CacheBench", cSettings: glibc, swiftSettings: strict),
    // It starts the programs and shares no code with them but the message parser and the writer of cache files; of nghttp2
    // it uses the decoder of fields.
    .testTarget(
      name: "EndToEndTests", dependencies: ["DNSWire", "Persistence", "TestSupport", "TLSTestSupport", "CHTTP2"],
      exclude: ["Data"],
      cSettings: glibc,
      swiftSettings: testSettings),
    // No part of the product: what the scheduler costs (Benchmarks/README.md).
    .executableTarget(
      name: "refresh-bench", dependencies: ["Refresh", "EventLoop", "DNSWire"], path: "Benchmarks/refresh",
      cSettings: glibc,
      swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: ["EventLoop", "Files", logging], path: "Tests/TestSupport", cSettings: glibc,
      swiftSettings: strict),
    // The server's side of a TLS connection, as hostile as a test wants it.
    .target(
      name: "TLSTestSupport", dependencies: ["CTLS", "CEvent", "TestSupport"], path: "Tests/TLSTestSupport",
      cSettings: glibc, swiftSettings: strict),
    // Odd plain resolvers on a virtual clock.
    .target(
      name: "LocalDNSTestSupport", dependencies: ["LocalDNS", "EventLoop", "DNSWire", "TestSupport"],
      path: "Tests/LocalDNSTestSupport", cSettings: glibc, swiftSettings: strict),
    // A store in memory for several daemons on a virtual clock.
    .target(
      name: "FleetTestSupport",
      dependencies: ["Configuration", "Fleet", "Store", "EventLoop", "DNSWire", "TestSupport"],
      path: "Tests/FleetTestSupport", cSettings: glibc, swiftSettings: strict),
    .target(
      name: "HTTPTestSupport", dependencies: ["EventLoop", "CEvent"], path: "Tests/HTTPTestSupport", cSettings: glibc,
      swiftSettings: strict),
  ]

// What must hold whatever a stranger sends: the tests replay Fuzz/Corpus, libFuzzer looks for more.
let fuzzing: [Target] =
  [
    .target(
      name: "FuzzProperties",
      dependencies: [
        "DNSWire", "EventLoop", "Ciphers", "Configuration", "HTTPMessage", "HTTPDNS", "MessageCache", "Routing",
        "Listener",
        "LocalDNS",
        "Persistence", "Store", "Frontend", "Resolver", "CEvent", "Lists", "HTTPServer",
      ],
      path: "Fuzz/FuzzProperties", cSettings: glibc, swiftSettings: strict),
    .testTarget(
      name: "CorpusTests", dependencies: ["FuzzProperties", "DNSWire", "TestSupport"], cSettings: glibc,
      swiftSettings: testSettings),
  ]
  + (isFuzzing
    ? [
      .target(name: "CFuzzer", path: "Fuzz/CFuzzer"),
      // gold, the default linker, cannot replace the `main` that libFuzzer brings.
      .executableTarget(
        name: "httpdnsd-fuzz", dependencies: ["FuzzProperties", "CFuzzer"], path: "Fuzz/Fuzzer", cSettings: glibc,
        swiftSettings: strict, linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]),
    ] : [])

let package = Package(
  name: "httpdnsd",
  products: [
    .executable(name: "httpdnsd", targets: ["httpdnsd"]),
    .executable(name: "httpdns-simulator", targets: ["httpdns-simulator"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
  ],
  targets: layer0 + layer1 + layer2 + layer3 + programs + fuzzing,
  cxxLanguageStandard: .cxx17
)
