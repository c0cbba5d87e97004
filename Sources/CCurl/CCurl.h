#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CCurl.h -- libcurl's easy and multi interfaces; one typed function for each argument of the variadic ones.
#ifndef HTTPDNSD_CCURL_H
#define HTTPDNSD_CCURL_H

#include <curl/curl.h>

#endif
