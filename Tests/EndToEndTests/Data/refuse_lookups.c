// refuse_lookups.c -- preloaded into the daemon: ends it when anything asks libc to look up a name.
//
// On the machine whose nameserver the daemon is, libc's stub resolver would ask the daemon itself.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void *refuse(const char *function)
{
    say("refused lookup: ");
    say(function);
    say("\n");
    abort();
}

// The arguments do not matter: the functions do not return.
#define REFUSED(function)                                                                                             \
    void *function(void);                                                                                             \
    void *function(void) { return refuse(#function); }

REFUSED(getaddrinfo)
REFUSED(getaddrinfo_a)
REFUSED(gethostbyname)
REFUSED(gethostbyname2)
REFUSED(gethostbyname_r)
REFUSED(gethostbyname2_r)
REFUSED(gethostbyaddr)
REFUSED(gethostbyaddr_r)
REFUSED(getnetbyname)
REFUSED(getnetbyname_r)
REFUSED(getnetbyaddr)
REFUSED(getnetbyaddr_r)
REFUSED(res_query)
REFUSED(res_search)
REFUSED(res_querydomain)
REFUSED(res_send)
REFUSED(res_nquery)
REFUSED(res_nsearch)
REFUSED(res_nquerydomain)
REFUSED(res_nsend)
REFUSED(__res_query)
REFUSED(__res_search)
REFUSED(__res_querydomain)
REFUSED(__res_send)
REFUSED(__res_nquery)
REFUSED(__res_nsearch)
REFUSED(__res_nquerydomain)
REFUSED(__res_nsend)

// Digits for an address and a port need no look-up: libevent's HTTP server writes its clients' addresses so. Any other
// flags are refused. <netdb.h>, which has them, would also declare the functions above.
enum { NUMERIC_HOST = 1, NUMERIC_SERVICE = 2 };

int getnameinfo(const void *address, unsigned length, char *host, unsigned host_size, char *service,
                unsigned service_size, int flags);
int getnameinfo(const void *address, unsigned length, char *host, unsigned host_size, char *service,
                unsigned service_size, int flags)
{
    int numeric = NUMERIC_HOST | NUMERIC_SERVICE;
    int (*original)(const void *, unsigned, char *, unsigned, char *, unsigned, int);
    if (flags != numeric) {
        refuse("getnameinfo");
    }
    *(void **)&original = dlsym(RTLD_NEXT, "getnameinfo");
    return original(address, length, host, host_size, service, service_size, flags);
}
