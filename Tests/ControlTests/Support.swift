// Support.swift -- a control server on a loop of its own, and a folder for its socket.

import EventLoop
import Glibc
import HTTPTestSupport
import Synchronization

@testable import Control
@testable import Forwarder
@testable import MessageCache

/// A folder of its own, removed with what a test left in it.
final class TemporaryFolder {
  let path: String
  /// Where a socket can be.
  var socket: String { "\(path)/socket" }

  init() {
    var template = Array("/tmp/control-XXXXXX".utf8CString)
    path = String(cString: mkdtemp(&template))
  }

  deinit {
    for name in ["socket", "group"] { unlink("\(path)/\(name)") }
    rmdir(path)
  }
}

/// What a scene's actions were asked for.
final class Journal: Sendable {
  let flushed = Mutex<[CacheSelection]>([])
}

/// A server that listens, with actions that only note what they are asked for.
final class ControlScene {
  let folder = TemporaryFolder()
  let journal = Journal()
  private let loop: EventLoop
  private let thread: LoopThread
  private let server: ControlServer

  init(counts: FlushCounts = FlushCounts(), reports: [ProviderReport] = []) throws {
    let loop = try EventLoop()
    self.loop = loop
    let actions = ControlActions(
      flush: { [journal] names in
        journal.flushed.withLock { $0.append(names) }
        await loop.sleep(for: .zero)
        return counts
      }, providers: { reports })
    server = try ControlServer(on: loop, actions)
    try server.listen(path: folder.socket)
    thread = LoopThread(running: loop)
  }

  deinit { thread.join() }

  var client: ControlClient { ControlClient(path: folder.socket) }
  var raw: RawClient? { RawClient(toPath: folder.socket) }
}
