// CorpusTests.swift -- replays Fuzz/Corpus: everything that was once of interest to a fuzz target.

import FuzzProperties
import TestSupport
import Testing

@Suite struct `The fuzz corpus` {
  @Test(arguments: properties.map { $0.name }) func `no input of the fuzz corpus breaks its property`(name: String)
    throws
  {
    let property = try #require(properties.first { $0.name == name }).init()
    let inputs = FuzzCorpus.inputs(of: name)
    // A corpus that was not found would pass.
    #expect(inputs.count >= 10)
    for input in inputs {
      do {
        try property.check(input.octets)
      } catch {
        Issue.record("\(input.path): \(error)")
      }
    }
  }

  @Test func `each folder of the fuzz corpus has a property`() {
    #expect(Set(FuzzCorpus.targets) == Set(properties.map { $0.name }))
  }
}
