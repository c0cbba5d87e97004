#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CCrypto.h -- OpenSSL libcrypto: digests, HMAC, ciphers, certificates.
#ifndef HTTPDNSD_CCRYPTO_H
#define HTTPDNSD_CCRYPTO_H

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#endif
