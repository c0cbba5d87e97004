// turns.c -- preloaded into the daemon: measures the turns of its main thread's event loop, in CPU time of that thread.
//
// TURNS_FILE names a file of 16 octets that exists: two native 64-bit numbers, the nanoseconds of the longest turn and
// how many turns there were. Who reads them may set them to 0. A turn lasts from a return of epoll_wait(2) to the next
// call of it.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct turns {
  _Atomic uint64_t longest;
  _Atomic uint64_t count;
};

static struct turns *turns;
static int (*next_wait)(int, struct epoll_event *, int, int);
static _Thread_local uint64_t start;

__attribute__((constructor)) static void map_turns(void) {
  *(void **)&next_wait = dlsym(RTLD_NEXT, "epoll_wait");
  const char *path = getenv("TURNS_FILE");
  const int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *mapping = mmap(NULL, sizeof(struct turns), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapping != MAP_FAILED) turns = mapping;
}

static uint64_t processor_time(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout) {
  if (turns == NULL || gettid() != getpid()) return next_wait(epoll, events, count, timeout);
  if (start != 0) {
    const uint64_t turn = processor_time() - start;
    if (turn > atomic_load(&turns->longest)) atomic_store(&turns->longest, turn);
    atomic_fetch_add(&turns->count, 1);
  }
  const int result = next_wait(epoll, events, count, timeout);
  start = processor_time();
  return result;
}
