// ServerRotationTests.swift -- the order of a provider's servers and when it changes, also against a model.

import TestSupport
import Testing
@testable import Upstreams

@Suite struct ServerRotationTests {
  @Test func `the servers are tried in the order of the configuration, none twice`() {
    let rotation = ServerRotation(count: 3, attemptsBeforeSwitch: 2)
    #expect(rotation.order == [0, 1, 2])
    #expect(ServerRotation(count: 1, attemptsBeforeSwitch: 1).order == [0])
  }

  @Test func `consecutive failures of the current server make the next one current`() {
    var rotation = ServerRotation(count: 3, attemptsBeforeSwitch: 3)
    for (server, order) in [(0, [1, 2, 0]), (1, [2, 0, 1]), (2, [0, 1, 2])] {
      let moves = (0..<3).map { _ in rotation.failed(server) }
      #expect(moves == [false, false, true])
      #expect(rotation.order == order)
    }
  }

  @Test func `a success resets the count of failures`() {
    var rotation = ServerRotation(count: 2, attemptsBeforeSwitch: 2)
    for _ in 0..<10 {
      let moves = rotation.failed(0)
      #expect(!moves)
      rotation.succeeded(0)
    }
    #expect(rotation.current == 0)
  }

  @Test func `failures of a server that is not current change nothing`() {
    var rotation = ServerRotation(count: 2, attemptsBeforeSwitch: 1)
    let moves = rotation.failed(1)
    #expect(!moves)
    #expect(rotation.current == 0)
  }

  @Test func `a single server stays, however often it fails`() {
    var rotation = ServerRotation(count: 1, attemptsBeforeSwitch: 1)
    let moves = (0..<100).map { _ in rotation.failed(0) }
    #expect(!moves.contains(true))
    #expect(rotation.order == [0])
  }

  @Test func `every server stays in the order, and the current one has not failed too often, for random events`() {
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<500 {
      let count = Int.random(in: 1...5, using: &random)
      let limit = Int.random(in: 1...4, using: &random)
      var rotation = ServerRotation(count: count, attemptsBeforeSwitch: limit)
      var run = 0
      for _ in 0..<60 {
        let first = rotation.current
        if random.oneIn(3) {
          rotation.succeeded(first)
          run = 0
        } else {
          run += 1
          let moves = count > 1 && run == limit
          let moved = rotation.failed(first)
          #expect(moved == moves)
          #expect(rotation.current == (moves ? (first + 1) % count : first))
          if moves { run = 0 }
        }
        #expect(Set(rotation.order) == Set(0..<count))
        #expect(rotation.order.count == count)
        #expect(rotation.order[0] == rotation.current)
      }
    }
  }
}
