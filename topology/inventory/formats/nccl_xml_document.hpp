// NCCL's topology XML as elements whose attributes are checked while they are read. Only the files of this
// folder that are named nccl_xml* know the XML library.
#pragma once

#include <cstdint>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace polyring::nccl_xml {

/// An element of the file. Copies are cheap; the document must outlive them.
class Element {
 public:
  Element(pugi::xml_node node, const std::string& origin) : node_(node), origin_(&origin) {}

  std::string_view name() const { return node_.name(); }
  bool has(const char* key) const { return !node_.attribute(key).empty(); }
  /// The attribute's value, control characters replaced; empty when there is none. A usage Error for one that
  /// is longer than NCCL reads.
  std::string text(const char* key) const;

  /// A whole number, decimal or with 0x, as strtol() reads it; nothing when the attribute is absent or empty.
  /// A usage Error for other text and for numbers out of range.
  std::optional<std::int64_t> integer(const char* key, std::int64_t least, std::int64_t most) const;
  /// A number above 0 and up to `most`; nothing when the attribute is absent. A usage Error for all else, NaN
  /// too.
  std::optional<double> number(const char* key, double most) const;
  /// A bus address, `0000:07:00.0`: in lower case, with four digits of domain, or more where they are needed.
  /// A usage Error for other text.
  std::string bus_address(const char* key) const;

  /// Throws the usage Error about an attribute: `expected` says what it should be, "a whole number from 1 to
  /// 4".
  [[noreturn]] void refuse(const char* key, std::string_view expected) const;

  /// Calls `visit` with each child element, or with those of one name.
  template <typename Visit>
  void each_child(Visit visit) const {
    for (const pugi::xml_node child : node_.children()) {
      if (child.type() == pugi::node_element) visit(Element(child, *origin_));
    }
  }
  template <typename Visit>
  void each_child(const char* name, Visit visit) const {
    for (const pugi::xml_node child : node_.children(name)) visit(Element(child, *origin_));
  }
  std::optional<Element> child(const char* name) const;
  /// Whether `matches` holds for this element or one below it.
  template <typename Matches>
  bool any_below(Matches matches) const {
    return matches(*this) ||
           !node_.find_node([&](pugi::xml_node node) { return matches(Element(node, *origin_)); }).empty();
  }

 private:
  pugi::xml_node node_;
  const std::string* origin_;
};

/// A whole file.
class Document {
 public:
  /// Throws a usage Error for text that is too long, declares a document type or entities, is not
  /// well-formed, is nested too deeply, or whose root is not `<system>`. `origin` names it in errors.
  Document(std::string_view xml, std::string_view origin);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  Element system() const { return {document_.document_element(), origin_}; }
  const std::string& origin() const { return origin_; }

 private:
  std::string origin_;
  pugi::xml_document document_;
};

/// `00000000:3B:00.0` as `0000:3b:00.0`; nothing for text that is no bus address.
std::optional<std::string> normal_bus_address(std::string_view text);

}  // namespace polyring::nccl_xml
