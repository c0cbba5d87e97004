// pairs.c -- asks each name twice, one at a time: through the forwarder over UDP, then of its provider directly.
//
// usage: pairs doh|json DNS_PORT URL CA_FILE NAMES COUNT
//
// NAMES holds one absolute name a line; CA_FILE may be empty. For each of COUNT names one line is printed:
//
//   FORWARDED TRANSFER SERVICE     nanoseconds
//
// FORWARDED is from sending the query to receiving the response. TRANSFER is a whole transfer of the same question on a
// connection that stays open. SERVICE is the part of it from before the first octet of the request is written until the
// last of the response is read: what the provider and the kernel take, without what this client does before and after.
// The two questions of a pair follow each other at once, so that the state of the machine is the same for both. Their
// order alternates.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { maximumMessage = 512, maximumURL = 1024, headerSize = 12, answerCountOffset = 6 };

typedef struct {
  unsigned char octets[maximumMessage];
  size_t length;
} Message;

typedef struct {
  CURL *handle;
  bool isJSON;
  const char *url;
  size_t received;
} Provider;

static void stopUnless(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "pairs: %s\n", what);
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// The moments before the first send and after the last successful receive of the transfer in flight; 0 is neither yet.
static int64_t requestWritten, responseRead;

// These take the place of the C library's functions for libcurl too: its own timers cannot tell when a request was
// written over HTTP/2.
ssize_t send(int fd, const void *octets, size_t length, int flags) {
  if (requestWritten == 0) requestWritten = now();
  return sendto(fd, octets, length, flags, NULL, 0);
}

ssize_t recv(int fd, void *octets, size_t length, int flags) {
  const ssize_t received = recvfrom(fd, octets, length, flags, NULL, NULL);
  if (received > 0) responseRead = now();
  return received;
}

// A query of type A with RD set (RFC 1035, section 4.1).
static Message composeQuery(const char *name, uint16_t identifier) {
  Message query = {.length = headerSize};
  query.octets[0] = (unsigned char)(identifier >> 8);
  query.octets[1] = (unsigned char)identifier;
  query.octets[2] = 1;
  query.octets[5] = 1;
  while (*name != '\0') {
    const size_t label = strcspn(name, ".");
    stopUnless(label > 0 && label < 64 && query.length + label + 6 < maximumMessage, "a name is malformed");
    query.octets[query.length++] = (unsigned char)label;
    memcpy(query.octets + query.length, name, label);
    query.length += label;
    name += label + (name[label] == '.');
  }
  static const unsigned char tail[] = {0, 0, 1, 0, 1};  // root label, type A, class IN
  memcpy(query.octets + query.length, tail, sizeof tail);
  query.length += sizeof tail;
  return query;
}

static int openForwarder(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const struct timeval limit = {.tv_sec = 5};
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  stopUnless(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "no socket");
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return fd;
}

static int64_t askForwarder(int fd, const char *name, uint16_t identifier) {
  const Message query = composeQuery(name, identifier);
  unsigned char response[4096];
  const int64_t start = now();
  stopUnless(send(fd, query.octets, query.length, 0) == (ssize_t)query.length, "sending failed");
  for (;;) {
    const ssize_t length = recv(fd, response, sizeof response, 0);
    stopUnless(length >= headerSize, "no response within five seconds");
    if (memcmp(response, query.octets, 2) != 0) continue;
    const int64_t elapsed = now() - start;
    stopUnless((response[3] & 15) == 0 && response[answerCountOffset + 1] > 0, "the response holds no answer");
    return elapsed;
  }
}

static size_t countOctets(char *data, size_t size, size_t count, void *context) {
  (void)data;
  *(size_t *)context += size * count;
  return size * count;
}

static Provider openProvider(bool isJSON, const char *url, const char *caFile) {
  Provider provider = {.handle = curl_easy_init(), .isJSON = isJSON, .url = url};
  stopUnless(provider.handle != NULL, "no curl handle");
  curl_easy_setopt(provider.handle, CURLOPT_PROXY, "");
  curl_easy_setopt(provider.handle, CURLOPT_TIMEOUT, 5L);
  curl_easy_setopt(provider.handle, CURLOPT_WRITEFUNCTION, countOctets);
  if (caFile[0] != '\0') curl_easy_setopt(provider.handle, CURLOPT_CAINFO, caFile);
  if (!isJSON) {
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/dns-message");
    curl_easy_setopt(provider.handle, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(provider.handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(provider.handle, CURLOPT_URL, url);
  }
  return provider;
}

// Returns the nanoseconds of the whole transfer and writes those of the service.
static int64_t askProvider(Provider *provider, const char *name, int64_t *service) {
  const Message query = composeQuery(name, 0);  // RFC 8484, section 4.1: an ID of 0
  char url[maximumURL];
  provider->received = 0;
  curl_easy_setopt(provider->handle, CURLOPT_WRITEDATA, &provider->received);
  if (provider->isJSON) {
    const int length = snprintf(url, sizeof url, "%s?name=%s&type=1", provider->url, name);
    stopUnless(length > 0 && length < maximumURL, "the URL is too long");
    curl_easy_setopt(provider->handle, CURLOPT_URL, url);
  } else {
    curl_easy_setopt(provider->handle, CURLOPT_POSTFIELDSIZE, (long)query.length);
    curl_easy_setopt(provider->handle, CURLOPT_COPYPOSTFIELDS, (const char *)query.octets);
  }
  requestWritten = responseRead = 0;
  const int64_t start = now();
  const CURLcode result = curl_easy_perform(provider->handle);
  const int64_t elapsed = now() - start;
  long status = 0;
  curl_easy_getinfo(provider->handle, CURLINFO_RESPONSE_CODE, &status);
  stopUnless(result == CURLE_OK, curl_easy_strerror(result));
  stopUnless(status == 200 && provider->received > 0, "the provider refused a transfer");
  stopUnless(requestWritten > 0 && responseRead > requestWritten, "the transfer did not pass through send and recv");
  *service = responseRead - requestWritten;
  return elapsed;
}

int main(int argumentCount, char **arguments) {
  stopUnless(argumentCount == 7, "usage: pairs doh|json DNS_PORT URL CA_FILE NAMES COUNT");
  const int forwarder = openForwarder(atoi(arguments[2]));
  Provider provider = openProvider(strcmp(arguments[1], "json") == 0, arguments[3], arguments[4]);
  FILE *names = fopen(arguments[5], "r");
  stopUnless(names != NULL, "the names cannot be read");

  const int count = atoi(arguments[6]);
  char name[256];
  // The first pairs open the connections and are not printed.
  const int opening = 20;
  for (int i = -opening; i < count && fgets(name, sizeof name, names) != NULL; i++) {
    name[strcspn(name, " \n")] = '\0';
    int64_t forwarded = 0, service = 0, transfer = 0;
    const bool forwarderFirst = i % 2 == 0;
    if (forwarderFirst) forwarded = askForwarder(forwarder, name, (uint16_t)(i + opening));
    transfer = askProvider(&provider, name, &service);
    if (!forwarderFirst) forwarded = askForwarder(forwarder, name, (uint16_t)(i + opening));
    if (i >= 0) printf("%lld %lld %lld\n", (long long)forwarded, (long long)transfer, (long long)service);
  }
  fclose(names);
  curl_easy_cleanup(provider.handle);
  close(forwarder);
}
