#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CJSON.h -- reads a strict JSON text by simdjson: values are two words and borrow from the parsed text.
//
// A thread keeps one parser for its next text, so that parsing allocates nothing; texts that are open at the same time
// have a parser each. Neither a text nor its values may go to another thread while the text is open.
#ifndef HTTPDNSD_CJSON_H
#define HTTPDNSD_CJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /// Octets of a text; the largest DNS message with addresses in text is about this long.
  JSON_MAXIMUM_OCTETS = 65536,
  /// Arrays and objects within each other. An answer has three.
  JSON_MAXIMUM_DEPTH = 16,
  /// Members of one object: their names are compared with each other.
  JSON_MAXIMUM_MEMBERS = 256,
};

typedef enum {
  JSON_READ,
  /// More than `JSON_MAXIMUM_OCTETS`.
  JSON_TOO_LARGE,
  /// More than `JSON_MAXIMUM_DEPTH`.
  JSON_TOO_DEEP,
  /// Not JSON, a root that is neither an array nor an object, anything behind the root, invalid UTF-8, a NUL character
  /// or half a surrogate pair in a string, a number that 64 bits cannot hold, a member twice in an object, or more than
  /// `JSON_MAXIMUM_MEMBERS` of them.
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

/// An open text; it owns what its values borrow.
typedef struct json_text json_text;

/// A value of an open text.
typedef struct {
  const void *document;
  size_t position;
} json_value;

/// UTF-8 without NUL characters, ended by one that does not count; borrowed from the text.
typedef struct {
  const char *octets;
  size_t count;
} json_string;

/// The rest of an array's elements or of an object's members.
typedef struct {
  json_value next;
  size_t end;
} json_iterator;

/// Reads a text; on `JSON_READ` the caller owns `*text` until `json_close()`, on anything else there is none. The
/// octets are copied. Aborts without memory.
json_status json_open(const void *octets, size_t count, json_text **text, json_value *root);

/// As `json_open()` for a text of up to `limit` octets; about 25 octets of memory for each, until `json_close()`.
json_status json_open_within(size_t limit, const void *octets, size_t count, json_text **text, json_value *root);

/// Ends the life of a text's values and strings.
void json_close(json_text *text);

json_kind json_kind_of(json_value value);

/// The member of an object; false where there is none of that name, and for anything but an object.
bool json_find(json_value object, const char *name, size_t count, json_value *member);

/// Elements of an array or members of an object; 0 for anything else.
size_t json_count(json_value value);

/// The elements of an array or the members of an object; none for anything else.
json_iterator json_iterate(json_value value);

/// The next element of an array; false at its end.
bool json_next(json_iterator *elements, json_value *element);

/// The next member of an object; false at its end.
bool json_next_member(json_iterator *members, json_string *name, json_value *value);

/// A string's octets; false for anything else.
bool json_string_of(json_value value, json_string *string);

/// A number without fraction and exponent that is not negative; false for anything else.
bool json_unsigned_of(json_value value, uint64_t *number);

/// A number without fraction and exponent; false for anything else, and above INT64_MAX.
bool json_signed_of(json_value value, int64_t *number);

/// Any number, to the precision of a double; false for anything else.
bool json_double_of(json_value value, double *number);

#ifdef __cplusplus
}
#endif

#endif
