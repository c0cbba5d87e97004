#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CTLS.h -- OpenSSL, and libevent's bufferevent over it.
#ifndef HTTPDNSD_CTLS_H
#define HTTPDNSD_CTLS_H

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#endif
