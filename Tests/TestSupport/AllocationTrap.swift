// AllocationTrap.swift -- shows that code does not allocate: it runs in a child process in which the allocator is a trap.
//
// The count of a whole process would include what other tests do meanwhile; a forked child has one thread only.

import Glibc

/// Runs code in which an allocation traps.
public enum AllocationTrap {
  /// How a child process ended.
  public enum Outcome: Equatable, Sendable {
    /// The code came to its end without allocating.
    case clean
    /// The code allocated, and did not survive it.
    case allocated
    /// The child ended in another way: the status of `waitpid`, or -1 where it could not be made.
    case failed(Int32)
  }

  /// Whether traps can be set: not under a sanitizer, whose allocator is its own.
  public static let isAvailable = ["__asan_init", "__tsan_init"].allSatisfy { (name: String) in dlsym(nil, name) == nil
  }

  /// Runs `body` in a child process; it must take no lock that another thread may hold, and everything in it that is set
  /// up once (metadata, globals) must have been used before.
  public static func run(_ body: () -> Void) -> Outcome {
    // Swift hides fork() because of what a child of many threads must not do; this one obeys.
    guard let symbol = dlsym(nil, "fork") else { return .failed(-1) }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)
    let traps = functions.compactMap { dlsym(nil, $0) }.map { Trap($0) }
    guard traps.count == functions.count else { return .failed(-1) }
    let child = fork()
    guard child != 0 else {
      signal(SIGTRAP, SIG_DFL)
      var noCore = rlimit(rlim_cur: 0, rlim_max: 0)
      setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &noCore)
      traps.withUnsafeBufferPointer { set($0) }
      body()
      _exit(0)
    }
    var status: Int32 = 0
    guard child > 0, waitpid(child, &status, 0) == child else { return .failed(-1) }
    return status == 0 ? .clean : status & 0x7F == SIGTRAP ? .allocated : .failed(status)
  }

  private static let functions: [String] = [
    "malloc", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign",
  ]

  /// Where a function begins, and the page of that.
  private struct Trap {
    let entry: UnsafeMutableRawPointer
    let page: UnsafeMutableRawPointer

    init(_ function: UnsafeMutableRawPointer) {
      entry = function
      page = UnsafeMutableRawPointer(bitPattern: UInt(bitPattern: function) & ~UInt(Trap.pageSize - 1))!
    }

    static let pageSize = sysconf(Int32(_SC_PAGESIZE))
  }

  /// Puts a breakpoint instruction where each function begins. The pages are this process's own from then on.
  private static func set(_ traps: UnsafeBufferPointer<Trap>) {
    #if arch(arm64)
      var instruction: UInt32 = 0xD420_0000
      let length = 4
    #else
      var instruction: UInt8 = 0xCC
      let length = 1
    #endif
    let size = Trap.pageSize
    var index = 0
    while index < traps.count {
      mprotect(traps[index].page, size, PROT_READ | PROT_WRITE)
      memcpy(traps[index].entry, &instruction, length)
      index += 1
    }
    while index > 0 {
      index -= 1
      mprotect(traps[index].page, size, PROT_READ | PROT_EXEC)
    }
  }
}
