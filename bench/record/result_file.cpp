#include "bench/record/result_file.hpp"

#include "base/files.hpp"
#include "reports/result_text.hpp"

namespace polyring {

void check_output(const std::string& path) {
  if (!path.empty() && path != kStandardOutput) check_writable(path);
}

std::string write_output(const std::string& path, std::string_view text) {
  if (path != kStandardOutput) return create_file(path, text).string();
  print_result(text);
  return "standard output";
}

std::string write_output(const std::string& path, const ResultFile& result) {
  return write_output(path, result_text(result));
}

}  // namespace polyring
