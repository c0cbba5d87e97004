#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CEvent.h -- libevent 2.1: base, events, buffers, listeners.
#ifndef HTTPDNSD_CEVENT_H
#define HTTPDNSD_CEVENT_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#endif
