// Form.swift -- what a key may hold: the words for it and the conversion of it.

/// A form that a value can have.
struct Form<Result> {
  /// What is allowed, in words.
  let allowed: String
  /// Converts a value, or records what is wrong with it and returns nil.
  let read: (Value, Place, Report) -> Result?

  /// A form that records its mistakes itself.
  init(allowed: String, read: @escaping (Value, Place, Report) -> Result?) {
    self.allowed = allowed
    self.read = read
  }

  /// A form of one piece: where the conversion gives nil, the whole value is refused.
  init(_ allowed: String, _ convert: @escaping (Value) -> Result?) {
    self.init(allowed: allowed) { value, place, report in
      let result = convert(value)
      if result == nil { report.refuse(value, at: place, allowed: allowed) }
      return result
    }
  }

  /// An empty string for nothing, or another form.
  static func optional<Wrapped>(_ form: Form<Wrapped>) -> Form where Result == Wrapped? {
    Form(allowed: form.allowed + ", or \"\"") { value, place, report in
      value == .string("") ? .some(nil) : form.read(value, place, report).map { .some($0) }
    }
  }

  /// An array of a form; all of its wrong elements are recorded.
  static func list<Element>(of form: Form<Element>, atLeast least: Int = 0) -> Form where Result == [Element] {
    let allowed = "an array" + (least > 0 ? " of at least \(least)" : "") + "; each: \(form.allowed)"
    return Form(allowed: allowed) { value, place, report in
      guard case .array(let values) = value, values.count >= least else {
        report.refuse(value, at: place, allowed: allowed)
        return nil
      }
      let elements = values.enumerated().compactMap { form.read($0.element, place.index($0.offset), report) }
      return elements.count == values.count ? elements : nil
    }
  }

  /// An array of a form without repetition.
  static func distinctList<Element: Hashable>(
    of form: Form<Element>, atLeast least: Int = 0
  ) -> Form where Result == [Element] {
    let list = Form.list(of: form, atLeast: least)
    return Form(allowed: list.allowed) { value, place, report in
      guard let elements = list.read(value, place, report), case .array(let values) = value else { return nil }
      var seen: Set<Element> = []
      for (index, element) in elements.enumerated() where !seen.insert(element).inserted {
        report.refuse("\(values[index].shown(at: place)) again", at: place.index(index), allowed: "each only once")
      }
      return seen.count == elements.count ? elements : nil
    }
  }
}
