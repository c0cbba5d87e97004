// CProcess.c -- see CProcess.h.
#include "CProcess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void process_occupy_standard_descriptors(void) {
  for (int number = 0; number <= 2; number++) {
    if (fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number, which is this one. Without O_CLOEXEC: programs that this one starts have the same need.
    if (open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) < 0) (void)open("/", O_PATH);
  }
}

/// Ends a program that has succeeded but for its output.
static void check_output(int status, void *unused) {
  (void)unused;
  int number = fflush(stdout) == 0 ? 0 : errno;
  if (status != 0 || (number == 0 && !ferror(stdout))) return;
  // What refused an earlier part is not known any more.
  (void)dprintf(STDERR_FILENO, "httpdnsd: cannot write to standard output%s%s\n", number ? ": " : "",
                number ? strerror(number) : "");
  _exit(1);
}

void process_check_output(void) { (void)on_exit(check_output, NULL); }

void process_limit_heaps(void) { mallopt(M_ARENA_MAX, 1); }

void process_keep_memory_private(void) {
  const struct rlimit none = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &none);
  // A core limit of 0 is ignored if cores are piped to a program; PR_SET_DUMPABLE is not.
  (void)prctl(PR_SET_DUMPABLE, 0);
}

long process_raise_descriptors(long wanted) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  rlim_t goal = limit.rlim_max < (rlim_t)wanted ? limit.rlim_max : (rlim_t)wanted;
  if (limit.rlim_cur < goal) {
    struct rlimit raised = {goal, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur < LONG_MAX ? (long)limit.rlim_cur : LONG_MAX;
}

static int argument_count;
static char **arguments;

// glibc passes main()'s arguments to constructors.
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
  argument_count = count;
  arguments = values;
}

const char *process_argument(long number) { return number >= 0 && number < argument_count ? arguments[number] : NULL; }

const char *process_variable(long number) { return environ ? environ[number] : NULL; }

void process_use_bind_capability(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  const uint32_t bit = UINT32_C(1) << CAP_NET_BIND_SERVICE;
  if (syscall(SYS_capget, &header, sets) != 0) return;
  if ((sets[0].permitted & bit) == 0 || (sets[0].effective & bit) != 0) return;
  sets[0].effective |= bit;
  // A failure shows when the socket is bound.
  syscall(SYS_capset, &header, sets);
}

static int drop_read_only(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
    uintptr_t start = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
    uintptr_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    // Private file pages that were never written are read again from the file on demand.
    madvise((void *)start, end - start, MADV_DONTNEED);
  }
  return *(int *)context;
}

void process_trim(void) {
  int go_on = 0;
  malloc_trim(0);
  dl_iterate_phdr(drop_read_only, &go_on);
}

void process_give_back(long spare) {
  const struct mallinfo2 heap = mallinfo2();
  if (heap.fordblks > (size_t)spare && heap.fordblks > heap.uordblks) malloc_trim(0);
}

const char *process_build_date(void) { return __DATE__; }
