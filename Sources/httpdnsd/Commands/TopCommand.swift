// TopCommand.swift -- `httpdnsd top`: shows the running daemon's work on the whole screen.

import ArgumentParser
import Control
import Glibc
import JSON
import Terminal

struct TopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "Watch the running daemon: queries, cache, providers, busiest names.",
    discussion: """
      Queries per second by outcome and by RCODE, hit ratio, latency, providers with reasons below the table, \
      names that fail, and the busiest names. Figures cover the last interval. On a terminal the first ones cover the \
      time since the daemon started. Keys: q quits, space updates at once, b h a f r n sort the names, / filters them, \
      ? explains the keys. Without a terminal, or with --once, one interval is printed as text; with --json alone, each \
      interval is one line. These figures cover only the interval. States are coloured unless NO_COLOR is set.

      Example: httpdnsd top --interval 1
      Example: httpdnsd top --once --json

      Exit code 0: done; 1: the daemon cannot be reached, refuses or stops; 64: a mistake on the command line. A \
      signal terminates it.
      """)

  @OptionGroup var control: ControlOptions

  @Option(help: ArgumentHelp("The length of an interval in seconds, from 0.1 to 3600.", valueName: "seconds"))
  var interval = 2.0

  @Flag(help: "Print one interval as text.") var once = false

  func validate() throws {
    if !(0.1...3600).contains(interval) { throw ValidationError("--interval must be from 0.1 to 3600") }
  }

  func run() throws {
    let path = try control.path()
    let ending = once || control.json || TopCommand.isDumb ? stream(path) : watch(path) ?? stream(path)
    switch ending {
    case .quit: return
    case .failure(let error): throw control.failure(error)
    case .signal(let number):
      // The terminal is restored: the signal may take its default action.
      signal(number, SIG_DFL)
      raise(number)
    }
  }

  private enum Ending {
    case quit
    case failure(ControlClientError)
    case signal(Int32)
  }

  /// Prints one interval; with `--json` but without `--once`, one after the other until stdout is closed.
  private func stream(_ path: String) -> Ending {
    let client = ControlClient(path: path)
    let isEndless = control.json && !once
    do throws(ControlClientError) {
      var last = try client.sample()
      repeat {
        poll(nil, 0, Int32(interval * 1000))
        let sample = try client.sample()
        let frame = TopFrame(sample, after: last)
        let text = control.json ? frame.json + "\n" : frame.lines(rows: .max).map { "\($0.text)\n" }.joined()
        guard Console.print(text) else { return .quit }
        last = sample
      } while isEndless
      return .quit
    } catch { return .failure(error) }
  }

  /// Shows one interval after the other; nil if there is no terminal.
  private func watch(_ path: String) -> Ending? {
    guard let screen = Screen() else { return nil }
    defer { screen.leave() }
    screen.hasColours = TopCommand.allowsColours
    let client = ControlClient(path: path, patience: .seconds(5), interruption: screen.signalDescriptor)
    var frame: TopFrame?
    var last: TopSample?
    var view = TopView()
    while true {
      do throws(ControlClientError) {
        let sample = try client.sample()
        frame = TopFrame(sample, after: last)
        last = sample
      } catch .interrupted {
        // The signal is read below.
      } catch { return .failure(error) }
      if let ending = show(frame, &view, on: screen) { return ending }
    }
  }

  /// Draws and handles keys. Returns nil when the next sample is due.
  private func show(_ frame: TopFrame?, _ view: inout TopView, on screen: Screen) -> Ending? {
    let end = ContinuousClock.now + .seconds(interval)
    while true {
      if let frame {
        let (columns, rows) = screen.size
        let hint = ", every \(JSONText.short(interval)) s"
        screen.draw(frame.lines(rows: rows, columns: columns, hint: hint, view: view))
      }
      switch screen.wait(atMost: end - .now) {
      case .key(let key):
        switch view.press(key) {
        case .quit: return .quit
        case .next: return nil
        case .draw, .none: break
        }
      case .time: return nil
      case .changed: break
      case .end(let signal): return .signal(signal)
      }
      if frame == nil, end <= .now { return nil }
    }
  }

  /// https://no-color.org: any value that is not empty disables colours.
  private static var allowsColours: Bool { value("NO_COLOR").isEmpty && !["", "dumb"].contains(value("TERM")) }

  /// Whether the terminal can only print lines.
  private static var isDumb: Bool { value("TERM") == "dumb" }

  private static func value(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
}
