// TopCommand.swift -- `httpdnsd top`: what the running daemon does at present, on the whole screen.

import ArgumentParser
import Control
import Glibc
import Telemetry
import Terminal

/// Shows what the daemon does, again and again.
struct TopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "Watch the running daemon: queries, cache, providers, busiest names.",
    discussion: """
      Rate of queries and what becomes of them, hit ratio, how long answers take, providers, and the busiest names: \
      what happened in the last interval; at first, since the daemon started. The key q ends it, the space bar brings \
      the next figures at once. Without a terminal, or with --once, one interval is printed as text; with --json each \
      interval is one line.

      Example: httpdnsd top --interval 1
      Example: httpdnsd top --once --json

      Exit code 0: done; 1: the daemon cannot be reached or refuses, or is gone; 64: a mistake on the command line. A \
      signal ends it as signals do.
      """)

  @OptionGroup var control: ControlOptions

  @Option(help: ArgumentHelp("Seconds between two looks, from 0.1 to 3600.", valueName: "seconds"))
  var interval = 2.0

  @Flag(help: "One interval, as text, without touching the terminal.")
  var once = false

  func validate() throws {
    if !(0.1...3600).contains(interval) { throw ValidationError("--interval is from 0.1 to 3600") }
  }

  func run() throws {
    let path = try control.path()
    let ending = once || control.json ? stream(path) : watch(path) ?? stream(path)
    switch ending {
    case .quit: return
    case .failure(let error):
      Console.error("httpdnsd: \(error)")
      throw ExitCode.failure
    case .signal(let number):
      // The terminal is as it was: now the signal may do what it does.
      signal(number, SIG_DFL)
      raise(number)
    }
  }

  private enum Ending {
    case quit
    case failure(ControlClientError)
    case signal(Int32)
  }

  /// Prints one interval, or with `--json` one after the other.
  private func stream(_ path: String) -> Ending {
    let client = ControlClient(path: path)
    let isEndless = control.json && !once
    do throws(ControlClientError) {
      var last = try client.sample()
      repeat {
        poll(nil, 0, Int32(interval * 1000))
        let sample = try client.sample()
        let frame = TopFrame(sample, after: last)
        let text =
          control.json ? frame.json + "\n" : frame.lines(rows: .max).map { "\($0.text)\n" }.joined()
        guard Console.print(text) else { return .quit }
        last = sample
      } while isEndless
      return .quit
    } catch { return .failure(error) }
  }

  /// Shows one interval after the other; nil where there is no terminal.
  private func watch(_ path: String) -> Ending? {
    guard let screen = Screen() else { return nil }
    defer { screen.leave() }
    let client = ControlClient(path: path, patience: .seconds(5), interruption: screen.signalDescriptor)
    var frame: TopFrame?
    var last: TopSample?
    while true {
      do throws(ControlClientError) {
        let sample = try client.sample()
        frame = TopFrame(sample, after: last)
        last = sample
      } catch .interrupted {
        // The signal is read below.
      } catch { return .failure(error) }
      if let ending = show(frame, on: screen) { return ending }
    }
  }

  /// Draws until the interval is over; nil then.
  private func show(_ frame: TopFrame?, on screen: Screen) -> Ending? {
    let end = ContinuousClock.now + .seconds(interval)
    while true {
      if let frame {
        let hint = ", every \(JSONText.short(interval)) s; q ends it"
        let (columns, rows) = screen.size
        let lines = frame.lines(rows: rows, columns: columns, hint: hint)
        screen.draw(lines.map { ScreenLine($0.text, isHeading: $0.isHeading) })
      }
      switch screen.wait(atMost: end - .now) {
      case .key(UInt8(ascii: "q")), .key(UInt8(ascii: "Q")): return .quit
      case .key(UInt8(ascii: " ")), .time: return nil
      case .key, .changed: break
      case .end(let signal): return .signal(signal)
      }
      if frame == nil, end <= .now { return nil }
    }
  }
}
