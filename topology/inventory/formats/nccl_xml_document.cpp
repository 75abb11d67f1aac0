#include "topology/inventory/formats/nccl_xml_document.hpp"

#include <cctype>
#include <charconv>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/units.hpp"

namespace polyring::nccl_xml {
namespace {

/// NCCL itself keeps 256 elements a host, of 8 KiB at most (NCCL_TOPO_XML_MAX_NODES in its src/graph/topo.h).
constexpr Bytes kLongest{4u << 20};
/// PCIe has 256 buses a domain, and a switch takes three; real trees are not a tenth as deep.
constexpr int kDeepest = 64;

class Depth : public pugi::xml_tree_walker {
 public:
  bool for_each(pugi::xml_node&) override { return depth() < kDeepest; }
};

/// MAX_STR_LEN in NCCL's src/graph/xml.h.
constexpr std::size_t kLongestValue = 255;

bool is_hex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::optional<std::string> normal_bus_address(std::string_view text) {
  constexpr std::string_view kTail = "hh:hh.h";  // bus, device, function
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > 8) return std::nullopt;
  const std::string_view tail = text.substr(colon + 1);
  if (tail.size() != kTail.size()) return std::nullopt;
  for (std::size_t i = 0; i < tail.size(); ++i) {
    if (kTail[i] == 'h' ? !is_hex(tail[i]) : tail[i] != kTail[i]) return std::nullopt;
  }
  std::string address;
  for (const char c : text.substr(0, colon)) {
    if (!is_hex(c)) return std::nullopt;
  }
  for (const char c : text) address += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::size_t digits = colon;
  while (digits > 4 && address.front() == '0') {
    address.erase(0, 1);
    --digits;
  }
  return std::string(digits < 4 ? 4 - digits : 0, '0') + address;
}

std::string Element::text(const char* key) const {
  const std::string_view value = node_.attribute(key).value();
  if (value.size() > kLongestValue) refuse(key, fmt::format("of at most {} characters", kLongestValue));
  return printable_line(value);
}

std::optional<std::int64_t> Element::integer(const char* key, std::int64_t least, std::int64_t most) const {
  const std::string value = text(key);
  if (value.empty()) return std::nullopt;
  const bool negative = value.front() == '-';
  const bool hex = value.compare(negative ? 1 : 0, 2, "0x") == 0;
  const char* const begin = value.data() + (negative ? 1 : 0) + (hex ? 2 : 0);
  const char* const end = value.data() + value.size();
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(begin, end, number, hex ? 16 : 10);
  const bool signed_twice = begin != end && *begin == '-';
  if (negative) number = -number;
  if (error != std::errc{} || rest != end || signed_twice || number < least || number > most) {
    refuse(key, fmt::format("a whole number from {} to {}", least, most));
  }
  return number;
}

std::optional<double> Element::number(const char* key, double most) const {
  if (!has(key)) return std::nullopt;
  const std::string value = text(key);
  double number = 0;
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  // Written so that NaN is refused too.
  const bool in_range = number > 0 && number <= most;
  if (error != std::errc{} || rest != value.data() + value.size() || !in_range) {
    refuse(key, fmt::format("a number above 0 and up to {}", most));
  }
  return number;
}

std::string Element::bus_address(const char* key) const {
  const auto address = normal_bus_address(text(key));
  if (!address) refuse(key, "a bus address such as 0000:07:00.0");
  return *address;
}

void Element::refuse(const char* key, std::string_view expected) const {
  const std::string value = printable_line(node_.attribute(key).value(), 40);
  usage_error(
      "'{}': {} of the <{}> at byte {} is {}, not {}; correct the file, or let NCCL write it again with "
      "NCCL_TOPO_DUMP_FILE=FILE",
      *origin_, key, name().substr(0, 40), node_.offset_debug(),
      has(key) ? fmt::format("'{}'", value) : std::string("missing"), expected);
}

std::optional<Element> Element::child(const char* name) const {
  const pugi::xml_node found = node_.child(name);
  if (found.empty()) return std::nullopt;
  return Element(found, *origin_);
}

Document::Document(std::string_view xml, std::string_view origin) : origin_(origin) {
  if (xml.size() > kLongest.value) {
    usage_error("'{}' has {} bytes, more than the {} that a topology of NCCL's can have; give another file",
                origin, xml.size(), to_text(kLongest));
  }
  for (const std::string_view declaration : {"<!DOCTYPE", "<!ENTITY"}) {
    if (xml.find(declaration) != std::string_view::npos) {
      usage_error(
          "'{}' declares a document type or entities, which NCCL's files don't; let NCCL write it with "
          "NCCL_TOPO_DUMP_FILE=FILE",
          origin);
    }
  }
  const pugi::xml_parse_result result =
      document_.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    usage_error(
        "'{}' is not well-formed XML or is truncated ({} at byte {}); copy it again, or let NCCL write it "
        "with "
        "NCCL_TOPO_DUMP_FILE=FILE",
        origin, result.description(), result.offset);
  }
  Depth depth;
  if (!document_.traverse(depth)) {
    usage_error("'{}' nests its elements {} deep, which no PCIe tree does; give another file", origin,
                kDeepest);
  }
  if (std::string_view(document_.document_element().name()) != "system") {
    usage_error(
        "'{}' is not a topology of NCCL's, whose outermost element is <system>; let NCCL write one with "
        "NCCL_TOPO_DUMP_FILE=FILE",
        origin);
  }
}

}  // namespace polyring::nccl_xml
