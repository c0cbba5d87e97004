// main.swift -- libFuzzer over one property: FUZZ_TARGET=NAME httpdnsd-fuzz [libFuzzer's options] CORPUS...
//
// The name is in the environment, so that the processes that libFuzzer starts to merge and to minimise have it too.

import CFuzzer
import FuzzProperties
import Glibc

let names = properties.map { $0.name }.joined(separator: " ")
guard let name = getenv("FUZZ_TARGET"), let chosen = properties.first(where: { $0.name == String(cString: name) })
else {
  report("FUZZ_TARGET has to be one of: \(names)")
  exit(2)
}
let property = chosen.init()

var count = CommandLine.argc
var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>! = CommandLine.unsafeArgv
exit(
  LLVMFuzzerRunDriver(&count, &arguments) { octets, count in
    do {
      try property.check(Array(UnsafeBufferPointer(start: octets, count: count)))
    } catch {
      // What libFuzzer takes for a crash: it keeps the input.
      report("\(error)")
      abort()
    }
    return 0
  })

private func report(_ text: String) {
  let line = Array("httpdnsd-fuzz: \(text)\n".utf8)
  write(STDERR_FILENO, line, line.count)
}
