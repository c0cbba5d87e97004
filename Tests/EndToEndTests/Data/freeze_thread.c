// freeze_thread.c -- makes one thread of another program stand still, as one that is stuck would.
//
//   freeze_thread TID
//
// Writes a line as soon as the thread stands. Ends with the thread, or on SIGTERM, which lets it go on.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int main(int count, char **arguments) {
  if (count != 2) return 2;
  pid_t thread = (pid_t)atoi(arguments[1]);
  if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0) {
    perror("ptrace");
    return 1;
  }
  int status;
  if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
    fprintf(stderr, "the thread has ended\n");
    return 1;
  }
  puts("frozen");
  fflush(stdout);
  // The thread's end has to be taken note of, or its process stays about. A signal that comes to the thread stays with it.
  while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status)) {
  }
  return 0;
}
