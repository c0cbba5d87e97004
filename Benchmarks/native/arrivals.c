// arrivals.c -- asks several servers for the same names at random moments and takes the time of each answer.
//
// usage: arrivals NAMES TTL RATE WARMING MEASURING PORT...
//
// Names are n0.hot.example, n1.hot.example and so on, each asked for A and AAAA alike; n0 has 192.0.2.1 and
// 2001:db8::1, n1 the next ones. Every server gets RATE queries a second, at moments of its own (a Poisson process),
// whether earlier ones have been answered or not. In the first four fifths of WARMING seconds the names come into use
// one after the other; the queries of the MEASURING seconds behind WARMING count. On standard output:
//
//   measuring
//   measured
//   SERVER right|wrong|lost NANOSECONDS    for each query that counts; SERVER is the place of its port, from 0
//
// Right is the address of the name and nothing else, with a TTL that is not above TTL.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  mostServers = 16,
  mostNames = 200,
  identifiers = 65536,
  messageSize = 4096,
  headerSize = 12,  // RFC 1035, section 4.1.1
  addressSize = 16,
  typeA = 1,
  typeAAAA = 28,
  patience = 3,  // seconds after which a query counts as lost
};

typedef enum { right, wrong, lost } Verdict;

// A question, ready to be sent, and the address that answers it.
typedef struct {
  unsigned char octets[64];
  size_t length;
  unsigned char address[addressSize];
  uint16_t addressLength, type;
} Question;

typedef struct {
  int64_t sent;  // 0: nothing is in flight
  uint16_t question;
  bool counts;
} Query;

typedef struct {
  int64_t next;  // when the next query is due
  Query queries[identifiers];
  uint16_t identifier;
} Server;

typedef struct {
  int64_t nanoseconds;
  uint8_t server, verdict;
} Result;

static Question questions[mostNames * 2];
static Server servers[mostServers];
static struct pollfd sockets[mostServers];
static nfds_t serverCount;
static uint32_t highestTTL;
static Result *results;
static size_t resultCount, resultLimit;

static void stopUnless(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "arrivals: %s\n", what);
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static uint16_t number(const unsigned char *octets) { return (uint16_t)(octets[0] << 8 | octets[1]); }

static void prepareQuestion(Question *question, int name, uint16_t type) {
  static const unsigned char header[headerSize] = {0, 0, 1, 0, 0, 1};  // RD; one question
  char label[8];
  const int labelLength = snprintf(label, sizeof label, "n%d", name);
  unsigned char *end = mempcpy(question->octets, header, headerSize);
  *end++ = (unsigned char)labelLength;
  end = mempcpy(end, label, (size_t)labelLength);
  end = mempcpy(end, "\3hot\7example", 13);  // the terminating zero is the root
  const unsigned char fields[] = {0, (unsigned char)type, 0, 1};
  end = mempcpy(end, fields, sizeof fields);
  question->length = (size_t)(end - question->octets);
  question->type = type;
  const unsigned char last = (unsigned char)(name + 1);
  if (type == typeA) {
    question->addressLength = 4;
    memcpy(question->address, (unsigned char[]){192, 0, 2, last}, 4);
  } else {
    question->addressLength = addressSize;
    memcpy(question->address, (unsigned char[addressSize]){0x20, 1, 0x0d, 0xb8, [addressSize - 1] = last}, addressSize);
  }
}

static void openSocket(nfds_t place, int port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  stopUnless(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "no socket");
  sockets[place] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void note(size_t server, const Query *query, Verdict verdict, int64_t time) {
  if (!query->counts) return;
  stopUnless(resultCount < resultLimit, "more answers than were asked for");
  results[resultCount++] =
      (Result){.nanoseconds = time - query->sent, .server = (uint8_t)server, .verdict = (uint8_t)verdict};
}

// Skips a name, which may end in a pointer (RFC 1035, section 4.1.4); returns 0 where it does not end.
static size_t skipName(const unsigned char *message, size_t position, size_t length) {
  while (position < length) {
    const unsigned char first = message[position];
    if (first == 0) return position + 1;
    if (first >= 0xc0) return position + 2;
    position += first + 1u;
  }
  return 0;
}

static bool isRight(const unsigned char *message, size_t length, const Question *question) {
  const bool isAnswer = (message[2] & 0x82) == 0x80 && (message[3] & 15) == 0;  // QR, not TC; no error
  if (!isAnswer || number(message + 4) != 1 || number(message + 6) != 1 || length < question->length) return false;
  if (memcmp(message + headerSize, question->octets + headerSize, question->length - headerSize) != 0) return false;
  const size_t fields = skipName(message, question->length, length);
  if (fields == 0 || fields + 10u + question->addressLength > length) return false;
  const uint32_t ttl = (uint32_t)number(message + fields + 4) << 16 | number(message + fields + 6);
  return number(message + fields) == question->type && ttl <= highestTTL &&
         number(message + fields + 8) == question->addressLength &&
         memcmp(message + fields + 10, question->address, question->addressLength) == 0;
}

static void receiveAll(size_t place) {
  unsigned char message[messageSize];
  for (;;) {
    const ssize_t length = recv(sockets[place].fd, message, sizeof message, MSG_DONTWAIT);
    if (length < headerSize) return;
    const int64_t time = now();
    Query *query = &servers[place].queries[number(message)];
    if (query->sent == 0) continue;  // it was given up
    note(place, query, isRight(message, (size_t)length, &questions[query->question]) ? right : wrong, time);
    query->sent = 0;
  }
}

static void ask(size_t place, int names, bool counts) {
  Server *server = &servers[place];
  const uint16_t identifier = server->identifier++;
  Query *query = &server->queries[identifier];
  if (query->sent != 0) note(place, query, lost, now());
  query->question = (uint16_t)(lrand48() % (names * 2));
  query->counts = counts;
  Question *question = &questions[query->question];
  question->octets[0] = (unsigned char)(identifier >> 8);
  question->octets[1] = (unsigned char)identifier;
  query->sent = now();
  // What the kernel refuses is lost, and counts as that.
  (void)!send(sockets[place].fd, question->octets, question->length, MSG_DONTWAIT);
}

// Waits for answers until `time`.
static void receiveUntil(int64_t time) {
  for (int64_t left = time - now(); left > 0; left = time - now()) {
    const struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    if (ppoll(sockets, serverCount, &timeout, NULL) <= 0) continue;
    for (nfds_t place = 0; place < serverCount; place++) {
      if (sockets[place].revents != 0) receiveAll(place);
    }
  }
}

static int64_t randomGap(double rate) { return (int64_t)(-log(1 - drand48()) / rate * 1e9); }

static void say(const char *text) {
  puts(text);
  fflush(stdout);
}

static void run(int names, double rate, double warming, double measuring) {
  const int64_t begin = now(), counted = begin + (int64_t)(warming * 1e9), end = counted + (int64_t)(measuring * 1e9);
  for (nfds_t place = 0; place < serverCount; place++) servers[place].next = begin + randomGap(rate);
  bool isMeasuring = false;
  for (;;) {
    nfds_t first = 0;
    for (nfds_t place = 1; place < serverCount; place++) {
      if (servers[place].next < servers[first].next) first = place;
    }
    const int64_t due = servers[first].next;
    if (!isMeasuring && due >= counted) {
      receiveUntil(counted);
      say("measuring");
      isMeasuring = true;
    }
    if (due >= end) break;
    receiveUntil(due);
    const double share = (double)(due - begin) / (double)(counted - begin) / 0.8;
    ask(first, share >= 1 ? names : 1 + (int)(share * (names - 1)), isMeasuring);
    servers[first].next = due + randomGap(rate);
  }
  receiveUntil(end);
  say("measured");
  receiveUntil(end + patience * (int64_t)1000000000);
}

int main(int argc, char **argv) {
  static const char *const words[] = {"right", "wrong", "lost"};
  stopUnless(argc > 6 && argc <= 6 + mostServers, "usage: arrivals NAMES TTL RATE WARMING MEASURING PORT...");
  const int names = atoi(argv[1]);
  highestTTL = (uint32_t)atoi(argv[2]);
  const double rate = atof(argv[3]), warming = atof(argv[4]), measuring = atof(argv[5]);
  stopUnless(names > 0 && names <= mostNames && rate > 0 && warming > 0 && measuring > 0, "numbers out of range");
  serverCount = (nfds_t)(argc - 6);
  for (nfds_t place = 0; place < serverCount; place++) openSocket(place, atoi(argv[6 + place]));
  for (int name = 0; name < names; name++) {
    prepareQuestion(&questions[2 * name], name, typeA);
    prepareQuestion(&questions[2 * name + 1], name, typeAAAA);
  }
  // Written once before the first query: no page is touched for the first time while answers are timed.
  resultLimit = (size_t)(rate * measuring * 2 + 1000) * serverCount;
  results = malloc(resultLimit * sizeof *results);
  stopUnless(results != NULL, "no memory");
  memset(results, 1, resultLimit * sizeof *results);
  memset(servers, 0, sizeof servers);
  srand48((long)now());
  run(names, rate, warming, measuring);
  const int64_t time = now();
  for (nfds_t place = 0; place < serverCount; place++) {
    for (int identifier = 0; identifier < identifiers; identifier++) {
      const Query *query = &servers[place].queries[identifier];
      if (query->sent != 0) note(place, query, lost, time);
    }
  }
  for (size_t i = 0; i < resultCount; i++) {
    printf("%d %s %lld\n", results[i].server, words[results[i].verdict], (long long)results[i].nanoseconds);
  }
  return fflush(stdout) == 0 ? 0 : 1;
}
