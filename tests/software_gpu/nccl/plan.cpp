#include "tests/software_gpu/nccl/plan.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "tests/software_gpu/software_gpu.hpp"

namespace polyring::software_nccl {
namespace {

constexpr int kNoRank = -1;

std::mutex plan_mutex;
std::optional<std::string> replaced;
std::string last;

std::vector<std::string> lines() {
  const std::lock_guard lock(plan_mutex);
  std::vector<std::string> found;
  if (replaced) {
    std::istringstream text(*replaced);
    for (std::string line; std::getline(text, line);) found.push_back(line);
    return found;
  }
  for (int index = 0; const char* const line = polyring_software_gpu_plan_line("nccl", index); ++index) {
    found.emplace_back(line);
  }
  return found;
}

template <typename Value>
Value read(std::istream& words, const std::string& line) {
  Value value{};
  if (!(words >> value)) fail_loudly(fmt::format("the plan's line \"nccl {}\" lacks a word", line));
  return value;
}

int version_of(const std::string& text) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (std::sscanf(text.c_str(), "%d.%d.%d", &major, &minor, &patch) != 3) {
    fail_loudly(text + " is no version such as 2.28.9");
  }
  return NCCL_VERSION(major, minor, patch);
}

ncclResult_t code_of(const std::string& name) {
  if (name == "ncclUnhandledCudaError") return ncclUnhandledCudaError;
  if (name == "ncclSystemError") return ncclSystemError;
  if (name == "ncclInternalError") return ncclInternalError;
  if (name == "ncclRemoteError") return ncclRemoteError;
  fail_loudly("the fake NCCL has no error " + name);
}

std::uint64_t& operation_of(Faults& faults, const std::string& what, const std::string& line) {
  if (what == "hung") return faults.hung_operation;
  if (what == "failed") return faults.failed_operation;
  if (what == "refused") return faults.refused_operation;
  fail_loudly(fmt::format("the plan's line \"nccl {}\" says nothing that is known here", line));
}

void read_line(Faults& faults, const std::string& line, int rank) {
  std::istringstream words(line);
  std::string word;
  if (!(words >> word)) return;
  bool ours = true;
  if (word == "rank") {
    ours = read<int>(words, line) == rank;
    word = read<std::string>(words, line);
  }
  Faults nobodys;
  Faults& to = ours ? faults : nobodys;
  if (word == "version") {
    to.version = version_of(read<std::string>(words, line));
  } else if (word == "seed") {
    to.seed = read<std::uint64_t>(words, line);
  } else if (const std::string what = read<std::string>(words, line); word == "hung" && what == "start") {
    to.hung_start = true;
  } else {
    operation_of(to, word, line) = read<std::uint64_t>(words, line);
    if (words >> word) to.code = code_of(read<std::string>(words, line));
  }
}

std::string with_prefix(const std::string& sentence) { return "software NCCL: " + sentence + "\n"; }

}  // namespace

Faults faults_of(int rank) {
  Faults faults;
  for (const std::string& line : lines()) read_line(faults, line, rank);
  return faults;
}

int version() { return faults_of(kNoRank).version; }

void replace_plan(const char* lines) {
  const std::lock_guard lock(plan_mutex);
  replaced = lines == nullptr ? std::nullopt : std::optional<std::string>(lines);
}

double limit() {
  const char* const text = std::getenv("POLYRING_SOFTWARE_NCCL_LIMIT");
  const double seconds = text == nullptr ? 0 : std::strtod(text, nullptr);
  return seconds > 0 ? seconds : 10;
}

void say(const std::string& sentence) {
  {
    const std::lock_guard lock(plan_mutex);
    last = sentence;
  }
  std::fputs(with_prefix(sentence).c_str(), stderr);
  const char* const aborts = std::getenv("POLYRING_SOFTWARE_NCCL_ABORT");
  if (aborts != nullptr && *aborts == '1') std::abort();
}

std::string last_said() {
  const std::lock_guard lock(plan_mutex);
  return last;
}

void fail_loudly(const std::string& sentence) {
  std::fputs(with_prefix(sentence).c_str(), stderr);
  std::abort();
}

}  // namespace polyring::software_nccl
