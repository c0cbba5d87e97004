#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CTLS.h -- OpenSSL, and bounds on the work inside one of its calls.
#ifndef HTTPDNSD_CTLS_H
#define HTTPDNSD_CTLS_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>

// The most records in a row that bring no content. An honest peer sends a ticket or two, and seldom a new key.
enum { CTLS_MOST_EMPTY_RECORDS = 64 };

// A new index for `SSL_set_ex_data`, once.
static inline int ctls_index_at(int *index) {
  int known = __atomic_load_n(index, __ATOMIC_RELAXED);
  if (known == 0) {
    known = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    __atomic_store_n(index, known, __ATOMIC_RELAXED);
  }
  return known;
}

// OpenSSL's callback for records and messages: counts the records in a row that have no content, and lets the connection end
// as if the peer had closed it when there are too many. The count lies at an index of OpenSSL's own.
static inline void ctls_record_came(
    int is_sent, int version, int type, const void *octets, size_t length, SSL *ssl, void *index) {
  (void)version;
  int is_kind = SSL_version(ssl) >= TLS1_3_VERSION ? type == SSL3_RT_INNER_CONTENT_TYPE : type == SSL3_RT_HEADER;
  if (is_sent || !is_kind || length == 0) return;
  int has_content = ((const unsigned char *)octets)[0] == SSL3_RT_APPLICATION_DATA;
  uintptr_t count = has_content ? 0 : (uintptr_t)SSL_get_ex_data(ssl, (int)(intptr_t)index) + 1;
  SSL_set_ex_data(ssl, (int)(intptr_t)index, (void *)count);
  if (count > CTLS_MOST_EMPTY_RECORDS) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

// The octets that one call of libcurl may read from its TLS connections; the rest stays in the sockets for the next call. By
// itself it reads up to a hundred times. This many octets are 700 records of one octet, or 16,000 header fields.
enum { CTLS_MOST_OCTETS_IN_CALL = 16384 };

// To be called before each call of libcurl that may read. The caller owns the count: a variable of this header would be
// another one in each object file.
static inline void ctls_begin_call(uint32_t *left) { *left = CTLS_MOST_OCTETS_IN_CALL; }

// BIO_set_callback_ex(3): subtracts what is read from what is left of the call, the callback's argument. When nothing is left,
// the connection has nothing to read for the moment.
static inline long ctls_bound_read(
    BIO *bio, int operation, const char *octets, size_t length, int number, long option, int result, size_t *count) {
  (void)octets, (void)length, (void)number, (void)option;
  uint32_t *left = (uint32_t *)(void *)BIO_get_callback_arg(bio);
  if (operation == BIO_CB_READ && *left == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  if (operation == (BIO_CB_READ | BIO_CB_RETURN) && result > 0) {
    *left = *count < *left ? *left - (uint32_t)*count : 0;
  }
  return result;
}

// As `ctls_record_came`, and bounds what is read, from the connection's first message on. SSL_CTX_get_app_data(3) is the count.
static inline void ctls_record_came_in_call(
    int is_sent, int version, int type, const void *octets, size_t length, SSL *ssl, void *index) {
  ctls_record_came(is_sent, version, type, octets, length, ssl, index);
  BIO *bio = SSL_get_rbio(ssl);
  if (BIO_get_callback_ex(bio) != NULL) return;
  BIO_set_callback_arg(bio, (char *)SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  BIO_set_callback_ex(bio, ctls_bound_read);
}

// The octets that a peer's certificates may take together; those of an honest peer take 2,000 to 12,000. By default
// OpenSSL reads 100,000 octets: an attacker could send 300 certificates.
enum { CTLS_MOST_CERTIFICATE_OCTETS = 12288 };

// Leaves out what makes a handshake long, before it is known whose it is: a group of finite fields of 8,192 bits takes 0.1 s
// in TLS 1.3, and in TLS 1.2 a server may bring one of 10,000 bits.
static inline void ctls_bound_handshake(SSL_CTX *context) {
  // Where OpenSSL knows the first group (3.5), it begins with both shares, as by default.
  if (SSL_CTX_set1_groups_list(context, "*X25519MLKEM768:*X25519:P-256:X448:P-384:P-521") != 1) {
    SSL_CTX_set1_groups_list(context, "X25519:P-256:X448:P-384:P-521");
  }
  SSL_CTX_set_cipher_list(context, "DEFAULT:!kDHE:!kDHEPSK");
  SSL_CTX_set_max_cert_list(context, CTLS_MOST_CERTIFICATE_OCTETS);
  ERR_clear_error();
}

// Bounds the work inside one call of OpenSSL. By default SSL_read goes on until there is content, and a peer can send any
// number of messages that have none (RFC 8446 section 4.6). Returns the index of `SSL_get_ex_data` at which the records in a
// row without content are counted.
static inline int ctls_bound_work(void *context) {
  SSL_CTX_clear_mode((SSL_CTX *)context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_options((SSL_CTX *)context, SSL_OP_NO_RENEGOTIATION);
  ctls_bound_handshake((SSL_CTX *)context);
  static int index = 0;
  SSL_CTX_set_msg_callback((SSL_CTX *)context, ctls_record_came);
  SSL_CTX_set_msg_callback_arg((SSL_CTX *)context, (void *)(intptr_t)ctls_index_at(&index));
  return ctls_index_at(&index);
}

// Bounds the work inside one call of libcurl as well. `left` outlives the context's connections. libcurl uses no application
// data of the context.
static inline void ctls_bound_calls(void *context, uint32_t *left) {
  ctls_bound_work(context);
  SSL_CTX_set_app_data((SSL_CTX *)context, left);
  SSL_CTX_set_msg_callback((SSL_CTX *)context, ctls_record_came_in_call);
}

#endif
