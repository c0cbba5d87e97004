// countmalloc.c -- preloaded into a server: counts its allocations where another process can read the count.
//
// COUNT_MALLOC_FILE names a file of 8 octets that exists: a native 64-bit counter of the calls that allocate (malloc,
// calloc, realloc, posix_memalign, aligned_alloc, memalign and kin). The file is mapped, so that reading it costs the
// server nothing. COUNT_MALLOC_WITHOUT names libraries, with commas, whose own calls do not count. The calls go on to the allocator that the server would have used, which need not be the C library's.
// A program linked statically, or with file capabilities, ignores LD_PRELOAD: its counter stays 0, which the reader
// takes for a failure.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { arenaSize = 64 << 10, arenaAlignment = 16 };

static struct {
  void *(*malloc)(size_t);
  void *(*calloc)(size_t, size_t);
  void *(*realloc)(void *, size_t);
  void *(*memalign)(size_t, size_t);
  void (*free)(void *);
} next;

// Serves dlsym itself, which may allocate before anything can be passed on. Used by the first thread only.
static _Alignas(arenaAlignment) unsigned char arena[arenaSize];
static size_t arenaUsed;

// Takes the calls that come before the constructor has run, or when there is no file.
static _Atomic uint64_t countBeforeMapping;
static _Atomic uint64_t *_Atomic counter = &countBeforeMapping;

// The code of libraries whose calls do not count.
enum { mostRanges = 32 };
static struct { uintptr_t begin, end; } ranges[mostRanges];
static size_t rangeCount;

static int noteLibrary(struct dl_phdr_info *library, size_t size, void *names) {
  (void)size;
  char list[256];
  strncpy(list, names, sizeof list - 1);
  list[sizeof list - 1] = 0;
  char *rest = NULL;
  for (char *name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
    if (strstr(library->dlpi_name, name) == NULL) continue;
    for (size_t index = 0; index < library->dlpi_phnum && rangeCount < mostRanges; index++) {
      const ElfW(Phdr) *part = library->dlpi_phdr + index;
      if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
      ranges[rangeCount].begin = library->dlpi_addr + part->p_vaddr;
      ranges[rangeCount++].end = library->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
  }
  return 0;
}

static inline bool counts(uintptr_t caller) {
  for (size_t index = 0; index < rangeCount; index++) {
    if (caller >= ranges[index].begin && caller < ranges[index].end) return false;
  }
  return true;
}

static void findNext(void) {
  static bool isSearching;
  if (isSearching) return;
  isSearching = true;
  next.calloc = dlsym(RTLD_NEXT, "calloc");
  next.realloc = dlsym(RTLD_NEXT, "realloc");
  next.memalign = dlsym(RTLD_NEXT, "memalign");
  next.free = dlsym(RTLD_NEXT, "free");
  next.malloc = dlsym(RTLD_NEXT, "malloc");
}

__attribute__((constructor)) static void mapCounter(void) {
  if (next.malloc == NULL) findNext();
  char *others = getenv("COUNT_MALLOC_WITHOUT");
  if (others != NULL) dl_iterate_phdr(noteLibrary, others);
  const char *path = getenv("COUNT_MALLOC_FILE");
  if (path == NULL) return;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void *mapping = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (mapping == MAP_FAILED) return;
  _Atomic uint64_t *shared = mapping;
  atomic_fetch_add(shared, atomic_load(&countBeforeMapping));
  atomic_store(&counter, shared);
}

// Counts a call of the function that it is part of, and returns whether it can be passed on.
__attribute__((always_inline)) static inline bool isReady(void) {
  if (counts((uintptr_t)__builtin_return_address(0))) {
    _Atomic uint64_t *current = atomic_load_explicit(&counter, memory_order_relaxed);
    atomic_fetch_add_explicit(current, 1, memory_order_relaxed);
  }
  if (__builtin_expect(next.malloc == NULL, 0)) findNext();
  return next.malloc != NULL;
}

static inline bool isInArena(const void *memory) {
  return (uintptr_t)memory - (uintptr_t)arena < arenaSize;
}

// The arena starts as zeros and is never used twice, so it serves calloc too.
static void *takeFromArena(size_t size) {
  const size_t rounded = (size + arenaAlignment - 1) & ~(size_t)(arenaAlignment - 1);
  if (rounded < size || rounded > arenaSize - arenaUsed) return NULL;
  void *result = arena + arenaUsed;
  arenaUsed += rounded;
  return result;
}

void *malloc(size_t size) { return isReady() ? next.malloc(size) : takeFromArena(size); }

void *calloc(size_t count, size_t size) {
  if (isReady()) return next.calloc(count, size);
  size_t total;
  return __builtin_mul_overflow(count, size, &total) ? NULL : takeFromArena(total);
}

void *realloc(void *memory, size_t size) {
  const bool ready = isReady();
  if (ready && !isInArena(memory)) return next.realloc(memory, size);
  void *result = ready ? next.malloc(size) : takeFromArena(size);
  if (memory == NULL || result == NULL) return result;
  // How long the old piece was is not known; it ends with the arena at the latest.
  const size_t available = (size_t)(arena + arenaSize - (unsigned char *)memory);
  memmove(result, memory, size < available ? size : available);
  return result;
}

void *reallocarray(void *memory, size_t count, size_t size) {
  size_t total;
  if (!__builtin_mul_overflow(count, size, &total)) return realloc(memory, total);
  errno = ENOMEM;
  return NULL;
}

void *memalign(size_t alignment, size_t size) {
  if (isReady()) return next.memalign(alignment, size);
  return alignment <= arenaAlignment ? takeFromArena(size) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
  const bool isPowerOfTwo = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!isPowerOfTwo || alignment % sizeof(void *) != 0) return EINVAL;
  void *result = memalign(alignment, size);
  if (result == NULL) return ENOMEM;
  *memory = result;
  return 0;
}

void *valloc(size_t size) { return memalign((size_t)sysconf(_SC_PAGESIZE), size); }

void *pvalloc(size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return memalign(page, (size + page - 1) & ~(page - 1));
}

void free(void *memory) {
  if (memory != NULL && !isInArena(memory) && next.free != NULL) next.free(memory);
}
