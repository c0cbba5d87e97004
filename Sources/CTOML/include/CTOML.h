// CTOML.h -- reads TOML with toml++. Nodes and strings borrow from the text that was read.
//
// The library recurses once for each nested bracket and each part of a dotted key: callers limit both.
#ifndef HTTPDNSD_CTOML_H
#define HTTPDNSD_CTOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CTOML_TABLE,
  CTOML_ARRAY,
  CTOML_STRING,
  CTOML_INTEGER,
  CTOML_REAL,
  CTOML_BOOLEAN,
  /// A date, a time, or both.
  CTOML_DATE,
} ctoml_kind;

/// An open text, which owns its nodes.
typedef struct ctoml_text ctoml_text;

/// A value of an open text.
typedef struct ctoml_node ctoml_node;

/// UTF-8. Borrowed from the text.
typedef struct {
  const char *octets;
  size_t count;
} ctoml_string;

/// Why a text is not TOML.
typedef struct {
  /// Where, in lines and code points from 1.
  uint32_t line;
  uint32_t column;
  /// In the library's words, cut off where they are too long.
  char reason[512];
} ctoml_mistake;

/// Reads a text. The caller owns it and must call `ctoml_close()`. Returns NULL if the text is not TOML, and then sets
/// `*mistake`. Aborts if memory is exhausted.
ctoml_text *ctoml_open(const char *octets, size_t count, ctoml_mistake *mistake);

/// Closes a text and invalidates its nodes and strings.
void ctoml_close(ctoml_text *text);

/// The table of the top level.
const ctoml_node *ctoml_root(const ctoml_text *text);

ctoml_kind ctoml_kind_of(const ctoml_node *node);

/// The value of a node of that kind; empty, 0 or false for other nodes.
ctoml_string ctoml_string_of(const ctoml_node *node);
int64_t ctoml_integer_of(const ctoml_node *node);
double ctoml_real_of(const ctoml_node *node);
bool ctoml_boolean_of(const ctoml_node *node);

/// Calls `visit` for each value of a table, in the order of keys, or of an array, with an empty key. `visit` must not throw.
void ctoml_each(const ctoml_node *node, void *context,
                void (*visit)(void *context, ctoml_string key, const ctoml_node *value));

#ifdef __cplusplus
}
#endif

#endif
