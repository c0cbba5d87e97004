// Forms.swift -- the forms that several sections use.

import DNSWire

extension Form where Result == Bool {
  static var boolean: Form {
    Form("true or false") { value in
      guard case .boolean(let flag) = value else { return nil }
      return flag
    }
  }
}

extension Form where Result == Int {
  static func integer(_ range: ClosedRange<Int>) -> Form {
    Form("an integer from \(range.lowerBound) to \(range.upperBound)") { value in
      guard case .integer(let number) = value, range.contains(number) else { return nil }
      return number
    }
  }

  /// A number of octets, as text such as `32MiB`.
  static func size(_ range: ClosedRange<Int>) -> Form {
    let predicate = "is not a size from \(sizeText(range.lowerBound)) to \(sizeText(range.upperBound))"
    return Form("e.g. \"32MiB\"", is: predicate) { value in
      guard let size = value.line.flatMap({ parseSize($0) }), range.contains(size) else { return nil }
      return size
    }
  }
}

extension Form where Result == Double {
  static func number(_ range: ClosedRange<Double>) -> Form {
    Form("a number from \(range.lowerBound) to \(range.upperBound)") { value in
      switch value {
      case .float(let number) where range.contains(number): number
      case .integer(let number) where range.contains(Double(number)): Double(number)
      default: nil
      }
    }
  }
}

extension Form where Result == Duration {
  static func duration(_ range: ClosedRange<Duration>) -> Form {
    let bounds = "from \(durationText(range.lowerBound)) to \(durationText(range.upperBound))"
    return Form("e.g. \"1500ms\", \"3s\", \"10m\", \"2h\" or \"1d\"", is: "is not a duration \(bounds)") { value in
      guard let duration = value.line.flatMap({ parseDuration($0) }), range.contains(duration) else { return nil }
      return duration
    }
  }

  /// A duration of whole seconds, by default up to seven days (RFC 8767 section 4).
  static func ttl(_ range: ClosedRange<Duration> = .zero ... .seconds(604_800)) -> Form {
    let bounds = "from \(durationText(range.lowerBound)) to \(durationText(range.upperBound))"
    let predicate = "is not a duration in whole seconds \(bounds)"
    return Form("e.g. \"30s\", \"10m\", \"2h\" or \"1d\"", is: predicate) { value in
      guard let duration = value.line.flatMap({ parseDuration($0) }), range.contains(duration),
        duration.components.attoseconds == 0
      else { return nil }
      return duration
    }
  }
}

extension Form where Result: RawRepresentable & CaseIterable, Result.RawValue == String {
  /// One of a closed set of words.
  static var choice: Form {
    let words = Result.allCases.map { "\"\($0.rawValue)\"" }
    return Form("one of " + words.joined(separator: ", ")) { value in value.line.flatMap { Result(rawValue: $0) } }
  }
}

extension Form where Result == String {
  static var absolutePath: Form {
    Form("a path that begins with \"/\"") { value in value.line.flatMap { $0.hasPrefix("/") ? $0 : nil } }
  }

  /// A name for use in rules, logs and metrics.
  static var identifier: Form {
    Form("1 to 63 letters, digits, \"-\", \"_\" or \".\", in quotes") { value in
      value.line.flatMap { isIdentifier($0) ? $0 : nil }
    }
  }

  static var text: Form {
    Form("one line of text in quotes, not empty") { value in value.line.flatMap { $0.isEmpty ? nil : $0 } }
  }
}

extension Form where Result == DomainName {
  static var domainName: Form {
    Form("a domain name in ASCII (xn--…)") { value in
      guard let line = value.line, line.utf8.allSatisfy({ 0x21...0x7E ~= $0 }), !line.contains("*") else { return nil }
      return DomainName(text: line)?.lowercased
    }
  }
}

extension Form where Result == IPAddress {
  static var address: Form { Form("an IPv4 or IPv6 address") { value in value.line.flatMap { IPAddress(text: $0) } } }
}

/// Whether the text is 1 to 63 letters, digits, `-`, `_` and `.`.
func isIdentifier(_ text: String) -> Bool {
  (1...63).contains(text.utf8.count) && text.utf8.allSatisfy { isLetterOrDigit($0) || "-_.".utf8.contains($0) }
}
