#include "base/module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

namespace polyring {

namespace fs = std::filesystem;

fs::path module_path(const char* variable, const fs::path& from_program) {
  const char* const named = std::getenv(variable);
  if (named != nullptr && *named != '\0') return named;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  const fs::path beside_program = (program.parent_path() / from_program).lexically_normal();
  Dl_info own{};
  if (fs::exists(beside_program, failed) || dladdr(reinterpret_cast<void*>(&module_path), &own) == 0 ||
      own.dli_fname == nullptr)
    return beside_program;
  const fs::path library = fs::absolute(own.dli_fname, failed);
  // Debian's libraries are in lib/x86_64-linux-gnu, others' in lib or lib64.
  const fs::path below_library =
      library.parent_path() / from_program.parent_path().filename() / from_program.filename();
  return fs::exists(below_library, failed) ? below_library : beside_program;
}

void* load_module(const fs::path& path, const char* entry, std::string& why_not) {
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    why_not = "there is no " + path.string();
    return nullptr;
  }
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    const char* const said = dlerror();
    why_not = fmt::format("it cannot be loaded: {}", said != nullptr ? said : path.string());
    return nullptr;
  }
  void* const found = dlsym(module, entry);
  if (found == nullptr) why_not = fmt::format("{} is no plug-in of Polyring's", path.string());
  return found;
}

}  // namespace polyring
