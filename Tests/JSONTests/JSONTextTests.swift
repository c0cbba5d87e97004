// JSONTextTests.swift -- texts that are written, and the place where one is broken.

import JSON
import Testing

@Suite struct JSONTextTests {
  @Test func `a JSON string is on one line and has no control character`() {
    #expect(JSONText.string("a\"\\\n\r\t\u{0}\u{7F}\u{9B}\u{2028}é") == #""a\"\\\n\r\t\u0000\u007f\u009b\u2028é""#)
  }

  @Test func `an object omits members without a value`() {
    let list = JSONText.array(["true", "{}"])
    #expect(JSONText.object(["a": "1", "b": nil, "c\n": list]) == #"{"a":1,"c\n":[true,{}]}"#)
    #expect(JSONText.object([("a", "1"), ("b", "2")]) == #"{"a":1,"b":2}"#)
    #expect(JSONText.object([:]) == "{}" && JSONText.array([]) == "[]")
  }

  @Test func `a duration has as many decimal places as it needs, at most three`() {
    #expect(JSONText.milliseconds(.microseconds(1_990)) == "1.99" && JSONText.seconds(.milliseconds(-1_500)) == "-1.5")
  }

  @Test(
    arguments: [
      ("[1, 2.5e-3, \"a\\u00e9\\n\", true, false, null, {}, [], {\"a\": {\"b\": [0]}}]", nil), (" 7 ", nil),
      ("[1,]", 3), ("{\"a\" 1}", 5), ("{\"a\":1,}", 7), ("{a:1}", 1), ("[1 2]", 3), ("[\"a\nb\"]", 3), ("tru", 3),
      ("trux", 3), ("01", 1), ("1.", 2), ("-", 1), ("\"\\x\"", 2), ("\"\\u12g4\"", 5), ("[}", 1), ("]", 0), ("[[1]", 4),
      ("1 1", 2), ("\u{FEFF}[1]", nil), ("\u{FEFF}[}", 4),
    ] as [(String, Int?)])
  func `the first octet that JSON does not allow is found`(text: String, index: Int?) {
    let place = jsonFault(in: Array(text.utf8))
    guard let index else {
      #expect(place == nil)
      return
    }
    #expect(place?.line == 1 && place?.column == index + 1 && place?.isEnd == (index == text.utf8.count), "\(text)")
  }
}
