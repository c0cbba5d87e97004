#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CNetlink.h -- rtnetlink's formats and socket, and the timer that a change of the wall clock cancels.
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

/// A route socket that never waits, subscribed to a mask of RTMGRP_ groups. -1 with errno.
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

/// Lets dumps be filtered by the kernel, where it can (4.20 and later).
static inline void netlink_check_strictly(int descriptor) {
  int on = 1;
  setsockopt(descriptor, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
}

/// Joins or leaves one group, an RTNLGRP_ number. -1 with errno.
static inline int netlink_subscribe(int descriptor, int group, int joined) {
  return setsockopt(descriptor, SOL_NETLINK, joined ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &group,
                    sizeof group);
}

/// Sends a request to the kernel. -1 with errno.
static inline ssize_t netlink_send(int descriptor, const void *octets, size_t length) {
  struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  return sendto(descriptor, octets, length, 0, (const struct sockaddr *)&kernel, sizeof kernel);
}

/// Receives the kernel's next datagram: its length, 0 for one that somebody else sent, or -1 with errno. EMSGSIZE stands for
/// one that did not fit.
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

/// Sends an empty datagram to the discard port of a neighbour, an address of 4 or 16 octets, so that the kernel finds out
/// its link-layer address. Nothing depends on it: what fails is not told.
static inline void neighbour_knock(const uint8_t *address, size_t length, uint32_t link) {
  struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
  struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(9)};
  int is6 = length == sizeof to6.sin6_addr;
  if (is6) {
    memcpy(&to6.sin6_addr, address, length);
    // Most gateways are link-local: those need their link.
    if (IN6_IS_ADDR_LINKLOCAL(&to6.sin6_addr)) to6.sin6_scope_id = link;
  } else {
    memcpy(&to4.sin_addr, address, sizeof to4.sin_addr);
  }
  int descriptor = socket(is6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return;
  sendto(descriptor, NULL, 0, 0, is6 ? (struct sockaddr *)&to6 : (struct sockaddr *)&to4, is6 ? sizeof to6 : sizeof to4);
  close(descriptor);
}

/// A timer on the wall clock that never ends by itself; see `wall_clock_timer_arm`. -1 with errno.
static inline int wall_clock_timer_open(void) { return timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

/// From now on the timer becomes readable when the wall clock is set, and after the machine has slept. 0, or -1 with errno.
static inline int wall_clock_timer_arm(int descriptor) {
  // The kernel's longest time is some 292 years.
  struct itimerspec far_away = {.it_value = {.tv_sec = 9000000000}};
  // ECANCELED: it is armed, and the clock was set once more since the last time that it was.
  int outcome = timerfd_settime(descriptor, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_away, NULL);
  return outcome < 0 && errno == ECANCELED ? 0 : outcome;
}

/// Whether the timer has been cancelled since it was armed: 1 or 0.
static inline int wall_clock_timer_was_cancelled(int descriptor) {
  uint64_t count;
  return read(descriptor, &count, sizeof count) < 0 && errno == ECANCELED;
}

#endif
