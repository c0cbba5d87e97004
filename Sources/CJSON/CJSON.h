#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CJSON.h -- jansson, a JSON parser that can refuse duplicate keys.
#ifndef HTTPDNSD_CJSON_H
#define HTTPDNSD_CJSON_H

#include <jansson.h>

#endif
