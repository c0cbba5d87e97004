#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CNetlink.h -- rtnetlink's formats and socket, and a timer that detects changes of the wall clock.
#ifndef HTTPDNSD_CNETLINK_H
#define HTTPDNSD_CNETLINK_H

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/// Opens a non-blocking route socket, subscribed to a mask of RTMGRP_ groups. Returns -1 with errno on failure.
static inline int netlink_open(uint32_t groups) {
  int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (descriptor < 0) return -1;
  struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
  if (bind(descriptor, (const struct sockaddr *)&address, sizeof address) == 0) return descriptor;
  int code = errno;
  close(descriptor);
  errno = code;
  return -1;
}

/// Lets the kernel filter dumps, if it supports that (4.20 and later).
static inline void netlink_check_strictly(int descriptor) {
  int on = 1;
  setsockopt(descriptor, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
}

/// Joins or leaves a group, given by its RTNLGRP_ number. Returns -1 with errno on failure.
static inline int netlink_subscribe(int descriptor, int group, int joined) {
  return setsockopt(descriptor, SOL_NETLINK, joined ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &group,
                    sizeof group);
}

/// Sends a request to the kernel. Returns -1 with errno on failure.
static inline ssize_t netlink_send(int descriptor, const void *octets, size_t length) {
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  return sendto(descriptor, octets, length, 0, (const struct sockaddr *)&kernel, sizeof kernel);
}

/// Receives the next datagram. Returns its length, 0 for one that is not from the kernel, or -1 with errno; EMSGSIZE
/// means that it did not fit.
static inline ssize_t netlink_receive(int descriptor, void *buffer, size_t capacity) {
  struct sockaddr_nl sender = {.nl_family = AF_UNSPEC};
  socklen_t size = sizeof sender;
  ssize_t length = recvfrom(descriptor, buffer, capacity, MSG_TRUNC, (struct sockaddr *)&sender, &size);
  if (length < 0) return -1;
  if (sender.nl_family != AF_NETLINK || sender.nl_pid != 0) return 0;
  if ((size_t)length <= capacity) return length;
  errno = EMSGSIZE;
  return -1;
}

/// Sends an empty datagram to the discard port of a neighbour, an address of 4 or 16 octets, so that the kernel
/// resolves its link-layer address. Ignores failures.
static inline void neighbour_knock(const uint8_t *address, size_t length, uint32_t link) {
  struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
  struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(9)};
  int is6 = length == sizeof to6.sin6_addr;
  if (is6) {
    memcpy(&to6.sin6_addr, address, length);
    // Most gateways are link-local and need a scope.
    if (IN6_IS_ADDR_LINKLOCAL(&to6.sin6_addr)) to6.sin6_scope_id = link;
  } else {
    memcpy(&to4.sin_addr, address, sizeof to4.sin_addr);
  }
  int descriptor = socket(is6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return;
  sendto(descriptor, NULL, 0, 0, is6 ? (struct sockaddr *)&to6 : (struct sockaddr *)&to4, is6 ? sizeof to6 : sizeof to4);
  close(descriptor);
}

/// Opens a timer on the wall clock; see `wall_clock_timer_arm`. Returns -1 with errno on failure.
static inline int wall_clock_timer_open(void) { return timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

/// Arms the timer to become readable when the wall clock is set, and after the machine slept. Returns 0, or -1 with
/// errno.
static inline int wall_clock_timer_arm(int descriptor) {
  // The kernel's longest time is about 292 years.
  struct itimerspec far_away = {.it_value = {.tv_sec = 9000000000}};
  // ECANCELED: the timer is armed, but the clock was set again since it was armed before.
  int outcome = timerfd_settime(descriptor, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_away, NULL);
  return outcome < 0 && errno == ECANCELED ? 0 : outcome;
}

/// Whether the timer was cancelled since it was armed, 1 or 0.
static inline int wall_clock_timer_was_cancelled(int descriptor) {
  uint64_t count;
  return read(descriptor, &count, sizeof count) < 0 && errno == ECANCELED;
}

#endif
