// The little JSON that goes into the file: objects and lists put together as text.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace nvcap {

// A JSON string; what is not printable ASCII is escaped byte by byte, so that hostile text stays valid JSON.
inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char character : text) {
    const unsigned char byte = static_cast<unsigned char>(character);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += character;
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += character;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    }
  }
  return out + "\"";
}

class JsonObject {
 public:
  JsonObject& raw(const char* name, const std::string& json) {
    if (!body_.empty()) body_ += ", ";
    body_ += quoted(name) + ": " + json;
    return *this;
  }
  JsonObject& text(const char* name, const std::string& value) { return raw(name, quoted(value)); }
  JsonObject& number(const char* name, uint64_t value) { return raw(name, std::to_string(value)); }
  JsonObject& flag(const char* name, bool value) { return raw(name, value ? "true" : "false"); }
  std::string str() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

class JsonList {
 public:
  void add(const std::string& json) {
    if (!body_.empty()) body_ += ", ";
    body_ += json;
  }
  std::string str() const { return "[" + body_ + "]"; }

 private:
  std::string body_;
};

}  // namespace nvcap
