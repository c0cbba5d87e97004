// CPage.h -- the files of the dashboard's page, as they are sent.
#ifndef HTTPDNSD_CPAGE_H
#define HTTPDNSD_CPAGE_H

#include <stddef.h>

/// A file of the page.
typedef struct {
  /// Its name below `/dashboard/`.
  const char *_Nonnull name;
  /// Content-Type.
  const char *_Nonnull type;
  const unsigned char *_Nonnull octets;
  size_t count;
} page_file;

/// The number of files.
extern const size_t page_file_count;

/// The file at `index`, which is below `page_file_count`.
page_file page_file_at(size_t index);

#endif
