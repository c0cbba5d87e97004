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
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

/// A context for HMAC-SHA256 with a key; null if libcrypto fails. The key is copied and may be empty, but not a null
/// pointer. Free the context with EVP_MAC_CTX_free().
///
/// In C because the parameters borrow their names: C's literals live as long as the process, Swift's strings for one
/// call.
static inline EVP_MAC_CTX *ccrypto_hmac_sha256(const unsigned char *key, size_t count) {
  char digest[] = "SHA2-256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0), OSSL_PARAM_construct_end()};
  EVP_MAC *algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
  EVP_MAC_CTX *context = EVP_MAC_CTX_new(algorithm);
  EVP_MAC_free(algorithm);
  if (context != NULL && EVP_MAC_init(context, key, count, parameters) != 1) {
    EVP_MAC_CTX_free(context);
    context = NULL;
  }
  return context;
}

#endif
