#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CTLSServer.h -- OpenSSL's server side, with functions for those of its calls that are macros.
#ifndef HTTPDNSD_CTLS_SERVER_H
#define HTTPDNSD_CTLS_SERVER_H

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

// A context for TLS 1.2 and later. Sessions are in the clients' tickets only; there is no early data.
static inline SSL_CTX *ctls_server_context(void) {
  SSL_CTX *context = SSL_CTX_new(TLS_server_method());
  if (context == NULL) return NULL;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // An idle connection has no buffers.
  SSL_CTX_set_mode(
      context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // One call of the system reads what has come, not one for each record's header and one for its content.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Of TLS 1.2 only suites with forward secrecy and authenticated encryption; ChaCha20 for clients that prefer it.
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  // Clients often close TCP without close_notify; the protocols above delimit their messages. An end of file that is an error
  // would keep the answers in flight from going out.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  return context;
}

// The object that a context belongs to, for callbacks.
static inline void ctls_set_context_owner(SSL_CTX *context, void *owner) { SSL_CTX_set_app_data(context, owner); }
static inline void *ctls_context_owner(const SSL *ssl) { return SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)); }

// Called in each handshake, also where the client names no server: returns what OpenSSL does then, and sets the alert.
typedef int (*ctls_name_callback)(SSL *ssl, int *alert, void *unused);

static inline void ctls_on_server_name(SSL_CTX *context, ctls_name_callback callback) {
  SSL_CTX_set_tlsext_servername_callback(context, callback);
}

// What tickets are encrypted with (RFC 5077 section 4).
typedef struct {
  unsigned char name[16];
  unsigned char cipher[32];
  unsigned char mac[32];
} ctls_ticket_key;

// Makes a new key. Returns 1, or 0 without random octets.
static inline int ctls_make_ticket_key(ctls_ticket_key *key) { return RAND_bytes((unsigned char *)key, sizeof *key) == 1; }

// Prepares OpenSSL's contexts for one ticket. Returns 1, or 0 if that fails.
static inline int ctls_use_ticket_key(
    const ctls_ticket_key *key, int encrypts, unsigned char *vector, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac) {
  OSSL_PARAM parameters[] = {
    OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->mac, sizeof key->mac),
    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"sha256", 0),
    OSSL_PARAM_construct_end(),
  };
  if (EVP_MAC_CTX_set_params(mac, parameters) != 1) return 0;
  if (encrypts && RAND_bytes(vector, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return 0;
  return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, vector, encrypts) == 1;
}

#endif
