#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CProcess.h -- what the process tells the C library and the kernel about its memory and descriptors; when it was built.
#ifndef HTTPDNSD_CPROCESS_H
#define HTTPDNSD_CPROCESS_H

/// One heap for all threads: each further one would keep memory of its own. To be called before there are threads.
void process_limit_heaps(void);

/// From now on no core is written, and no other program of the same user can read the process's memory: it holds secrets.
void process_keep_memory_private(void);

/// Raises the number of descriptors that may be open to `wanted`, or to as many as the process is allowed; returns how many
/// may be open now, -1 where that is not known.
long process_raise_descriptors(long wanted);

/// Puts CAP_NET_BIND_SERVICE into effect where the process may use it and does not yet: a file whose capability is only
/// permitted starts under any bounding set, while one whose capability is effective is refused by exec where that lacks it.
/// To be called before there are threads, which have sets of their own.
void process_use_bind_capability(void);

/// The variable of the environment with that number, as `NAME=value`; a null pointer behind the last one.
/// (/proc/self/environ is root's where the program's file has a capability.)
const char *process_variable(long number);

/// The argument of the command line with that number, the program's name being the first one; a null pointer behind the last
/// one. (/proc/self/cmdline need not be there.)
const char *process_argument(long number);

/// The day of the build in C's form, `Nov  1 2026`; of SOURCE_DATE_EPOCH where the build sets that.
const char *process_build_date(void);

/// Gives back what only the start needed: free memory of the heap, and the read-only pages of the program and its
/// libraries. They stay in the page cache; what is used again is mapped again.
void process_trim(void);

/// Gives free memory of the heap back where it is more than `spare` octets and more than what is in use.
void process_give_back(long spare);

#endif
