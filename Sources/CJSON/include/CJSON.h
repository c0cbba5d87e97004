#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CJSON.h -- reads strict JSON with simdjson. Values are two words and borrow from the parsed text.
//
// Each thread keeps one parser for its next text, so that parsing does not allocate; texts that are open at the same
// time have separate parsers. A text and its values must stay on one thread while the text is open.
#ifndef HTTPDNSD_CJSON_H
#define HTTPDNSD_CJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /// The usual limit of a text in octets, and the size of the parser that a thread keeps: about the largest DNS message with
  /// addresses as text.
  JSON_MAXIMUM_OCTETS = 65536,
  /// The deepest nesting of arrays and objects. An answer has three levels.
  JSON_MAXIMUM_DEPTH = 16,
  /// The most members of one object, because their names are checked for duplicates.
  JSON_MAXIMUM_MEMBERS = 256,
};

typedef enum {
  JSON_READ,
  /// The text exceeds the limit.
  JSON_TOO_LARGE,
  /// The nesting exceeds `JSON_MAXIMUM_DEPTH`.
  JSON_TOO_DEEP,
  /// Not JSON, a root that is neither an array nor an object, anything after the root, invalid UTF-8, a NUL character
  /// or half a surrogate pair in a string, a number that does not fit 64 bits, a duplicate member, or more than
  /// `JSON_MAXIMUM_MEMBERS` members.
  JSON_MALFORMED,
} json_status;

typedef enum {
  JSON_OBJECT,
  JSON_ARRAY,
  JSON_STRING,
  /// A number without fraction and exponent.
  JSON_INTEGER,
  JSON_REAL,
  JSON_TRUE,
  JSON_FALSE,
  JSON_NULL,
} json_kind;

/// An open text, which owns the memory of its values.
typedef struct json_text json_text;

/// A value of an open text.
typedef struct {
  const void *document;
  size_t position;
} json_value;

/// UTF-8 without NUL characters, followed by a NUL that is not counted. Borrowed from the text.
typedef struct {
  const char *octets;
  size_t count;
} json_string;

/// An iterator over the elements of an array or the members of an object.
typedef struct {
  json_value next;
  size_t end;
} json_iterator;

/// Reads a text of up to `limit` octets. On `JSON_READ` the caller owns `*text` and must call `json_close()`; otherwise
/// `*text` is not set. Copies the octets and takes about 25 octets of memory for each until `json_close()`. Aborts if
/// memory is exhausted.
json_status json_open(size_t limit, const void *octets, size_t count, json_text **text, json_value *root);

/// Closes a text and invalidates its values and strings.
void json_close(json_text *text);

json_kind json_kind_of(json_value value);

/// Finds a member of an object by name; returns false if it does not exist or the value is not an object.
bool json_find(json_value object, const void *name, size_t count, json_value *member);

/// The number of elements of an array or members of an object; 0 for other values.
size_t json_count(json_value value);

/// An iterator over an array or object; empty for other values.
json_iterator json_iterate(json_value value);

/// Gets the next element of an array; returns false at the end.
bool json_next(json_iterator *elements, json_value *element);

/// Gets the next member of an object; returns false at the end.
bool json_next_member(json_iterator *members, json_string *name, json_value *value);

/// Gets a string; returns false for other values.
bool json_string_of(json_value value, json_string *string);

/// Gets an integer that is not negative; returns false for other values, also numbers with a fraction or exponent.
bool json_unsigned_of(json_value value, uint64_t *number);

/// Gets an integer up to INT64_MAX; returns false for other values, also numbers with a fraction or exponent.
bool json_signed_of(json_value value, int64_t *number);

/// Gets any number as a double; returns false for other values.
bool json_double_of(json_value value, double *number);

#ifdef __cplusplus
}
#endif

#endif
