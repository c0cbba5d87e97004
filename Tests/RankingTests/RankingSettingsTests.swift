// RankingSettingsTests.swift -- when two configurations mean the same for ranking.

import Configuration
import Testing

@testable import Ranking

@Suite struct `The settings of ranking` {
  @Test func `a key that has no effect makes no other settings`() {
    var configuration = Configuration()
    let usual = RankingSettings(configuration)
    configuration.ranking.familyThreshold = .seconds(1)
    #expect(RankingSettings(configuration) == usual)
    configuration.ranking.families = .faster
    #expect(RankingSettings(configuration) != usual)
    let slow = RankingSettings(configuration)
    configuration.ranking.familyThreshold = .seconds(2)
    #expect(RankingSettings(configuration) != slow)
  }
}
