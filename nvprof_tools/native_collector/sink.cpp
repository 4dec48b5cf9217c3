#include "sink.h"

#include <algorithm>
#include <cstring>

#include "json.h"

namespace nvcap {
namespace {

constexpr size_t kLongest = 64 << 10;
constexpr size_t kBlockBytes = 1 << 20, kWaitingBytes = 1 << 20;
#ifndef NVCAP_MOST_REMEMBERED  // tests take less
#define NVCAP_MOST_REMEMBERED (64 << 20)
#endif
constexpr size_t kMostRemembered = NVCAP_MOST_REMEMBERED, kBytesAText = 100;

struct Field {
  const char* name;
  const char* type;
  size_t offset;
};

std::string table_json(uint16_t kind, const char* name, size_t row_bytes, const std::vector<Field>& fields) {
  JsonList list;
  for (const Field& field : fields)
    list.add(JsonObject().text("name", field.name).text("type", field.type).number("offset", field.offset).str());
  JsonObject table;
  table.number("kind", kind).text("name", name).number("row_bytes", row_bytes).raw("fields", list.str());
  return table.str();
}

template <class Row>
void write_table(CaptureFile& file, uint16_t kind, Table<Row>& table) {
  constexpr size_t kMost = kBlockBytes / sizeof(Row);
  for (size_t first = 0; first < table.rows.size(); first += kMost) {
    const size_t count = std::min(kMost, table.rows.size() - first);
    if (file.block(kind, static_cast<uint32_t>(count), &table.rows[first], count * sizeof(Row))) table.written += count;
  }
  table.rows.clear();
}

}  // namespace

uint32_t Strings::id(std::string_view text) {
  text = text.substr(0, kLongest);
  if (remembered_ > kMostRemembered) {
    pointers_.clear();  // it points into the other
    ids_.clear();
    remembered_ = 0;
  }
  const auto [found, is_new] = ids_.emplace(std::string(text), next_);
  if (is_new) {
    next_++;
    remembered_ += text.size() + kBytesAText;
    const uint32_t head[2] = {found->second, static_cast<uint32_t>(text.size())};
    fresh.append(reinterpret_cast<const char*>(head), sizeof head).append(text);
    fresh_count++;
  }
  return found->second;
}

uint32_t Strings::id_of_pointer(const char* text) {
  if (text == nullptr) return kNone;
  const auto known = pointers_.find(text);
  if (known != pointers_.end() && *known->second.text == text) return known->second.id;
  const uint32_t number = id({text, strnlen(text, kLongest)});
  // Nodes of an unordered_map stay where they are.
  pointers_[text] = {number, &ids_.find(std::string(text, strnlen(text, kLongest)))->first};
  return number;
}

void Sink::write_schema() {
  JsonList tables;
#define NVCAP_ONE(field_type, field_name) {#field_name, #field_type, offsetof(TheRow, field_name)},
#define NVCAP_SCHEMA(kind, table, row, fields)                            \
  {                                                                       \
    using TheRow = row;                                                   \
    tables.add(table_json(kind, #table, sizeof(row), {fields(NVCAP_ONE)})); \
  }
  NVCAP_TABLES(NVCAP_SCHEMA)
#undef NVCAP_SCHEMA
#undef NVCAP_ONE
  file.json(kSchema, JsonObject().raw("tables", tables.str()).str());
}

void Sink::notice(const char* slug, uint64_t count, const std::string& message) {
  file.json(kNotice, JsonObject().text("slug", slug).number("count", count).text("message", message).str());
}

void Sink::write_strings() {
  if (strings.fresh_count == 0) return;
  file.block(kStrings, strings.fresh_count, strings.fresh.data(), strings.fresh.size());
  strings.fresh.clear();
  strings.fresh_count = 0;
}

void Sink::flush() {
  write_strings();
#define NVCAP_WRITE(kind, table, row, fields) write_table(file, kind, table);
  NVCAP_TABLES(NVCAP_WRITE)
#undef NVCAP_WRITE
}

void Sink::flush_if_full() {
  if (waiting() > kWaitingBytes) flush();
}

size_t Sink::waiting() const {
  size_t bytes = strings.fresh.size();
#define NVCAP_BYTES(kind, table, row, fields) bytes += table.rows.size() * sizeof(row);
  NVCAP_TABLES(NVCAP_BYTES)
#undef NVCAP_BYTES
  return bytes;
}

std::string Sink::written_rows() const {
  JsonObject rows;
#define NVCAP_COUNT(kind, table, row, fields) rows.number(#table, table.written);
  NVCAP_TABLES(NVCAP_COUNT)
#undef NVCAP_COUNT
  return rows.str();
}

}  // namespace nvcap
