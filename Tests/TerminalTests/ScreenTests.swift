// ScreenTests.swift -- a terminal is taken over and restored, however the screen ends.

import Glibc
import TestSupport
import Testing

@testable import Terminal

/// A pseudo-terminal whose other end the test controls.
private final class TestTerminal {
  let seat: Int32
  let terminal: Int32

  init(columns: UInt16 = 40, rows: UInt16 = 5) throws {
    seat = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(seat >= 0 && grantpt(seat) == 0 && unlockpt(seat) == 0)
    terminal = open(String(cString: ptsname(seat)), O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(terminal >= 0)
    resize(columns: columns, rows: rows)
  }

  deinit {
    close(seat)
    close(terminal)
  }

  func resize(columns: UInt16, rows: UInt16) {
    var window = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(seat, UInt(TIOCSWINSZ), &window)
  }

  /// All modes, flag by flag.
  var modes: [UInt32] {
    var settings = termios()
    tcgetattr(terminal, &settings)
    return [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag]
  }

  /// The output since the last call.
  var output: String {
    // Marks the end of the output so far.
    let mark = Array("\u{1}the end\u{1}".utf8)
    write(terminal, mark, mark.count)
    var octets: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 4096)
    var entry = pollfd(fd: seat, events: Int16(POLLIN), revents: 0)
    while !octets.suffix(mark.count).elementsEqual(mark), poll(&entry, 1, 10_000) > 0 {
      let count = read(seat, &block, block.count)
      guard count > 0 else { break }
      octets += block[..<count]
    }
    octets.removeLast(min(mark.count, octets.count))
    // The terminal converts line ends.
    return String(decoding: octets, as: UTF8.self).replacing("\r\r\n", with: "\r\n")
  }

  func type(_ text: String) { _ = write(seat, text, text.utf8.count) }
}

// One at a time, because signal actions are per process.
@Suite(.serialized) struct `A screen` {
  @Test func `a screen shows its lines, cut to the window, and restores the terminal`() throws {
    let terminal = try TestTerminal(columns: 10, rows: 3)
    let before = terminal.modes
    let screen = try #require(Screen(input: terminal.terminal, output: terminal.terminal))
    #expect(terminal.modes != before)
    #expect(terminal.output == "\u{1B}[?1049h\u{1B}[?25l")
    #expect(screen.size == (10, 3))
    screen.draw([ScreenLine("head", isHeading: true), ScreenLine("0123456789abc\u{1B}"), ScreenLine("c\u{1B}[2J")])
    #expect(
      terminal.output == "\u{1B}[H\u{1B}[7mhead\u{1B}[K\u{1B}[m\r\n0123456789\u{1B}[K\r\nc?[2J\u{1B}[K")
    terminal.resize(columns: 5, rows: 2)
    screen.draw([ScreenLine("0123456789"), ScreenLine("b"), ScreenLine("not seen")])
    #expect(terminal.output == "\u{1B}[H01234\u{1B}[K\r\nb\u{1B}[K")
    screen.draw([ScreenLine("a")])
    #expect(terminal.output == "\u{1B}[Ha\u{1B}[K\u{1B}[J")
    screen.leave()
    #expect(terminal.output == "\u{1B}[?25h\u{1B}[?1049l" && terminal.modes == before)
    screen.leave()
    #expect(terminal.output.isEmpty)
  }

  @Test func `a screen shows colours if allowed, cut with their line`() throws {
    let terminal = try TestTerminal(columns: 10, rows: 3)
    let screen = try #require(Screen(input: terminal.terminal, output: terminal.terminal))
    let line = ScreenLine(
      "a up b downright", spans: [.init(2..<4, .green), .init(7..<16, .red), .init(40..<41, .yellow)])
    _ = terminal.output
    screen.draw([line])
    #expect(terminal.output == "\u{1B}[Ha up b dow\u{1B}[K\u{1B}[J")
    screen.hasColours = true
    screen.draw([line])
    #expect(
      terminal.output == "\u{1B}[Ha \u{1B}[32mup\u{1B}[39m b \u{1B}[31mdow\u{1B}[39m\u{1B}[K\u{1B}[J")
    screen.leave()
  }

  @Test func `a screen restores the terminal when it is released`() throws {
    let terminal = try TestTerminal()
    let before = terminal.modes
    do { _ = try #require(Screen(input: terminal.terminal, output: terminal.terminal)) }
    #expect(terminal.modes == before && terminal.output.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
  }

  @Test func `a screen reports keys, timeouts, and the end of input`() throws {
    let terminal = try TestTerminal()
    let screen = try #require(Screen(input: terminal.terminal, output: terminal.terminal))
    terminal.type("q")
    #expect(screen.wait(atMost: .seconds(10)) == .key(UInt8(ascii: "q")))
    #expect(screen.wait(atMost: .milliseconds(1)) == .time)
    #expect(screen.wait(atMost: .seconds(-1)) == .time)
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT]) func `a screen reports signals, and restores their handlers`(
    number: Int32
  ) throws {
    let terminal = try TestTerminal()
    var old = sigaction()
    sigaction(number, nil, &old)
    let screen = try #require(Screen(input: terminal.terminal, output: terminal.terminal))
    // Not `raise`: the current thread may block signals.
    kill(getpid(), number)
    var entry = pollfd(fd: screen.signalDescriptor, events: Int16(POLLIN), revents: 0)
    #expect(poll(&entry, 1, 1000) == 1)
    #expect(screen.wait(atMost: .seconds(10)) == .end(signal: number))
    kill(getpid(), SIGWINCH)
    #expect(screen.wait(atMost: .seconds(10)) == .changed)
    screen.leave()
    var new = sigaction()
    sigaction(number, nil, &new)
    #expect(
      unsafeBitCast(new.__sigaction_handler.sa_handler, to: Int.self)
        == unsafeBitCast(old.__sigaction_handler.sa_handler, to: Int.self))
  }

  @Test func `a screen needs a terminal`() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    #expect(Screen(input: ends[0], output: ends[1]) == nil)
    let terminal = try TestTerminal()
    #expect(Screen(input: terminal.terminal, output: ends[1]) == nil)
  }

  @Test func `leaving a screen is bounded in time if its output is not read`() throws {
    let terminal = try TestTerminal(columns: 500, rows: 500)
    let screen = try #require(Screen(input: terminal.terminal, output: terminal.terminal))
    let line = ScreenLine(String(repeating: "x", count: 500))
    let begin = ContinuousClock.now
    screen.draw(Array(repeating: line, count: 500))
    screen.leave()
    #expect(ContinuousClock.now - begin < longestStep)
  }
}
