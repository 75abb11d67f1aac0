#include "reports/picture.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/error.hpp"
#include "base/files.hpp"
#include "reports/drawing.hpp"
#include "reports/result.hpp"

namespace polyring {
namespace {

namespace fs = std::filesystem;

/// A folder that goes away with the object.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "polyring-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      usage_error("cannot make a folder in '{}': {}; name another one in TMPDIR",
                  fs::temp_directory_path().string(), std::strerror(errno));
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path file(std::string_view name) const { return path_ / name; }

 private:
  fs::path path_;
};

}  // namespace

void check_picture(const fs::path& path) {
  constexpr std::array<std::string_view, 2> kKinds{".svg", ".png"};
  const std::string kind = path.extension().string();
  if (std::ranges::find(kKinds, kind) == kKinds.end())
    usage_error("'{}' names no kind of picture; let it end in .svg or .png", path.string());
  check_writable(path);
}

fs::path write_picture(std::string_view probe_json, const std::string& source, const fs::path& path) {
  check_picture(path);
  const Scratch scratch;
  const fs::path hosts = scratch.file("probe.json");
  const fs::path drawn = scratch.file("picture" + path.extension().string());
  write_file(hosts, probe_json);
  const std::array<std::string, 5> arguments{hosts.string(), "--source", source, "--out", drawn.string()};
  const Drawing drawing = run_drawing("picture.py", arguments);
  if (drawing.code != ExitCode::ok)
    throw Error(drawing.code, fmt::format("the picture cannot be drawn: {}", drawing.failure));
  return create_file(path, read_file(drawn));
}

}  // namespace polyring
