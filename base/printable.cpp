#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace polyring {
namespace {

constexpr char32_t kReplacement = U'\uFFFD';

struct Character {
  char32_t code;
  std::size_t bytes;  // that it takes of the text
};

/// The first character of a text that has some. A byte that begins none is a replacement (RFC 3629).
Character first_of(std::string_view text) {
  struct Form {
    unsigned char mask, lead;
    char32_t least;  // a smaller code would have a shorter form
  };
  constexpr std::array<Form, 4> kForms{
      {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}}};
  constexpr Character kNone{kReplacement, 1};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t more = 0; more < kForms.size(); ++more) {
    const Form& form = kForms[more];
    if ((byte(0) & form.mask) != form.lead) continue;
    if (text.size() <= more) return kNone;
    char32_t code = byte(0) & static_cast<unsigned char>(~form.mask);
    for (std::size_t i = 1; i <= more; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return kNone;
      code = code << 6 | (byte(i) & 0x3F);
    }
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < form.least || code > 0x10FFFF || surrogate ? kNone : Character{code, more + 1};
  }
  return kNone;
}

/// Marks and controls of directions, and separators of lines and paragraphs.
bool is_hidden_control(char32_t code) {
  return (code >= 0x80 && code <= 0x9F) || code == 0x61C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

char32_t visible(char32_t code) {
  constexpr char32_t kPictures = 0x2400;  // of the controls below the blank, in their order
  constexpr char32_t kDelete = 0x7F;
  constexpr char32_t kPictureOfDelete = 0x2421;
  if (code < U' ') return kPictures + code;
  if (code == kDelete) return kPictureOfDelete;
  return is_hidden_control(code) ? kReplacement : code;
}

void append(std::string& text, char32_t code) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

/// Each character by its code, the first `most`, and "…" if there are more.
template <typename Shown>
std::string each_shown(std::string_view text, std::size_t most, Shown&& code_of) {
  std::string result;
  result.reserve(std::min(text.size(), most));
  for (std::size_t characters = 0; !text.empty(); ++characters) {
    if (characters == most) return result + "…";
    const Character character = first_of(text);
    append(result, code_of(character.code));
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string shown(std::string_view text, bool one_line, std::size_t most) {
  return each_shown(text, most, [&](char32_t code) {
    const bool stays = !one_line && (code == U'\n' || code == U'\t');
    return stays ? code : visible(code);
  });
}

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

}  // namespace

std::string valid_utf8(std::string_view text) {
  return each_shown(text, kAll, [](char32_t code) { return code; });
}
std::string printable(std::string_view text) { return shown(text, false, kAll); }
std::string printable_line(std::string_view text) { return shown(text, true, kAll); }
std::string printable_line(std::string_view text, std::size_t most) { return shown(text, true, most); }

}  // namespace polyring
