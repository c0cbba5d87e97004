// Form.swift -- the form of a value: its description for messages and its conversion.

/// A form that a value can have.
struct Form<Result> {
  /// The allowed values, as the object of "expected".
  let allowed: String
  /// Converts a value, or records a mistake and returns nil.
  let read: (Value, ValuePath, MistakeReport) -> Result?

  /// A form whose `read` records mistakes itself.
  init(allowed: String, read: @escaping (Value, ValuePath, MistakeReport) -> Result?) {
    self.allowed = allowed
    self.read = read
  }

  /// A form that refuses the value as a whole where the conversion returns nil.
  ///
  /// - Parameter predicate: what a message says of a refused value, before `; expected`.
  init(_ allowed: String, is predicate: String = "is not valid", _ convert: @escaping (Value) -> Result?) {
    self.init(allowed: allowed) { value, place, report in
      let result = convert(value)
      if result == nil { report.refuse(value, is: predicate, at: place, allowed: allowed) }
      return result
    }
  }

  /// Another form, or an empty string for nil.
  static func optional<Wrapped>(_ form: Form<Wrapped>) -> Form where Result == Wrapped? {
    Form(allowed: form.allowed + ", or \"\"") { value, place, report in
      value == .string("") ? .some(nil) : form.read(value, place, report).map { .some($0) }
    }
  }

  /// Another form, for a property that is nil without the key.
  static func some<Wrapped>(_ form: Form<Wrapped>) -> Form where Result == Wrapped? {
    Form(allowed: form.allowed) { value, place, report in form.read(value, place, report).map { .some($0) } }
  }

  /// An array of a form. Every invalid element is a mistake of its own.
  static func list<Element>(of form: Form<Element>, atLeast least: Int = 0) -> Form where Result == [Element] {
    let allowed = "an array" + (least > 0 ? " of at least \(least)" : "") + ", each element \(form.allowed)"
    return Form(allowed: allowed) { value, place, report in
      guard case .array(let values) = value, values.count >= least else {
        report.refuse(value, at: place, allowed: allowed)
        return nil
      }
      let elements = values.enumerated().compactMap { form.read($0.element, place.index($0.offset), report) }
      return elements.count == values.count ? elements : nil
    }
  }

  /// An array of a form, without duplicates.
  static func distinctList<Element: Hashable>(
    of form: Form<Element>, atLeast least: Int = 0
  ) -> Form where Result == [Element] {
    let list = Form.list(of: form, atLeast: least)
    return Form(allowed: list.allowed) { value, place, report in
      guard let elements = list.read(value, place, report), case .array(let values) = value else { return nil }
      var seen: Set<Element> = []
      for (index, element) in elements.enumerated() where !seen.insert(element).inserted {
        report.refuse(
          "\(values[index].shown(at: place)) is listed twice", at: place.index(index), allowed: "remove one", .failure)
      }
      return seen.count == elements.count ? elements : nil
    }
  }
}
