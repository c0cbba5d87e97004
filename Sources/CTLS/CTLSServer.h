#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CTLSServer.h -- OpenSSL's server side, with functions for those of its calls that are macros.
#ifndef HTTPDNSD_CTLS_SERVER_H
#define HTTPDNSD_CTLS_SERVER_H

#include <openssl/pem.h>
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
  // Clients often close TCP without close_notify; the protocols above delimit their messages. An end of file that is an error
  // would keep the answers in flight from going out.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  return context;
}

// Adds a certificate of the chain. The context takes ownership if it returns 1.
static inline int ctls_add_chain(SSL_CTX *context, X509 *certificate) {
  return (int)SSL_CTX_add_extra_chain_cert(context, certificate);
}

#endif
