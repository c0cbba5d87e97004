#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CHotPath.h -- a mutex, counters, block copies and texts of addresses for the hot path, declared as not allocating.
#ifndef HTTPDNSD_CHOTPATH_H
#define HTTPDNSD_CHOTPATH_H

#include <arpa/inet.h>
#include <endian.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__clang__)
#define HTTPDNSD_NO_ALLOCATION __attribute__((swift_attr("@_noAllocation")))
#else
#define HTTPDNSD_NO_ALLOCATION
#endif

/// A mutex; the storage is the caller's and must not move.
typedef struct {
  pthread_mutex_t mutex;
} hot_mutex;

static inline void hot_mutex_init(hot_mutex *lock) { pthread_mutex_init(&lock->mutex, NULL); }
static inline void hot_mutex_destroy(hot_mutex *lock) { pthread_mutex_destroy(&lock->mutex); }

HTTPDNSD_NO_ALLOCATION
static inline void hot_mutex_lock(hot_mutex *lock) { pthread_mutex_lock(&lock->mutex); }

HTTPDNSD_NO_ALLOCATION
static inline void hot_mutex_unlock(hot_mutex *lock) { pthread_mutex_unlock(&lock->mutex); }

HTTPDNSD_NO_ALLOCATION
static inline void hot_copy(void *to, const void *from, size_t count) { memcpy(to, from, count); }

HTTPDNSD_NO_ALLOCATION
static inline int hot_equal(const void *left, const void *right, size_t count) {
  return memcmp(left, right, count) == 0;
}

/// Adds to a counter that only one thread writes and any thread may read. Load and store are atomic, so readers see
/// whole values; the addition is not, which avoids a bus lock and is safe with one writer.
HTTPDNSD_NO_ALLOCATION
static inline void hot_counter_add(uint64_t *counter, uint64_t count) {
  __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + count, __ATOMIC_RELAXED);
}

HTTPDNSD_NO_ALLOCATION
static inline void hot_counter_set(uint64_t *counter, uint64_t value) {
  __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

HTTPDNSD_NO_ALLOCATION
static inline uint64_t hot_counter_read(const uint64_t *counter) {
  return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/// Parses the text of an IPv4 or an IPv6 address. The address is a big-endian number in `high` and `low`, an IPv4 one in the
/// upper half of `high`. Returns whether it is one.
HTTPDNSD_NO_ALLOCATION
static inline int hot_parse_address(const void *text, size_t count, int is_ipv6, uint64_t *high, uint64_t *low) {
  char copy[INET6_ADDRSTRLEN] = {0};
  uint64_t words[2] = {0, 0};
  if (count >= sizeof copy || memchr(text, 0, count) != NULL) { return 0; }
  memcpy(copy, text, count);
  if (inet_pton(is_ipv6 ? AF_INET6 : AF_INET, copy, words) != 1) { return 0; }
  *high = be64toh(words[0]);
  *low = be64toh(words[1]);
  return 1;
}

/// Prefetches the cache line at `address`, which need not be valid.
HTTPDNSD_NO_ALLOCATION
static inline void hot_prefetch(const void *address) { __builtin_prefetch(address, 1); }

#endif
