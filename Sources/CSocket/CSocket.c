// CSocket.c -- see CSocket.h.
#include "CSocket.h"

#include <linux/sock_diag.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_SIZE (CMSG_SPACE(sizeof(struct in6_pktinfo)))

enum {
  /// The longest wait of a listener's batch for room in the socket's send buffer, in milliseconds.
  batch_patience = 20,
  /// The same for an outbox: all questions in flight wait meanwhile.
  outbox_patience = 2,
  /// The size of the receive and the send buffer. Answers to an absent neighbour stay in the send buffer for three
  /// seconds: with the system's 208 KiB, 250 of them a second would leave no room for other answers.
  socket_room = 4 << 20,
  /// The pause in microseconds after a failure to receive, such as lack of memory: an immediate retry would use a whole
  /// core.
  receive_pause = 1000,
};

struct datagram_batch {
  unsigned capacity, received, queued;
  size_t query_size, response_size;
  struct mmsghdr *in, *out;
  struct iovec *in_vectors, *out_vectors;
  struct sockaddr_storage *addresses;
  uint8_t *controls, *queries, *responses;
};

struct datagram_batch *datagram_batch_create(unsigned capacity, size_t query_size, size_t response_size) {
  struct datagram_batch *batch = calloc(1, sizeof *batch);
  if (batch == NULL) return NULL;
  batch->capacity = capacity;
  batch->query_size = query_size;
  batch->response_size = response_size;
  batch->in = calloc(capacity, sizeof *batch->in);
  batch->out = calloc(capacity, sizeof *batch->out);
  batch->in_vectors = calloc(capacity, sizeof *batch->in_vectors);
  batch->out_vectors = calloc(capacity, sizeof *batch->out_vectors);
  batch->addresses = calloc(capacity, sizeof *batch->addresses);
  batch->controls = calloc(capacity, CONTROL_SIZE);
  batch->queries = malloc(capacity * query_size);
  batch->responses = malloc(capacity * response_size);
  if (!batch->in || !batch->out || !batch->in_vectors || !batch->out_vectors || !batch->addresses ||
      !batch->controls || !batch->queries || !batch->responses) {
    datagram_batch_free(batch);
    return NULL;
  }
  for (unsigned i = 0; i < capacity; i++) {
    batch->in_vectors[i] = (struct iovec){batch->queries + i * query_size, query_size};
    batch->in[i].msg_hdr.msg_iov = &batch->in_vectors[i];
    batch->in[i].msg_hdr.msg_iovlen = 1;
    batch->in[i].msg_hdr.msg_name = &batch->addresses[i];
    batch->in[i].msg_hdr.msg_control = batch->controls + i * CONTROL_SIZE;
    batch->out_vectors[i].iov_base = batch->responses + i * response_size;
    batch->out[i].msg_hdr.msg_iov = &batch->out_vectors[i];
    batch->out[i].msg_hdr.msg_iovlen = 1;
  }
  batch->received = capacity;
  return batch;
}

void datagram_batch_free(struct datagram_batch *batch) {
  if (batch == NULL) return;
  free(batch->in), free(batch->out), free(batch->in_vectors), free(batch->out_vectors);
  free(batch->addresses), free(batch->controls), free(batch->queries), free(batch->responses);
  free(batch);
}

int datagram_batch_receive(struct datagram_batch *batch, int descriptor, int wait) {
  for (unsigned i = 0; i < batch->received; i++) {
    batch->in[i].msg_hdr.msg_namelen = sizeof batch->addresses[i];
    batch->in[i].msg_hdr.msg_controllen = CONTROL_SIZE;
  }
  int count = recvmmsg(descriptor, batch->in, batch->capacity, wait ? MSG_WAITFORONE : MSG_DONTWAIT, NULL);
  if (wait && count < 0 && errno != EINTR && errno != EAGAIN) usleep(receive_pause);
  batch->received = count > 0 ? (unsigned)count : 0;
  batch->queued = 0;
  return count;
}

const uint8_t *datagram_batch_query(const struct datagram_batch *batch, unsigned index, size_t *length) {
  *length = batch->in[index].msg_len;
  return batch->queries + index * batch->query_size;
}

const struct sockaddr_storage *datagram_batch_address(const struct datagram_batch *batch, unsigned index) {
  return &batch->addresses[index];
}

void datagram_batch_peer(const struct datagram_batch *batch, unsigned index, struct datagram_peer *peer) {
  struct msghdr *header = &batch->in[index].msg_hdr;
  peer->length = header->msg_namelen;
  memcpy(&peer->address, &batch->addresses[index], sizeof(struct sockaddr_in6));
  peer->local_family = 0;
  if (header->msg_controllen == 0) return;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      const struct in_pktinfo *info = (const struct in_pktinfo *)CMSG_DATA(c);
      peer->local_family = AF_INET;
      peer->local_interface = 0;
      memcpy(peer->local, &info->ipi_spec_dst, 4);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      const struct in6_pktinfo *info = (const struct in6_pktinfo *)CMSG_DATA(c);
      peer->local_family = AF_INET6;
      peer->local_interface = info->ipi6_ifindex;
      memcpy(peer->local, &info->ipi6_addr, 16);
    }
  }
}

uint8_t *datagram_batch_response(const struct datagram_batch *batch) {
  return batch->responses + batch->queued * batch->response_size;
}

/// Writes the control message that selects the source address in `peer`. Returns its octets, 0 for the kernel's choice.
static size_t put_source(const struct datagram_peer *peer, uint8_t *control) {
  struct cmsghdr *c = (struct cmsghdr *)control;
  if (peer->local_family == AF_INET) {
    struct in_pktinfo info = {0};
    memcpy(&info.ipi_spec_dst, peer->local, 4);
    c->cmsg_level = IPPROTO_IP, c->cmsg_type = IP_PKTINFO, c->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(c), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
  }
  if (peer->local_family == AF_INET6) {
    struct in6_pktinfo info = {0};
    memcpy(&info.ipi6_addr, peer->local, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) info.ipi6_ifindex = peer->local_interface;
    c->cmsg_level = IPPROTO_IPV6, c->cmsg_type = IPV6_PKTINFO, c->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(c), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
  }
  return 0;
}

void datagram_batch_reply(struct datagram_batch *batch, unsigned index, size_t length) {
  struct msghdr *in = &batch->in[index].msg_hdr, *out = &batch->out[batch->queued].msg_hdr;
  out->msg_name = in->msg_name;
  out->msg_namelen = in->msg_namelen;
  out->msg_control = NULL;
  out->msg_controllen = 0;
  if (in->msg_controllen > 0) {
    struct datagram_peer peer;
    datagram_batch_peer(batch, index, &peer);
    out->msg_controllen = put_source(&peer, in->msg_control);
    out->msg_control = out->msg_controllen > 0 ? in->msg_control : NULL;
  }
  batch->out_vectors[batch->queued++].iov_len = length;
}

static int64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/// Sends all of `messages`, skipping those that the kernel refuses. Returns the number of refused ones.
static unsigned send_all(int descriptor, struct mmsghdr *messages, unsigned queued, int patience) {
  unsigned sent = 0, refused = 0;
  int64_t end = 0;
  while (sent < queued) {
    int count = sendmmsg(descriptor, messages + sent, queued - sent, MSG_DONTWAIT);
    if (count > 0) {
      sent += (unsigned)count;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // A full send buffer drains at the speed of the interface, or when the kernel gives up on neighbours. Wait
      // briefly, then skip one datagram at a time, because there may be room again for the next.
      int64_t now = milliseconds();
      if (end == 0) end = now + patience;
      if (now >= end) {
        sent++, refused++;
        continue;
      }
      struct pollfd ready = {descriptor, POLLOUT, 0};
      (void)poll(&ready, 1, (int)(end - now));
    } else if (errno != EINTR) {
      sent++, refused++;
    }
  }
  return refused;
}

unsigned datagram_batch_send(struct datagram_batch *batch, int descriptor) {
  unsigned refused = send_all(descriptor, batch->out, batch->queued, batch_patience);
  batch->queued = 0;
  return refused;
}

enum { outbox_capacity = 16 };

struct datagram_outbox {
  int descriptor;
  unsigned queued;
  size_t size;
  struct mmsghdr messages[outbox_capacity];
  struct iovec vectors[outbox_capacity];
  struct datagram_peer peers[outbox_capacity];
  uint8_t controls[outbox_capacity][CONTROL_SIZE] __attribute__((aligned(8)));
  uint8_t octets[];
};

struct datagram_outbox *datagram_outbox_create(size_t size) {
  struct datagram_outbox *outbox = calloc(1, sizeof *outbox + outbox_capacity * size);
  if (outbox != NULL) outbox->size = size;
  return outbox;
}

void datagram_outbox_free(struct datagram_outbox *outbox) { free(outbox); }

unsigned datagram_outbox_flush(struct datagram_outbox *outbox) {
  unsigned refused = send_all(outbox->descriptor, outbox->messages, outbox->queued, outbox_patience);
  outbox->queued = 0;
  return refused;
}

unsigned datagram_outbox_add(struct datagram_outbox *outbox, int descriptor, const struct datagram_peer *peer,
                             const uint8_t *octets, size_t length) {
  if (length > outbox->size) return 1;
  unsigned refused = 0;
  if (outbox->queued == outbox_capacity || descriptor != outbox->descriptor) refused = datagram_outbox_flush(outbox);
  unsigned i = outbox->queued++;
  outbox->descriptor = descriptor;
  outbox->peers[i] = *peer;
  memcpy(outbox->octets + i * outbox->size, octets, length);
  outbox->vectors[i] = (struct iovec){outbox->octets + i * outbox->size, length};
  size_t control = put_source(peer, outbox->controls[i]);
  outbox->messages[i].msg_hdr = (struct msghdr){
      .msg_name = &outbox->peers[i].address, .msg_namelen = peer->length, .msg_iov = &outbox->vectors[i],
      .msg_iovlen = 1, .msg_control = control > 0 ? outbox->controls[i] : NULL, .msg_controllen = control};
  return refused;
}

static int set_packet_info(int descriptor, int family, int on) {
  if (family == AF_INET) return setsockopt(descriptor, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  return setsockopt(descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
}

int datagram_socket_adopt(int descriptor, int family, int packet_info) {
  int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) < 0) return -1;
  return set_packet_info(descriptor, family, packet_info);
}

/// Sets a buffer size. Without CAP_NET_ADMIN the system's limit applies.
static void make_room(int descriptor, int forced, int asked) {
  int room = socket_room;
  if (setsockopt(descriptor, SOL_SOCKET, forced, &room, sizeof room) < 0)
    (void)setsockopt(descriptor, SOL_SOCKET, asked, &room, sizeof room);
}

int datagram_socket(const struct sockaddr *address, socklen_t length, int packet_info) {
  int on = 1, family = address->sa_family;
  int descriptor = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  int failed = 0;
  if (family == AF_INET6) failed |= setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (packet_info) failed |= set_packet_info(descriptor, family, on);
  // The receive buffer holds a burst while the thread is busy.
  make_room(descriptor, SO_RCVBUFFORCE, SO_RCVBUF);
  make_room(descriptor, SO_SNDBUFFORCE, SO_SNDBUF);
  if (failed || bind(descriptor, address, length) < 0) {
    int reason = errno;
    close(descriptor);
    errno = reason;
    return -1;
  }
  return descriptor;
}

int datagram_queue(int descriptor, uint32_t *octets, uint32_t *dropped) {
  uint32_t info[SK_MEMINFO_VARS];
  socklen_t length = sizeof info;
  if (getsockopt(descriptor, SOL_SOCKET, SO_MEMINFO, info, &length) < 0 || length < sizeof info) return -1;
  *octets = info[SK_MEMINFO_RMEM_ALLOC];
  *dropped = info[SK_MEMINFO_DROPS];
  return 0;
}

int stream_round_trip(int descriptor, uint32_t *microseconds, uint32_t *retransmissions) {
  struct tcp_info info;
  socklen_t length = sizeof info;
  memset(&info, 0, sizeof info);
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return -1;
  *microseconds = info.tcpi_rtt;
  *retransmissions = info.tcpi_total_retrans;
  return 0;
}

int stream_reset_on_close(int descriptor) {
  struct linger reset = {.l_onoff = 1, .l_linger = 0};
  return setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

int echo_socket(int family) {
  int on = 1;
  int protocol = family == AF_INET6 ? (int)IPPROTO_ICMPV6 : (int)IPPROTO_ICMP;
  int descriptor = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
  if (descriptor < 0) return -1;
  // Without a time stamp, the time of the call counts.
  (void)setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  return descriptor;
}

ssize_t echo_receive(int descriptor, void *octets, size_t room, void *source, socklen_t *source_length,
                     int64_t *arrival) {
  struct iovec vector = {.iov_base = octets, .iov_len = room};
  char control[CMSG_SPACE(sizeof(struct timespec))];
  struct msghdr message = {
      .msg_name = source, .msg_namelen = *source_length, .msg_iov = &vector, .msg_iovlen = 1,
      .msg_control = control, .msg_controllen = sizeof control};
  ssize_t length = recvmsg(descriptor, &message, 0);
  if (length < 0) return -1;
  *source_length = message.msg_namelen;
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part != NULL; part = CMSG_NXTHDR(&message, part))
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_TIMESTAMPNS) memcpy(&time, CMSG_DATA(part), sizeof time);
  *arrival = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  return length;
}
