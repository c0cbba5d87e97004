#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CTLSClient.h -- OpenSSL's client side, with functions for those of its calls that are macros.
#ifndef HTTPDNSD_CTLS_CLIENT_H
#define HTTPDNSD_CTLS_CLIENT_H

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>

// A context for TLS 1.2 and later, which keeps no sessions of its own. The context takes its own reference to the store.
static inline SSL_CTX *ctls_client_context(void *store) {
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (context == NULL) return NULL;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // One call of the system reads what has come, not one for each record's header and one for its content.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set1_cert_store(context, (X509_STORE *)store);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  return context;
}

// Sets the name of the server, and requires its certificate to be for that name. Returns 1, or 0 without memory
// or for an invalid name.
static inline int ctls_expect_host(SSL *ssl, const char *name, int is_address) {
  X509_VERIFY_PARAM *parameters = SSL_get0_param(ssl);
  if (is_address) return X509_VERIFY_PARAM_set1_ip_asc(parameters, name);
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

// Sets the time, in seconds since 1970, at which certificates must be valid, instead of the machine's clock.
static inline void ctls_check_at(SSL *ssl, int64_t time) {
  X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), (time_t)time);
}

static inline void ctls_set_owner(SSL *ssl, void *owner) { SSL_set_app_data(ssl, owner); }
static inline void *ctls_owner(const SSL *ssl) { return SSL_get_app_data(ssl); }

// The SHA-256 digest of the public key in the peer's certificate. Returns 1, or 0 without a certificate.
static inline int ctls_key_digest(const SSL *ssl, unsigned char digest[32]) {
  X509 *certificate = SSL_get1_peer_certificate(ssl);
  if (certificate == NULL) return 0;
  unsigned char *key = NULL;
  int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &key);
  X509_free(certificate);
  if (length <= 0) return 0;
  int is_done = EVP_Digest(key, (size_t)length, digest, NULL, EVP_sha256(), NULL);
  OPENSSL_free(key);
  return is_done;
}

// For an SSL_CTX that libcurl passes before a handshake. The context takes its own reference to the store.
static inline void ctls_context_trust(void *context, void *store) {
  SSL_CTX_set1_cert_store((SSL_CTX *)context, (X509_STORE *)store);
}

// Sets the time, in seconds since 1970, at which certificates must be valid, instead of the machine's clock.
static inline void ctls_context_set_time(void *context, int64_t time) {
  X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param((SSL_CTX *)context), (time_t)time);
}

#endif
