#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CPublicSuffix.h -- libpsl: the public suffix list, as the distribution keeps it.
#ifndef HTTPDNSD_CPUBLICSUFFIX_H
#define HTTPDNSD_CPUBLICSUFFIX_H

#include <libpsl.h>

#endif
