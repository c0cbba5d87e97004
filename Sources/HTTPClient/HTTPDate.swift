// HTTPDate.swift -- parses the preferred form of an HTTP date (RFC 9110 section 5.6.7).

/// Parses a date such as `Sun, 06 Nov 1994 08:49:37 GMT` into seconds since 1970; nil for any other form.
func httpDate(_ text: Span<UInt8>) -> Int64? {
  guard text.count == 29, text[3] == UInt8(ascii: ","), text[19] == UInt8(ascii: ":"), text[22] == UInt8(ascii: ":")
  else { return nil }
  func number(_ start: Int, _ count: Int) -> Int64? { text.extracting(start..<(start + count)).number(from: 0) }
  guard let day = number(5, 2), let year = number(12, 4), let hour = number(17, 2), let minute = number(20, 2),
    let second = number(23, 2), let month = month(text.extracting(8..<11)), (1...31).contains(day),
    (1970...9999).contains(year), hour < 24, minute < 60, second <= 60, text.extracting(26..<29).hasPrefix("gmt")
  else { return nil }
  return (daysSince1970(year: year, month: month, day: day) * 24 + hour) * 3600 + minute * 60 + second
}

/// The number of a month from its name of three letters.
func month(_ name: Span<UInt8>) -> Int64? {
  let names: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"
  for month in 0..<12 {
    let start = month * 3
    if name[0] == names.utf8Start[start], name[1] == names.utf8Start[start + 1], name[2] == names.utf8Start[start + 2] {
      return Int64(month + 1)
    }
  }
  return nil
}

/// Days in the Gregorian calendar. The year starts in March, so that the leap day is its last day. Each response has a date,
/// and timegm() takes ten times as long.
func daysSince1970(year: Int64, month: Int64, day: Int64) -> Int64 {
  let year = month <= 2 ? year - 1 : year
  let monthFromMarch = (month + 9) % 12
  let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
  return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
}
