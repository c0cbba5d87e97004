#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CProcess.h -- memory, descriptors and capabilities of the process; its arguments, variables and build date.
#ifndef HTTPDNSD_CPROCESS_H
#define HTTPDNSD_CPROCESS_H

/// Opens descriptors 0, 1 and 2 if they are closed, so that no later file or socket gets one of their numbers: log lines
/// would go into it. Reading from 0 and writing to 1 and 2 then fail as on a closed descriptor. Call it before anything
/// else opens a descriptor.
void process_occupy_standard_descriptors(void);

/// Makes an exit with 0 one with 1 and a line on stderr if stdio could not write all output. A full disk may refuse the
/// first part of it and take the last.
void process_check_output(void);

/// Limits the C library to one heap for all threads, because each heap retains memory. Call it before any thread
/// starts.
void process_limit_heaps(void);

/// Disables core dumps, and access to the memory by other processes of the same user: the process holds secrets.
void process_keep_memory_private(void);

/// Raises the limit of open descriptors to `wanted`, or to the hard limit. Returns the resulting limit, or -1 if it is
/// unknown.
long process_raise_descriptors(long wanted);

/// Makes CAP_NET_BIND_SERVICE effective if it is permitted. The program file has it as permitted only: exec refuses a
/// file with an effective capability that the bounding set lacks. Call it before any thread starts: capabilities are
/// per thread.
void process_use_bind_capability(void);

/// The environment variable with that index, as `NAME=value`; a null pointer after the last one. (/proc/self/environ is
/// readable only by root if the program file has a capability.)
const char *process_variable(long number);

/// The command line argument with that index, the program's name being 0; a null pointer after the last one.
/// (/proc/self/cmdline may be missing.)
const char *process_argument(long number);

/// The date of the build in C's form, `Nov  1 2026`; that of SOURCE_DATE_EPOCH if the build sets it.
const char *process_build_date(void);

/// Releases memory that only the start needed: free heap memory, and the read-only pages of the program and its
/// libraries, which stay in the page cache and are mapped again on use.
void process_trim(void);

/// Releases free heap memory if it exceeds both `spare` octets and the memory in use.
void process_give_back(long spare);

#endif
