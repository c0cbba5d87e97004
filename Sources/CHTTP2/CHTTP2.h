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

static inline nghttp2_frame_type chttp2_type(const nghttp2_frame *frame) { return (nghttp2_frame_type)frame->hd.type; }

#endif
