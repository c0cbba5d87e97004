#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CFirewall.h -- libmnl and libnftnl: messages to and from the kernel's nf_tables.
#ifndef HTTPDNSD_CFIREWALL_H
#define HTTPDNSD_CFIREWALL_H

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/batch.h>
#include <libnftnl/common.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

/// Opens and binds a socket to the kernel's netfilter whose sends and receives end with EAGAIN after `seconds`, and whose
/// errors do not repeat the request. NULL with errno on failure; freed by mnl_socket_close.
static inline struct mnl_socket *firewall_open(int seconds) {
  struct mnl_socket *socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
  if (socket == NULL) return NULL;
  int descriptor = mnl_socket_get_fd(socket), on = 1, octets = 1 << 20;
  struct timeval limit = {.tv_sec = seconds};
  setsockopt(descriptor, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  // A batch is sent in one piece, and the usual limit is 208 KiB.
  setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &octets, sizeof octets);
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) == 0) return socket;
  int code = errno;
  mnl_socket_close(socket);
  errno = code;
  return NULL;
}

/// Whether a message is of nf_tables and of a type NFT_MSG_...
static inline bool firewall_is(const struct nlmsghdr *message, int type) {
  return message->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | type);
}

/// Whether a message acknowledges a request or refuses it; `code` is then 0 or an errno.
static inline bool firewall_ends(const struct nlmsghdr *message, int32_t *code) {
  if (message->nlmsg_type != NLMSG_ERROR) return false;
  bool is_whole = mnl_nlmsg_get_payload_len(message) >= sizeof(int32_t);
  *code = is_whole ? -*(const int32_t *)mnl_nlmsg_get_payload(message) : EBADMSG;
  return true;
}

/// The number of the rule set's generation in a message NFT_MSG_NEWGEN; 0 without one.
static inline uint32_t firewall_generation(const struct nlmsghdr *message) {
  const struct nlattr *attribute;
  mnl_attr_for_each(attribute, message, sizeof(struct nfgenmsg)) {
    if (mnl_attr_get_type(attribute) == NFTA_GEN_ID && mnl_attr_validate(attribute, MNL_TYPE_U32) == 0)
      return ntohl(mnl_attr_get_u32(attribute));
  }
  return 0;
}

/// Lets the kernel refuse a batch, by its first message, with ERESTART if the rule set's generation is another one.
static inline void firewall_require_generation(struct nlmsghdr *message, uint32_t generation) {
  mnl_attr_put_u32(message, NFNL_BATCH_GENID, htonl(generation));
}

#endif
