#include "base/text_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "base/units.hpp"

namespace polyring {

std::string read_text_file(const std::filesystem::path& path) {
  constexpr Bytes kLargest{64u << 20};
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status)) {
    usage_error("there is no file '{}'; check the path", path.string());
  }
  if (!std::filesystem::is_regular_file(status)) {
    usage_error("'{}' is not a regular file; give the path of a file", path.string());
  }
  const auto size = std::filesystem::file_size(path, failed);
  if (!failed && size > kLargest.value) {
    usage_error("'{}' has {} bytes, more than the {} that a topology can have; give another file",
                path.string(), size, to_text(kLargest));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file && !file.eof()) usage_error("'{}' cannot be read: {}", path.string(), std::strerror(errno));
  if (text.empty()) usage_error("'{}' is empty or cannot be read; give another file", path.string());
  return text;
}

}  // namespace polyring
