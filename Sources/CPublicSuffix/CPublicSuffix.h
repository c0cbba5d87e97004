#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CPublicSuffix.h -- libpsl: the public suffix list of the distribution.
#ifndef HTTPDNSD_CPUBLICSUFFIX_H
#define HTTPDNSD_CPUBLICSUFFIX_H

#include <libpsl.h>

#endif
