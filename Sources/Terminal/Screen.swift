// Screen.swift -- the whole screen of a terminal, for a while: what was there before is there again afterwards.
//
// One thread, and no other in the process: signals come by a descriptor. There is no way out but by `leave`, which every
// end of a `Screen` takes: a key, a signal, or being let go. In the background of a shell it stops: the terminal is not ours.

import Glibc

/// A line on the screen.
public struct ScreenLine: Hashable, Sendable {
  /// What it says; a control character or what does not fit is left out.
  public var text: String
  /// Whether it stands out.
  public var isHeading: Bool

  /// Such a line.
  public init(_ text: String, isHeading: Bool = false) {
    self.text = text
    self.isHeading = isHeading
  }
}

/// What may happen on a terminal.
public enum ScreenEvent: Hashable, Sendable {
  /// A key that sends this octet.
  case key(UInt8)
  /// The window has another size, or was away for a while: it has to be drawn anew.
  case changed
  /// A signal that asks the program to end, the hang-up of the terminal among them.
  case end(signal: Int32)
  /// The time is over.
  case time
}

/// A terminal that shows one screen of text.
public final class Screen {
  /// Readable when a signal has come: for who waits for something else beside.
  public var signalDescriptor: Int32 { signals.descriptor }
  private let input: Int32
  private let output: Int32
  private let before: termios
  private let signals: SignalSource
  private var isEntered = false

  private static let enter = "\u{1B}[?1049h\u{1B}[?25l"
  private static let leave = "\u{1B}[?25h\u{1B}[?1049l"

  /// Takes over the terminal, once it is in the foreground; nil where the two descriptors are none, or where it is another's
  /// and nobody is left who could bring us to the foreground.
  public init?(input: Int32 = 0, output: Int32 = 1) {
    var settings = termios()
    // The settings of the foreground: while we are in the background they are those of the shell's line editor.
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

  /// Columns and rows at present.
  public var size: (columns: Int, rows: Int) {
    var window = winsize()
    guard ioctl(input, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else { return (80, 24) }
    return (Int(window.ws_col), Int(window.ws_row))
  }

  /// Shows those lines in the place of what was there; nothing in the background, where `wait` comes next.
  public func draw(_ lines: [ScreenLine]) {
    guard Foreground.isOurs(input) else { return }
    let (columns, rows) = size
    var text = "\u{1B}[H"
    for (index, line) in lines.prefix(rows).enumerated() {
      if index > 0 { text += "\r\n" }
      let shown = Screen.fitting(line.text, columns: columns)
      text += line.isHeading ? "\u{1B}[7m\(shown)\u{1B}[K\u{1B}[m" : "\(shown)\u{1B}[K"
    }
    write(lines.count < rows ? "\(text)\u{1B}[J" : text)
  }

  /// Waits until something happens.
  public func wait(atMost time: Duration) -> ScreenEvent {
    let end = ContinuousClock.now + time
    while true {
      // A key that is read in the background would be the shell's.
      guard Foreground.isOurs(input) else { return comeBack() }
      var entries = [input, signals.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      let (seconds, attoseconds) = max(.zero, end - .now).components
      let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
      let count = poll(&entries, 2, Int32(clamping: milliseconds))
      if let signal = signals.next() { return event(of: signal) }
      guard count != 0 else { return .time }
      guard count > 0, entries[0].revents != 0 else { continue }
      var octet: UInt8 = 0
      // At the end of its input there is nobody left to look.
      return read(input, &octet, 1) == 1 ? .key(octet) : .end(signal: SIGHUP)
    }
  }

  /// Gives the terminal back as it was. May be called again.
  public func leave() {
    guard isEntered else { return }
    isEntered = false
    write(Screen.leave)
    // In the background the shell has made the terminal its own already.
    if Foreground.isOurs(input) {
      var settings = before
      tcsetattr(input, TCSANOW, &settings)
      // Keys that were meant for us are not for the shell.
      tcflush(input, TCIFLUSH)
    }
    signals.restore()
  }

  private func take() {
    isEntered = true
    signals.take()
    var settings = before
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    // A terminal that is stopped by a key would keep us from leaving it.
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
    // After SIGSTOP, before which there was no way to leave the screen.
    case SIGCONT: return comeBack()
    default: return .end(signal: signal)
    }
  }

  /// Takes the terminal over anew as soon as that is in the foreground.
  private func comeBack() -> ScreenEvent {
    if Foreground.isOurs(input) {
      signals.restore()
    } else {
      leave()
      guard Foreground.wait(on: input) else { return .end(signal: SIGHUP) }
    }
    // Somebody may have changed the terminal meanwhile, but what was before us is what we give back.
    take()
    return .changed
  }

  /// Writes as much as the terminal takes within a moment: what hangs must not hang us.
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

  /// The terminal opened anew, so that writing to it need not wait: the flag would be that of the shell, too.
  private static func unblocking(_ descriptor: Int32) -> Int32 {
    var name = [CChar](repeating: 0, count: 256)
    if ttyname_r(descriptor, &name, name.count) == 0 {
      let opened = open(name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
      if opened >= 0 { return opened }
    }
    return dup(descriptor)
  }

  /// Text without control characters, cut to the width. Wide characters are not expected: names are ASCII.
  static func fitting(_ text: String, columns: Int) -> String {
    var result = ""
    for scalar in text.unicodeScalars.prefix(columns) {
      let isControl = scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
      result.unicodeScalars.append(isControl ? "?" : scalar)
    }
    return result
  }
}
