// CJSON.cpp -- see CJSON.h.
#include "CJSON.h"

// Exceptions must not reach Swift: with 0, all functions of the library return error codes.
#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>

#include <sys/random.h>

namespace dom = simdjson::dom;

namespace {

/// A parser retains about 25 octets per octet of the largest text that it has read. Larger parsers are not reused.
constexpr size_t kept_octets = 16384;
/// The initial capacity of a parser in octets, enough for nearly every answer.
constexpr size_t usual_octets = 1024;

static_assert(sizeof(dom::element) == sizeof(json_value) && std::is_trivially_copyable<dom::element>::value,
              "an element is a document and a position");

dom::element element_of(json_value value) {
  dom::element element;
  std::memcpy(static_cast<void *>(&element), &value, sizeof value);
  return element;
}

/// Conversions between the library's elements and iterators and their handles.
template <typename Place>
json_value value_of(const Place &place) {
  static_assert(sizeof(Place) == sizeof(json_value) && std::is_trivially_copyable<Place>::value,
                "a place is a document and a position");
  json_value value;
  std::memcpy(&value, &place, sizeof value);
  return value;
}

template <typename Place>
Place place_of(json_value value) {
  Place place;
  std::memcpy(static_cast<void *>(&place), &value, sizeof value);
  return place;
}

/// One of 64 bits for a name, as a filter for duplicates.
uint64_t mark_of(std::string_view name) {
  const auto octet = [name](size_t index) { return static_cast<uint64_t>(static_cast<unsigned char>(name[index])); };
  const uint64_t features = name.empty() ? 0 : octet(0) | octet(name.size() - 1) << 8 | name.size() << 16;
  return uint64_t{1} << (features * 0x9E3779B97F4A7C15 >> 58);
}

/// A keyed hash of a name, which peers cannot predict.
uint32_t hash_of(std::string_view name) {
  static const uint64_t seed = [] {
    uint64_t random = 0;
    return getrandom(&random, sizeof random, 0) == sizeof random ? random : uint64_t{1};
  }();
  uint64_t hash = seed;
  for (const char octet : name) hash = (hash ^ static_cast<unsigned char>(octet)) * 0x9E3779B97F4A7C15;
  return static_cast<uint32_t>(hash >> 32);
}

/// Whether all names differ, by a hash table with room for twice as many. Comparing each pair would take millions of
/// comparisons for a hostile text of 200 objects with 256 similar names each.
bool has_unique_names_by_table(dom::object object) {
  constexpr size_t slots = size_t{2} * JSON_MAXIMUM_MEMBERS;
  static_assert((slots & (slots - 1)) == 0, "a power of two");
  std::string_view names[slots];
  bool is_taken[slots] = {};
  for (const auto member : object) {
    size_t slot = hash_of(member.key) & (slots - 1);
    while (is_taken[slot]) {
      if (names[slot] == member.key) return false;
      slot = (slot + 1) & (slots - 1);
    }
    is_taken[slot] = true;
    names[slot] = member.key;
  }
  return true;
}

/// Up to this number of members, names are compared pairwise: clearing a table would take longer.
constexpr size_t few_members = 16;

bool has_unique_names(dom::object object) {
  if (object.size() > JSON_MAXIMUM_MEMBERS) return false;
  const auto end = object.end();
  uint64_t marks = 0;
  for (auto member = object.begin(); member != end; ++member) {
    const uint64_t mark = mark_of(member.key());
    if ((marks & mark) != 0) {
      if (object.size() > few_members) return has_unique_names_by_table(object);
      for (auto other = object.begin(); other != member; ++other) {
        if (other.key_equals(member.key())) return false;
      }
    }
    marks |= mark;
  }
  return true;
}

/// `JSON_READ` if no object in the element has a duplicate member and nothing is nested too deeply. The parser limits
/// the depth too, but ignores empty arrays and objects.
json_status check_nested(dom::element element, int depth) {
  if (element.is_object()) {
    const dom::object object = element.get_object().value_unsafe();
    if (depth == JSON_MAXIMUM_DEPTH) return JSON_TOO_DEEP;
    if (!has_unique_names(object)) return JSON_MALFORMED;
    for (const auto member : object) {
      if (const json_status status = check_nested(member.value, depth + 1); status != JSON_READ) return status;
    }
  } else if (element.is_array()) {
    const dom::array array = element.get_array().value_unsafe();
    if (depth == JSON_MAXIMUM_DEPTH) return JSON_TOO_DEEP;
    for (const auto inner : array) {
      if (const json_status status = check_nested(inner, depth + 1); status != JSON_READ) return status;
    }
  }
  return JSON_READ;
}

/// The value of four hexadecimal digits.
unsigned code_unit(const char *digits) {
  unsigned value = 0;
  for (int index = 0; index < 4; ++index) {
    const char digit = digits[index];
    value = value << 4 | static_cast<unsigned>(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
  }
  return value;
}

bool is_low_surrogate(unsigned unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

/// Whether no escape stands for NUL or for half a surrogate pair, both of which the library accepts.
/// The library must have accepted the text, so that every backslash begins a complete escape.
bool has_only_characters(const char *text, size_t count) {
  const char *const end = text + count;
  const auto find_escape = [end](const char *from) {
    return static_cast<const char *>(std::memchr(from, '\\', static_cast<size_t>(end - from)));
  };
  const char *escape = find_escape(text);
  while (escape != nullptr) {
    if (escape[1] != 'u') {
      escape = find_escape(escape + 2);
      continue;
    }
    const unsigned unit = code_unit(escape + 2);
    if (unit == 0 || is_low_surrogate(unit)) return false;
    escape += 6;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      if (escape[0] != '\\' || escape[1] != 'u' || !is_low_surrogate(code_unit(escape + 2))) return false;
      escape += 6;
    }
    escape = find_escape(escape);
  }
  return true;
}

}  // namespace

struct json_text {
  dom::parser parser;

  explicit json_text(size_t limit) : parser(limit) {}
};

namespace {

/// The parser that the thread's next text reuses.
thread_local std::unique_ptr<json_text> spare;

std::unique_ptr<json_text> take_text(size_t count) {
  const bool is_usual = count <= JSON_MAXIMUM_OCTETS;
  if (is_usual && spare) return std::move(spare);
  // The library's function that changes a parser's limit sets it to 32 octets.
  std::unique_ptr<json_text> text(new (std::nothrow) json_text(is_usual ? JSON_MAXIMUM_OCTETS : count));
  // The root takes one level.
  if (!text || text->parser.allocate(usual_octets, JSON_MAXIMUM_DEPTH + 1) != simdjson::SUCCESS) std::abort();
  return text;
}

void give_back(std::unique_ptr<json_text> text) {
  if (text->parser.capacity() <= kept_octets) spare = std::move(text);
}

json_status parse(json_text &text, const char *octets, size_t count, dom::element &root) {
  // With `true` the parser copies the octets into a padded buffer.
  switch (text.parser.parse(octets, count, true).get(root)) {
    case simdjson::SUCCESS: break;
    case simdjson::DEPTH_ERROR: return JSON_TOO_DEEP;
    case simdjson::MEMALLOC: std::abort();
    default: return JSON_MALFORMED;
  }
  if (!root.is_object() && !root.is_array()) return JSON_MALFORMED;
  return has_only_characters(octets, count) ? check_nested(root, 0) : JSON_MALFORMED;
}

}  // namespace

json_status json_open(size_t limit, const void *octets, size_t count, json_text **text, json_value *root) {
  if (count > limit) return JSON_TOO_LARGE;
  if (count == 0) return JSON_MALFORMED;
  std::unique_ptr<json_text> taken = take_text(count);
  dom::element element;
  const json_status status = parse(*taken, static_cast<const char *>(octets), count, element);
  if (status != JSON_READ) {
    give_back(std::move(taken));
    return status;
  }
  *root = value_of(element);
  *text = taken.release();
  return JSON_READ;
}

void json_close(json_text *text) { give_back(std::unique_ptr<json_text>(text)); }

json_kind json_kind_of(json_value value) {
  const dom::element element = element_of(value);
  switch (element.type()) {
    case dom::element_type::OBJECT: return JSON_OBJECT;
    case dom::element_type::ARRAY: return JSON_ARRAY;
    case dom::element_type::STRING: return JSON_STRING;
    case dom::element_type::INT64:
    case dom::element_type::UINT64: return JSON_INTEGER;
    case dom::element_type::DOUBLE: return JSON_REAL;
    case dom::element_type::BOOL: return element.get_bool().value_unsafe() ? JSON_TRUE : JSON_FALSE;
    case dom::element_type::NULL_VALUE: break;
  }
  return JSON_NULL;
}

bool json_find(json_value object, const void *name, size_t count, json_value *member) {
  dom::element found;
  const std::string_view key(static_cast<const char *>(name), count);
  if (element_of(object).at_key(key).get(found) != simdjson::SUCCESS) return false;
  *member = value_of(found);
  return true;
}

size_t json_count(json_value value) {
  const dom::element element = element_of(value);
  if (element.is_array()) return element.get_array().value_unsafe().size();
  return element.is_object() ? element.get_object().value_unsafe().size() : 0;
}

json_iterator json_iterate(json_value value) {
  const dom::element element = element_of(value);
  if (element.is_array()) {
    const dom::array array = element.get_array().value_unsafe();
    return {value_of(array.begin()), value_of(array.end()).position};
  }
  if (element.is_object()) {
    const dom::object object = element.get_object().value_unsafe();
    return {value_of(object.begin()), value_of(object.end()).position};
  }
  return {value, value.position};
}

bool json_next(json_iterator *elements, json_value *element) {
  if (elements->next.position == elements->end) return false;
  auto place = place_of<dom::array::iterator>(elements->next);
  *element = value_of(*place);
  elements->next = value_of(++place);
  return true;
}

bool json_next_member(json_iterator *members, json_string *name, json_value *value) {
  if (members->next.position == members->end) return false;
  auto place = place_of<dom::object::iterator>(members->next);
  const std::string_view key = place.key();
  *name = {key.data(), key.size()};
  *value = value_of(place.value());
  members->next = value_of(++place);
  return true;
}

bool json_string_of(json_value value, json_string *string) {
  std::string_view text;
  if (element_of(value).get_string().get(text) != simdjson::SUCCESS) return false;
  *string = {text.data(), text.size()};
  return true;
}

bool json_unsigned_of(json_value value, uint64_t *number) {
  return element_of(value).get_uint64().get(*number) == simdjson::SUCCESS;
}

bool json_signed_of(json_value value, int64_t *number) {
  return element_of(value).get_int64().get(*number) == simdjson::SUCCESS;
}

bool json_double_of(json_value value, double *number) {
  return element_of(value).get_double().get(*number) == simdjson::SUCCESS;
}
