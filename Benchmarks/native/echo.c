// echo.c -- the floor: sends each datagram back as a response, in batches, and does nothing else.
//
// usage: echo wait|epoll PORT
//
// `wait` blocks in recvmmsg, the least that a UDP server can do. `epoll` first waits for the socket to become
// readable, as a server with an event loop must. One thread; every buffer exists before the first datagram.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  batchSize = 64,
  bufferSize = 4096,
  headerSize = 12,  // RFC 1035, section 4.1.1
  qrBit = 0x80,     // in the third octet of the header
  socketBuffer = 4 << 20,
};

static unsigned char octets[batchSize][bufferSize];
static struct sockaddr_in clients[batchSize];
static struct iovec vectors[batchSize];
static struct mmsghdr messages[batchSize];
static struct iovec responseVectors[batchSize];
static struct mmsghdr responses[batchSize];

static void stopUnless(bool good, const char *what) {
  if (good) return;
  perror(what);
  exit(1);
}

static int openSocket(int port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  stopUnless(fd >= 0, "socket");
  const int size = socketBuffer;
  // The kernel may grant less; a benchmark that loses datagrams says so.
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  stopUnless(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  return fd;
}

static void prepareBuffers(void) {
  for (int i = 0; i < batchSize; i++) {
    vectors[i] = (struct iovec){.iov_base = octets[i], .iov_len = bufferSize};
    messages[i].msg_hdr.msg_name = &clients[i];
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    responses[i].msg_hdr.msg_iov = &responseVectors[i];
    responses[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_namelen = sizeof clients[i];
  }
}

// Turns the first `received` messages into responses; returns how many there are.
static unsigned compose(int received) {
  unsigned count = 0;
  for (int i = 0; i < received; i++) {
    const size_t length = messages[i].msg_len;
    const socklen_t nameLength = messages[i].msg_hdr.msg_namelen;
    messages[i].msg_hdr.msg_namelen = sizeof clients[i];
    // A message that is a response already is dropped: two echoes would never stop.
    if (length < headerSize || (octets[i][2] & qrBit) != 0) continue;
    octets[i][2] |= qrBit;
    responseVectors[count] = (struct iovec){.iov_base = octets[i], .iov_len = length};
    responses[count].msg_hdr.msg_name = &clients[i];
    responses[count].msg_hdr.msg_namelen = nameLength;
    count++;
  }
  return count;
}

static void sendAll(int fd, unsigned count) {
  for (unsigned sent = 0; sent < count;) {
    const int done = sendmmsg(fd, responses + sent, count - sent, 0);
    if (done > 0) {
      sent += (unsigned)done;
    } else if (errno != EINTR) {
      sent++;  // the kernel refuses this datagram; the others go on
    }
  }
}

int main(int argumentCount, char **arguments) {
  if (argumentCount != 3 || (strcmp(arguments[1], "wait") != 0 && strcmp(arguments[1], "epoll") != 0)) {
    fprintf(stderr, "usage: echo wait|epoll PORT\n");
    return 2;
  }
  const bool usesEpoll = strcmp(arguments[1], "epoll") == 0;
  const int fd = openSocket(atoi(arguments[2]));
  prepareBuffers();

  int poll = -1;
  if (usesEpoll) {
    struct epoll_event interest = {.events = EPOLLIN};
    poll = epoll_create1(EPOLL_CLOEXEC);
    stopUnless(poll >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, fd, &interest) == 0, "epoll");
  }
  const int flags = usesEpoll ? MSG_DONTWAIT : MSG_WAITFORONE;
  for (;;) {
    struct epoll_event event;
    if (usesEpoll && epoll_wait(poll, &event, 1, -1) <= 0) continue;
    const int received = recvmmsg(fd, messages, batchSize, flags, NULL);
    if (received > 0) sendAll(fd, compose(received));
  }
}
