// CTOML.cpp -- see CTOML.h.
#include "CTOML.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace {

/// The library's parser relies on some properties of a text that it has not checked. A text without them is not TOML.
struct BrokenAssumption {};

[[noreturn]] void assumption_is_broken() { throw BrokenAssumption(); }

}  // namespace

// With NDEBUG the library would replace its assertions by assumptions of the compiler.
#undef NDEBUG
#define TOML_ASSERT(condition) (static_cast<bool>(condition) ? static_cast<void>(0) : assumption_is_broken())
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace {

ctoml_node *node_of(const toml::node &node) {
  return reinterpret_cast<ctoml_node *>(const_cast<toml::node *>(&node));
}

const toml::node &place_of(const ctoml_node *node) { return *reinterpret_cast<const toml::node *>(node); }

ctoml_string string_of(std::string_view text) { return {text.data(), text.size()}; }

void set(ctoml_mistake *mistake, const toml::source_position &position, std::string_view reason) {
  const size_t count = reason.copy(mistake->reason, sizeof mistake->reason - 1);
  mistake->reason[count] = '\0';
  mistake->line = position.line;
  mistake->column = position.column;
}

}  // namespace

struct ctoml_text {
  toml::table root;
};

ctoml_text *ctoml_open(const char *octets, size_t count, ctoml_mistake *mistake) {
  try {
    return new ctoml_text{toml::parse(std::string_view(octets, count))};
  } catch (const toml::parse_error &error) {
    set(mistake, error.source().begin, error.description());
  } catch (const std::bad_alloc &) {
    std::abort();
  } catch (...) {
    // Nothing but C may pass from here to Swift.
    set(mistake, {1, 1}, "not valid TOML");
  }
  return nullptr;
}

void ctoml_close(ctoml_text *text) { delete text; }

const ctoml_node *ctoml_root(const ctoml_text *text) { return node_of(text->root); }

ctoml_kind ctoml_kind_of(const ctoml_node *node) {
  switch (place_of(node).type()) {
    case toml::node_type::table: return CTOML_TABLE;
    case toml::node_type::array: return CTOML_ARRAY;
    case toml::node_type::integer: return CTOML_INTEGER;
    case toml::node_type::floating_point: return CTOML_REAL;
    case toml::node_type::boolean: return CTOML_BOOLEAN;
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time: return CTOML_DATE;
    case toml::node_type::string:
    case toml::node_type::none: break;
  }
  return CTOML_STRING;
}

ctoml_string ctoml_string_of(const ctoml_node *node) {
  const auto *value = place_of(node).as_string();
  return value == nullptr ? string_of({}) : string_of(value->get());
}

int64_t ctoml_integer_of(const ctoml_node *node) {
  const auto *value = place_of(node).as_integer();
  return value == nullptr ? 0 : value->get();
}

double ctoml_real_of(const ctoml_node *node) {
  const auto *value = place_of(node).as_floating_point();
  return value == nullptr ? 0 : value->get();
}

bool ctoml_boolean_of(const ctoml_node *node) {
  const auto *value = place_of(node).as_boolean();
  return value != nullptr && value->get();
}

void ctoml_each(const ctoml_node *node, void *context,
                void (*visit)(void *context, ctoml_string key, const ctoml_node *value)) {
  if (const auto *table = place_of(node).as_table()) {
    for (const auto &[key, value] : *table) visit(context, string_of(key.str()), node_of(value));
  } else if (const auto *array = place_of(node).as_array()) {
    for (const auto &value : *array) visit(context, string_of({}), node_of(value));
  }
}
