#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CSocket.h -- batches of datagrams with recvmmsg and sendmmsg, including their destination addresses.
#ifndef HTTPDNSD_CSOCKET_H
#define HTTPDNSD_CSOCKET_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#if defined(__clang__)
#define CSOCKET_NO_ALLOCATION __attribute__((swift_attr("@_noAllocation")))
#else
#define CSOCKET_NO_ALLOCATION
#endif

/// The sender of a datagram and the local address that it was sent to, for a later reply.
struct datagram_peer {
  struct sockaddr_storage address;
  socklen_t length;
  /// AF_INET or AF_INET6 if `local` is known, else 0.
  int local_family;
  unsigned local_interface;
  uint8_t local[16];
};

/// Buffers for `capacity` queries and their responses, allocated once. For one thread.
struct datagram_batch;

/// Returns NULL if memory is exhausted.
struct datagram_batch *datagram_batch_create(unsigned capacity, size_t query_size, size_t response_size);
void datagram_batch_free(struct datagram_batch *batch);

/// Receives pending datagrams. Returns their number, or -1 with errno. With `wait`, blocks for the first one.
CSOCKET_NO_ALLOCATION int datagram_batch_receive(struct datagram_batch *batch, int descriptor, int wait);
/// The octets of a received datagram, truncated to the size of its buffer.
CSOCKET_NO_ALLOCATION const uint8_t *datagram_batch_query(const struct datagram_batch *batch, unsigned index, size_t *length);
/// The sender's address; valid until the next `datagram_batch_receive`.
CSOCKET_NO_ALLOCATION const struct sockaddr_storage *datagram_batch_address(const struct datagram_batch *batch, unsigned index);
/// Copies the addresses for a later reply.
CSOCKET_NO_ALLOCATION void datagram_batch_peer(const struct datagram_batch *batch, unsigned index, struct datagram_peer *peer);
/// The buffer of the next response.
CSOCKET_NO_ALLOCATION uint8_t *datagram_batch_response(const struct datagram_batch *batch);
/// Queues the next response for the sender of datagram `index`.
CSOCKET_NO_ALLOCATION void datagram_batch_reply(struct datagram_batch *batch, unsigned index, size_t length);
/// Sends the queued responses, skipping those that the kernel refuses. Returns the number of refused ones.
CSOCKET_NO_ALLOCATION unsigned datagram_batch_send(struct datagram_batch *batch, int descriptor);

/// Datagrams to be sent together, each from the address that its query was sent to. For one thread.
struct datagram_outbox;

/// Creates an empty outbox for datagrams of up to `size` octets. Returns NULL if memory is exhausted.
struct datagram_outbox *datagram_outbox_create(size_t size);
void datagram_outbox_free(struct datagram_outbox *outbox);
/// Queues a copy of a datagram. If the outbox is full or holds datagrams for another socket, sends those first. Returns
/// the number of datagrams refused, by the kernel or for their length.
unsigned datagram_outbox_add(struct datagram_outbox *outbox, int descriptor, const struct datagram_peer *peer,
                             const uint8_t *octets, size_t length);
/// Sends the queued datagrams. Returns the number that the kernel refused.
unsigned datagram_outbox_flush(struct datagram_outbox *outbox);
/// Creates a bound, blocking UDP socket. `packet_info` requests destination addresses, which wildcard sockets need.
/// Returns -1 with errno on failure.
int datagram_socket(const struct sockaddr *address, socklen_t length, int packet_info);
/// Configures a socket bound by another process like one of `datagram_socket`, except for its buffer sizes. Returns -1
/// with errno on failure.
int datagram_socket_adopt(int descriptor, int family, int packet_info);
/// The octets in a socket's receive queue, and the datagrams that the kernel dropped because it was full. Returns -1 if
/// the kernel does not report them (before Linux 4.12).
int datagram_queue(int descriptor, uint32_t *octets, uint32_t *dropped);
/// The kernel's smoothed round trip of a TCP connection in microseconds, and the segments that it sent again. Returns -1
/// with errno on failure.
int stream_round_trip(int descriptor, uint32_t *microseconds, uint32_t *retransmissions);
/// Lets close() reset a connection instead of ending it in order.
int stream_reset_on_close(int descriptor);
/// Creates a non-blocking socket for ICMP echo requests, or ICMPv6 by family, whose datagrams have a time stamp. Returns
/// -1 with errno on failure: EACCES if net.ipv4.ping_group_range excludes the process.
int echo_socket(int family);
/// Receives a datagram from such a socket, the address that it came from (in `source`, of `*source_length` octets), and its
/// time of arrival by the system clock, in nanoseconds. Returns its length, or -1 with errno on failure.
ssize_t echo_receive(int descriptor, void *octets, size_t room, void *source, socklen_t *source_length,
                     int64_t *arrival);

#endif
