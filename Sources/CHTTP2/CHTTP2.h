#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CHTTP2.h -- nghttp2's sessions.
#ifndef HTTPDNSD_CHTTP2_H
#define HTTPDNSD_CHTTP2_H

#include <nghttp2/nghttp2.h>

// A client's session; NULL without memory.
static inline nghttp2_session *chttp2_session(const nghttp2_session_callbacks *callbacks, void *owner) {
  nghttp2_session *session = NULL;
  return nghttp2_session_client_new(&session, callbacks, owner) == 0 ? session : NULL;
}

// The most frames that continue a header section, and the most settings in one frame: honest clients send none or few.
enum { CHTTP2_MOST_CONTINUATIONS = 8, CHTTP2_MOST_SETTINGS = 32 };

// The most acknowledgements of PING and SETTINGS that wait for a client that reads none.
enum { CHTTP2_MOST_ACKNOWLEDGEMENTS = 64 };

// Streams that a client may reset: the first number at once, the second one in each second.
enum { CHTTP2_RESETS_AT_ONCE = 1000, CHTTP2_RESETS_A_SECOND = 33 };

// A server's session; NULL without memory. It announces no room for content by itself: the owner does when it has used it.
static inline nghttp2_session *chttp2_server_session(const nghttp2_session_callbacks *callbacks, void *owner) {
  nghttp2_option *option = NULL;
  if (nghttp2_option_new(&option) != 0) return NULL;
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  nghttp2_option_set_max_continuations(option, CHTTP2_MOST_CONTINUATIONS);
  nghttp2_option_set_max_settings(option, CHTTP2_MOST_SETTINGS);
  nghttp2_option_set_max_outbound_ack(option, CHTTP2_MOST_ACKNOWLEDGEMENTS);
  nghttp2_option_set_stream_reset_rate_limit(option, CHTTP2_RESETS_AT_ONCE, CHTTP2_RESETS_A_SECOND);
  nghttp2_session *session = NULL;
  int result = nghttp2_session_server_new2(&session, callbacks, owner, option);
  nghttp2_option_del(option);
  return result == 0 ? session : NULL;
}

// A field of a response, whose octets live until the response is submitted.
static inline nghttp2_nv chttp2_field(const char *name, size_t name_length, const uint8_t *value, size_t length) {
  nghttp2_nv field = {(uint8_t *)name, (uint8_t *)value, name_length, length, NGHTTP2_NV_FLAG_NO_COPY_NAME};
  return field;
}

static inline nghttp2_frame_type chttp2_type(const nghttp2_frame *frame) { return (nghttp2_frame_type)frame->hd.type; }

#endif
