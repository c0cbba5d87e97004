// tlsload.c -- TLS connections to a server on 127.0.0.1: handshakes one after the other, connections that stay, and a
// steady rate of handshakes of many clients.
//
// usage: tlsload full|resumed PORT ALPN COUNT
//        tlsload hold dot|doh PORT AUTHORITY NAME COUNT
//        tlsload storm PORT ALPN RATE SECONDS
//
// "full" and "resumed" make COUNT handshakes of TLS 1.3, each with a connection of its own, and print how many
// were made. A connection ends once the server has closed it too, so that the server has done all its work by then. With
// "resumed" one ticket serves for all, and each handshake must be resumed.
//
// "hold" opens COUNT connections and asks for NAME once on each, over DoT or HTTP/2. It prints "ready", keeps them
// until its input ends, and prints how many are still open.
//
// "storm" makes RATE handshakes a second for SECONDS, each from another address of 127.0.0.0/8, and prints
// how many succeeded and how many failed.
//
// No certificate is verified. What fails in the first two ends the program with a line on stderr.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { maximumMessage = 512, headerSize = 12, frameHeader = 9, stormProcesses = 4, maximumHeld = 4096 };

// Frames of HTTP/2 (RFC 9113, section 6).
enum { dataFrame = 0, headersFrame = 1, settingsFrame = 4, goAwayFrame = 7, endStream = 1, acknowledged = 1, endHeaders = 4 };

typedef struct {
  SSL *tls;
  int fd;
} Connection;

static SSL_CTX *context;
// The last ticket that a server sent; the handshakes are made one after the other.
static SSL_SESSION *ticket;

static void stopUnless(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "tlsload: %s\n", what);
  exit(1);
}

static int keepTicket(SSL *tls, SSL_SESSION *session) {
  (void)tls;
  if (ticket != NULL) SSL_SESSION_free(ticket);
  ticket = session;
  return 1;
}

static void prepare(void) {
  context = SSL_CTX_new(TLS_client_method());
  stopUnless(context != NULL && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, "no TLS 1.3");
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keepTicket);
  // SSL_read returns after a ticket, and does not wait for what comes next.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}

static void offerALPN(const char *name) {
  unsigned char list[64];
  const size_t length = strlen(name);
  stopUnless(length > 0 && length < sizeof list, "the ALPN is malformed");
  list[0] = (unsigned char)length;
  memcpy(list + 1, name, length);
  stopUnless(SSL_CTX_set_alpn_protos(context, list, (unsigned)length + 1) == 0, "the ALPN is refused");
}

static void disconnect(Connection connection) {
  if (connection.tls != NULL) SSL_free(connection.tls);
  if (connection.fd >= 0) close(connection.fd);
}

// Connects from an address, or from 127.0.0.1 with 0, and makes a handshake, with `session` if there is one. Without
// success `tls` is NULL.
static Connection connectFrom(uint32_t source, int port, SSL_SESSION *session) {
  Connection connection = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const struct timeval limit = {.tv_sec = 5};
  const int on = 1;
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(connection.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(connection.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (source != 0) {
    setsockopt(connection.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(connection.fd, (struct sockaddr *)&from, sizeof from) != 0) return connection;
  }
  if (connect(connection.fd, (struct sockaddr *)&address, sizeof address) != 0) return connection;
  SSL *tls = SSL_new(context);
  SSL_set_fd(tls, connection.fd);
  if (session != NULL) SSL_set_session(tls, session);
  if (SSL_connect(tls) == 1) {
    connection.tls = tls;
  } else {
    SSL_free(tls);
    ERR_clear_error();
  }
  return connection;
}

// Reads until the server's ticket is there; false if it does not come.
static bool awaitTicket(Connection connection) {
  unsigned char octets[512];
  while (ticket == NULL) {
    errno = 0;
    const int length = SSL_read(connection.tls, octets, sizeof octets);
    if (length > 0) continue;
    if (SSL_get_error(connection.tls, length) != SSL_ERROR_WANT_READ || errno == EAGAIN) return false;
  }
  return true;
}

// Sends close_notify and FIN, and waits until the server has closed; false if it does not.
static bool finish(Connection connection) {
  unsigned char octets[2048];
  ssize_t length;
  SSL_shutdown(connection.tls);
  shutdown(connection.fd, SHUT_WR);
  while ((length = recv(connection.fd, octets, sizeof octets, 0)) > 0) continue;
  const bool isClosed = length == 0 || errno == ECONNRESET;
  disconnect(connection);
  return isClosed;
}

static void makeHandshakes(bool isResumed, int port, int count) {
  SSL_SESSION *session = NULL;
  if (isResumed) {
    const Connection connection = connectFrom(0, port, NULL);
    stopUnless(connection.tls != NULL, "a handshake failed");
    stopUnless(awaitTicket(connection), "the server sends no ticket");
    finish(connection);
    session = SSL_SESSION_dup(ticket);
  }
  for (int i = 0; i < count; i++) {
    // A session that brought another ticket is not resumed again.
    SSL_SESSION *const copy = session == NULL ? NULL : SSL_SESSION_dup(session);
    const Connection connection = connectFrom(0, port, copy);
    stopUnless(connection.tls != NULL, "a handshake failed");
    stopUnless(SSL_session_reused(connection.tls) == (session != NULL), "a handshake was not resumed");
    stopUnless(finish(connection), "the server does not close a connection that the client closes");
    SSL_SESSION_free(copy);
  }
  printf("%d\n", count);
}

// A query of type A with RD set (RFC 1035, section 4.1); returns its length.
static size_t composeQuery(unsigned char *query, const char *name) {
  size_t length = headerSize;
  memset(query, 0, headerSize);
  query[2] = 1;
  query[5] = 1;
  while (*name != '\0') {
    const size_t label = strcspn(name, ".");
    stopUnless(label > 0 && label < 64 && length + label + 6 < maximumMessage, "a name is malformed");
    query[length++] = (unsigned char)label;
    memcpy(query + length, name, label);
    length += label;
    name += label + (name[label] == '.');
  }
  static const unsigned char tail[] = {0, 0, 1, 0, 1};  // root label, type A, class IN
  memcpy(query + length, tail, sizeof tail);
  return length + sizeof tail;
}

static void writeAll(Connection connection, const void *octets, size_t length) {
  stopUnless(SSL_write(connection.tls, octets, (int)length) == (int)length, "writing failed");
}

static void readAll(Connection connection, unsigned char *octets, size_t length) {
  for (size_t done = 0; done < length;) {
    errno = 0;
    const int got = SSL_read(connection.tls, octets + done, (int)(length - done));
    if (got > 0) {
      done += (size_t)got;
      continue;
    }
    stopUnless(SSL_get_error(connection.tls, got) == SSL_ERROR_WANT_READ && errno != EAGAIN, "an answer is missing");
  }
}

static void askOverDoT(Connection connection, const char *name) {
  unsigned char query[2 + maximumMessage], response[65536];
  const size_t length = composeQuery(query + 2, name);
  query[0] = (unsigned char)(length >> 8);
  query[1] = (unsigned char)length;
  writeAll(connection, query, length + 2);
  readAll(connection, response, 2);
  const size_t answered = (size_t)response[0] << 8 | response[1];
  readAll(connection, response, answered);
  stopUnless(answered >= headerSize && (response[3] & 15) == 0 && response[7] > 0, "a response holds no answer");
}

static void addText(unsigned char **end, const char *text, size_t length) {
  stopUnless(length < 127, "a header field is too long");
  *(*end)++ = (unsigned char)length;
  memcpy(*end, text, length);
  *end += length;
}

// The preface, SETTINGS and a GET (RFC 8484) whose fields are not compressed (RFC 7541); returns the length.
static size_t composeRequest(unsigned char *octets, const char *authority, const char *name) {
  static const unsigned char opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";  // and an octet of 0
  unsigned char query[maximumMessage], encoded[maximumMessage * 2];
  const size_t length = composeQuery(query, name);
  size_t used = (size_t)EVP_EncodeBlock(encoded, query, (int)length);
  while (used > 0 && encoded[used - 1] == '=') used--;
  for (size_t i = 0; i < used; i++) encoded[i] = encoded[i] == '+' ? '-' : encoded[i] == '/' ? '_' : encoded[i];
  char path[maximumMessage * 3];
  const int pathLength = snprintf(path, sizeof path, "/dns-query?dns=%.*s", (int)used, encoded);
  memcpy(octets, opening, sizeof opening);
  unsigned char *const frame = octets + sizeof opening;
  unsigned char *end = frame + frameHeader;
  *end++ = 0x82;  // :method GET
  *end++ = 0x87;  // :scheme https
  *end++ = 0x04;  // :path
  addText(&end, path, (size_t)pathLength);
  *end++ = 0x01;  // :authority
  addText(&end, authority, strlen(authority));
  *end++ = 0x0f;  // accept
  *end++ = 0x04;
  addText(&end, "application/dns-message", 23);
  const size_t block = (size_t)(end - frame) - frameHeader;
  const unsigned char header[frameHeader] = {
    0, (unsigned char)(block >> 8), (unsigned char)block, headersFrame, endStream | endHeaders, 0, 0, 0, 1};
  memcpy(frame, header, sizeof header);
  return (size_t)(end - octets);
}

static void askOverHTTP2(Connection connection, const char *authority, const char *name) {
  unsigned char octets[65536];
  writeAll(connection, octets, composeRequest(octets, authority, name));
  for (bool isAnswered = false; !isAnswered;) {
    unsigned char header[frameHeader];
    readAll(connection, header, sizeof header);
    const size_t length = (size_t)header[0] << 16 | (size_t)header[1] << 8 | header[2];
    stopUnless(length <= sizeof octets, "a frame is too long");
    readAll(connection, octets, length);
    stopUnless(header[3] != goAwayFrame, "the server ends the connection");
    if (header[3] == settingsFrame && (header[4] & acknowledged) == 0) {
      static const unsigned char reply[frameHeader] = {0, 0, 0, settingsFrame, acknowledged, 0, 0, 0, 0};
      writeAll(connection, reply, sizeof reply);
    }
    if (header[3] != dataFrame && header[3] != headersFrame) continue;
    if (header[3] == headersFrame) {
      size_t field = 0;
      while (field < length && (octets[field] & 0xe0) == 0x20) field++;  // size of the table
      stopUnless(field < length && octets[field] == 0x88, "the status is not 200");
    }
    if (header[3] == dataFrame && length >= headerSize) stopUnless((octets[3] & 15) == 0, "a response is no answer");
    isAnswered = (header[4] & endStream) != 0;
  }
}

static void hold(bool isHTTP, int port, const char *authority, const char *name, int count) {
  static Connection connections[maximumHeld];
  stopUnless(count > 0 && count <= maximumHeld, "too many connections");
  for (int i = 0; i < count; i++) {
    connections[i] = connectFrom(0, port, NULL);
    stopUnless(connections[i].tls != NULL, "a handshake failed");
    if (isHTTP) {
      askOverHTTP2(connections[i], authority, name);
    } else {
      askOverDoT(connections[i], name);
    }
  }
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) continue;
  int open = 0;
  for (int i = 0; i < count; i++) {
    unsigned char octet;
    const ssize_t length = recv(connections[i].fd, &octet, 1, MSG_DONTWAIT | MSG_PEEK);
    // A server may still send what belongs to the protocol; an alert before FIN is how it closes.
    if (length < 0 ? errno == EAGAIN : length > 0 && SSL_peek(connections[i].tls, &octet, 1) <= 0 &&
                                         (SSL_get_shutdown(connections[i].tls) & SSL_RECEIVED_SHUTDOWN) == 0)
      open++;
  }
  printf("%d\n", open);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// One process of a storm: writes how many handshakes succeeded and how many failed.
static void stormAlone(int output, int port, double rate, double seconds) {
  int counts[2] = {0, 0};
  srandom((unsigned)getpid() ^ (unsigned)time(NULL));
  const int64_t interval = (int64_t)(1e9 / rate), end = now() + (int64_t)(seconds * 1e9);
  for (int64_t due = now() + random() % interval; due < end; due += interval) {
    const struct timespec moment = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL);
    const uint32_t client = 1u + (uint32_t)random() % 0xfffeu;  // none ends in .0 and .255 of the whole range
    const uint32_t source = 0x7f000000u | (1u + (uint32_t)random() % 254u) << 16 | client;
    const Connection connection = connectFrom(source, port, NULL);
    const bool isMade = connection.tls != NULL;
    counts[isMade ? 0 : 1]++;
    if (isMade) {
      finish(connection);
    } else {
      disconnect(connection);
    }
  }
  stopUnless(write(output, counts, sizeof counts) == sizeof counts, "a process of the storm cannot report");
}

static void storm(int port, double rate, double seconds) {
  int ends[2], made = 0, failed = 0;
  stopUnless(rate > 0 && pipe(ends) == 0, "no pipe");
  for (int i = 0; i < stormProcesses; i++) {
    const pid_t child = fork();
    stopUnless(child >= 0, "no process");
    if (child > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stormAlone(ends[1], port, rate / stormProcesses, seconds);
    exit(0);
  }
  close(ends[1]);
  int counts[2], reports = 0;
  while (read(ends[0], counts, sizeof counts) == sizeof counts) {
    reports++;
    made += counts[0];
    failed += counts[1];
  }
  while (wait(NULL) > 0) continue;
  stopUnless(reports == stormProcesses, "a process of the storm has ended by itself");
  printf("%d %d\n", made, failed);
}

int main(int argumentCount, char **arguments) {
  const char *mode = argumentCount > 1 ? arguments[1] : "";
  signal(SIGPIPE, SIG_IGN);
  prepare();
  if (argumentCount == 5 && (strcmp(mode, "full") == 0 || strcmp(mode, "resumed") == 0)) {
    offerALPN(arguments[3]);
    makeHandshakes(strcmp(mode, "resumed") == 0, atoi(arguments[2]), atoi(arguments[4]));
  } else if (argumentCount == 7 && strcmp(mode, "hold") == 0) {
    const bool isHTTP = strcmp(arguments[2], "doh") == 0;
    offerALPN(isHTTP ? "h2" : "dot");
    hold(isHTTP, atoi(arguments[3]), arguments[4], arguments[5], atoi(arguments[6]));
  } else if (argumentCount == 6 && strcmp(mode, "storm") == 0) {
    offerALPN(arguments[3]);
    storm(atoi(arguments[2]), atof(arguments[4]), atof(arguments[5]));
  } else {
    stopUnless(false, "usage: tlsload full|resumed PORT ALPN COUNT, hold dot|doh PORT AUTHORITY NAME COUNT, or "
                      "storm PORT ALPN RATE SECONDS");
  }
  return 0;
}
