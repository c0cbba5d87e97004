#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CSocket.h -- batches of datagrams by recvmmsg and sendmmsg, with the address that each one was sent to.
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

/// Where a datagram came from and which of our addresses it was sent to: what a later reply needs.
struct datagram_peer {
  struct sockaddr_storage address;
  socklen_t length;
  /// AF_INET or AF_INET6 where `local` is known, else 0.
  int local_family;
  unsigned local_interface;
  uint8_t local[16];
};

/// Buffers for `capacity` queries and their responses, allocated once. One thread's own.
struct datagram_batch;

/// NULL where there is no memory.
struct datagram_batch *datagram_batch_create(unsigned capacity, size_t query_size, size_t response_size);
void datagram_batch_free(struct datagram_batch *batch);

/// Receives what is there: the number of datagrams, or -1 with errno. With `wait` it waits for the first one.
CSOCKET_NO_ALLOCATION int datagram_batch_receive(struct datagram_batch *batch, int descriptor, int wait);
/// The octets of a received datagram, cut where they did not fit the buffer.
CSOCKET_NO_ALLOCATION const uint8_t *datagram_batch_query(const struct datagram_batch *batch, unsigned index, size_t *length);
/// The sender's address, as `datagram_batch_receive` left it.
CSOCKET_NO_ALLOCATION const struct sockaddr_storage *datagram_batch_address(const struct datagram_batch *batch, unsigned index);
/// Copies what a later reply needs.
CSOCKET_NO_ALLOCATION void datagram_batch_peer(const struct datagram_batch *batch, unsigned index, struct datagram_peer *peer);
/// The buffer of the next response.
CSOCKET_NO_ALLOCATION uint8_t *datagram_batch_response(const struct datagram_batch *batch);
/// Queues the next response for the sender of datagram `index`.
CSOCKET_NO_ALLOCATION void datagram_batch_reply(struct datagram_batch *batch, unsigned index, size_t length);
/// Sends what is queued. A datagram that the kernel refuses is skipped; returns how many were.
CSOCKET_NO_ALLOCATION unsigned datagram_batch_send(struct datagram_batch *batch, int descriptor);

/// Datagrams that leave together, each from the address that its query was sent to. One thread's own.
struct datagram_outbox;

/// An empty outbox for datagrams of up to `size` octets. NULL where there is no memory.
struct datagram_outbox *datagram_outbox_create(size_t size);
void datagram_outbox_free(struct datagram_outbox *outbox);
/// Queues a copy of a datagram; a full outbox, and one with datagrams for another socket, is sent before. Returns how
/// many datagrams were refused, by the kernel or for their length.
unsigned datagram_outbox_add(struct datagram_outbox *outbox, int descriptor, const struct datagram_peer *peer,
                             const uint8_t *octets, size_t length);
/// Sends what is queued. Returns how many datagrams the kernel refused.
unsigned datagram_outbox_flush(struct datagram_outbox *outbox);
/// Makes a bound UDP socket, blocking. `packet_info` asks for the address that was asked (wildcard sockets need it). -1 with errno.
int datagram_socket(const struct sockaddr *address, socklen_t length, int packet_info);
/// Makes a socket that another program has bound like one of `datagram_socket`; its room is that program's to say. -1 with errno.
int datagram_socket_adopt(int descriptor, int family, int packet_info);
/// Octets that wait in a socket, and datagrams that the kernel has dropped because it was full. -1 where the kernel does not
/// tell (before Linux 4.12).
int datagram_queue(int descriptor, uint32_t *octets, uint32_t *dropped);

#endif
