// Screen.swift -- takes over the whole screen of a terminal, and restores it afterwards.
//
// The process must have one thread: signals arrive through a descriptor. However a `Screen` ends, by a key, a signal or
// its deinit, `leave` restores the terminal. In the background of a shell the process stops.

import Glibc

/// A colour of the terminal's own palette; the raw values are those of ECMA-48.
public enum ScreenColour: Int, Hashable, Sendable {
  case red = 31
  case green = 32
  case yellow = 33
}

public struct ScreenLine: Hashable, Sendable {
  /// A part of the line in a colour.
  public struct Span: Hashable, Sendable {
    /// The positions of the characters in the line.
    public var range: Range<Int>
    /// The colour of these characters.
    public var colour: ScreenColour

    /// The range may extend beyond the text.
    public init(_ range: Range<Int>, _ colour: ScreenColour) {
      self.range = range
      self.colour = colour
    }
  }

  /// The text. Control characters are shown as `?`, and what does not fit is cut off.
  public var text: String
  /// Whether the line is shown in reverse video.
  public var isHeading: Bool
  /// Parts in colours, from left to right; they do not overlap.
  public var spans: [Span]

  public init(_ text: String, isHeading: Bool = false, spans: [Span] = []) {
    self.text = text
    self.isHeading = isHeading
    self.spans = spans
  }
}

/// An event of a terminal.
public enum ScreenEvent: Hashable, Sendable {
  /// A key that sends this octet.
  case key(UInt8)
  /// The window has a new size, or the process was stopped: the screen must be drawn again.
  case changed
  /// A signal that asks the process to end; SIGHUP if the terminal hangs up.
  case end(signal: Int32)
  /// The time limit has passed.
  case time
}

/// A terminal that shows one screen of text.
public final class Screen {
  /// Becomes readable on a signal, for callers that also wait for something else.
  public var signalDescriptor: Int32 { signals.descriptor }
  private let input: Int32
  private let output: Int32
  private let before: termios
  private let signals: SignalSource
  private var isEntered = false
  /// Whether spans are coloured; false by default.
  public var hasColours = false

  private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
  private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

  /// Takes over the terminal as soon as this process is in the foreground; nil if a descriptor is not a terminal, or if
  /// no process is left that could bring this one to the foreground.
  public init?(input: Int32 = 0, output: Int32 = 1) {
    var settings = termios()
    // Read only in the foreground: in the background, the settings are those of the shell's line editor.
    guard isatty(input) == 1, isatty(output) == 1, Foreground.wait(on: input), tcgetattr(input, &settings) == 0,
      let signals = SignalSource([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT], ignoring: [SIGTTOU])
    else { return nil }
    self.input = input
    self.signals = signals
    before = settings
    self.output = Screen.unblocking(output)
    take()
  }

  deinit {
    leave()
    close(output)
  }

  /// Columns and rows of the window.
  public var size: (columns: Int, rows: Int) {
    var window = winsize()
    guard ioctl(input, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else { return (80, 24) }
    return (Int(window.ws_col), Int(window.ws_row))
  }

  /// Replaces the content of the screen. Does nothing in the background; `wait` then waits for the foreground.
  public func draw(_ lines: [ScreenLine]) {
    guard Foreground.isOurs(input) else { return }
    let (columns, rows) = size
    var text = "\u{1B}[H"
    for (index, line) in lines.prefix(rows).enumerated() {
      if index > 0 { text += "\r\n" }
      let shown = hasColours ? Screen.coloured(line, columns: columns) : Screen.fitting(line.text, columns: columns)
      text += line.isHeading ? "\u{1B}[7m\(shown)\u{1B}[K\u{1B}[m" : "\(shown)\u{1B}[K"
    }
    write(lines.count < rows ? "\(text)\u{1B}[J" : text)
  }

  /// Blocks until an event or the time limit.
  public func wait(atMost time: Duration) -> ScreenEvent {
    let end = ContinuousClock.now + time
    while true {
      // In the background, keys belong to the shell.
      guard Foreground.isOurs(input) else { return comeBack() }
      var entries = [input, signals.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      let (seconds, attoseconds) = max(.zero, end - .now).components
      let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
      let count = poll(&entries, 2, Int32(clamping: milliseconds))
      if let signal = signals.next() { return event(of: signal) }
      guard count != 0 else { return .time }
      guard count > 0, entries[0].revents != 0 else { continue }
      var octet: UInt8 = 0
      // At the end of its input no user is left.
      return read(input, &octet, 1) == 1 ? .key(octet) : .end(signal: SIGHUP)
    }
  }

  /// Restores the terminal. Further calls have no effect.
  public func leave() {
    guard isEntered else { return }
    isEntered = false
    write(Screen.leave)
    // In the background, the shell has already configured the terminal for itself.
    if Foreground.isOurs(input) {
      var settings = before
      tcsetattr(input, TCSANOW, &settings)
      // Unread keys must not reach the shell.
      tcflush(input, TCIFLUSH)
    }
    signals.restore()
  }

  private func take() {
    isEntered = true
    signals.take()
    var settings = before
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    // With IXON, Ctrl-S would block our output and so prevent `leave`.
    settings.c_iflag &= ~tcflag_t(IXON)
    tcsetattr(input, TCSANOW, &settings)
    write(Screen.enter)
  }

  private func event(of signal: Int32) -> ScreenEvent {
    switch signal {
    case SIGWINCH: return .changed
    case SIGTSTP:
      leave()
      raise(SIGSTOP)
      return comeBack()
    // After a SIGSTOP, which left no chance to restore the terminal.
    case SIGCONT: return comeBack()
    default: return .end(signal: signal)
    }
  }

  /// Takes over the terminal again as soon as this process is in the foreground.
  private func comeBack() -> ScreenEvent {
    if Foreground.isOurs(input) {
      signals.restore()
    } else {
      leave()
      guard Foreground.wait(on: input) else { return .end(signal: SIGHUP) }
    }
    // `leave` restores the settings from before the start, even if another process changed them meanwhile.
    take()
    return .changed
  }

  /// Writes what the terminal accepts, and waits at most 200 ms each time: a stalled terminal must not block us.
  private func write(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(output, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
        continue
      }
      if count < 0, errno == EINTR { continue }
      var entry = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
      guard count < 0, errno == EAGAIN, poll(&entry, 1, 200) > 0 else { return }
    }
  }

  /// Opens the terminal again for non-blocking writes: the shell shares the flags of the original descriptor.
  private static func unblocking(_ descriptor: Int32) -> Int32 {
    var name = [CChar](repeating: 0, count: 256)
    if ttyname_r(descriptor, &name, name.count) == 0 {
      let opened = open(name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
      if opened >= 0 { return opened }
    }
    return dup(descriptor)
  }

  /// The text as `fitting` returns it, with coloured spans.
  static func coloured(_ line: ScreenLine, columns: Int) -> String {
    let scalars = Array(fitting(line.text, columns: columns).unicodeScalars)
    var (result, position) = ("", 0)
    func append(upTo end: Int) {
      result.unicodeScalars.append(contentsOf: scalars[position..<max(position, min(end, scalars.count))])
      position = max(position, min(end, scalars.count))
    }
    for span in line.spans where span.range.lowerBound < scalars.count {
      append(upTo: span.range.lowerBound)
      result += "\u{1B}[\(span.colour.rawValue)m"
      append(upTo: span.range.upperBound)
      result += "\u{1B}[39m"
    }
    append(upTo: scalars.count)
    return result
  }

  /// Replaces control characters and cuts the text to the width. Wide characters are not expected: names are ASCII.
  static func fitting(_ text: String, columns: Int) -> String {
    var result = ""
    for scalar in text.unicodeScalars.prefix(columns) {
      let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
      result.unicodeScalars.append(isControl ? "?" : scalar)
    }
    return result
  }
}
