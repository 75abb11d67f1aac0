// Parts of the program that are loaded only where they are needed.
#pragma once

#include <filesystem>
#include <string>

namespace polyring {

/// The file that the environment's `variable` names; else `from_program`, such as
/// "../lib/polyring/libpolyring_cuda.so", from the folder of this program; where there is none, and this code
/// is that of a library in another program, the file "polyring/libpolyring_cuda.so" from the library's
/// folder.
std::filesystem::path module_path(const char* variable, const std::filesystem::path& from_program);

/// The address of the function `entry` of a module, which is never unloaded: what it allocates is in use
/// until the process ends. Null: `why_not` says why, in words that follow a colon.
void* load_module(const std::filesystem::path& path, const char* entry, std::string& why_not);

}  // namespace polyring
