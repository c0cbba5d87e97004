#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CTLS.h -- libevent's OpenSSL bufferevent, for the simulator's HTTPS.
#ifndef HTTPDNSD_CTLS_H
#define HTTPDNSD_CTLS_H

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#endif
