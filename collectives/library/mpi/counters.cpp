#include "collectives/library/mpi/counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "collectives/library/mpi/failure.hpp"
#include "collectives/library/mpi/settings.hpp"
#include "collectives/runtime/mpi/world.hpp"

namespace polyring::interposer {
namespace {

using Counter = std::atomic<std::uint64_t>;

constexpr std::array<std::string_view, kCalls> kCallNames{"MPI_Allreduce", "MPI_Reduce_scatter_block",
                                                          "MPI_Allgather"};
constexpr std::array<std::string_view, kWhys> kWhyNames{
    "small",     "type", "op",         "words",  "large",      "one_rank", "intercommunicator",
    "arguments", "off",  "not_joined", "nested", "finalizing", "other_mpi"};

std::array<Counter, kCalls> taken{};
std::array<Counter, kCalls> failed{};
std::array<std::array<Counter, kWhys>, kCalls> passed_on{};

bool written = false;

/// Where no call was looked at, so that nothing was told of MPI's end. Other programs than a rank's, such as
/// the shell that started it, have counted nothing.
struct AtExit {
  ~AtExit() {
    const auto any = [](const auto& counters) {
      return std::any_of(counters.begin(), counters.end(), [](const Counter& one) { return one != 0; });
    };
    if (!written && std::any_of(passed_on.begin(), passed_on.end(), any)) write_counters(launched_rank());
  }
} at_exit;

struct Notes {
  std::mutex mutex;
  std::vector<std::string> sentences;
};

Notes& notes() {
  static auto* const all = new Notes;  // other libraries' destructors may still use it
  return *all;
}

void increment(Counter& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// Without those that are 0.
template <std::size_t kSize>
std::string as_json(const std::array<Counter, kSize>& counters,
                    const std::array<std::string_view, kSize>& names) {
  std::string result;
  for (std::size_t i = 0; i < kSize; ++i) {
    if (const std::uint64_t number = counters[i]; number != 0)
      result += fmt::format("{}{}: {}", result.empty() ? "" : ", ", quoted(names[i]), number);
  }
  return '{' + result + '}';
}

}  // namespace

void count_taken(Call call) { increment(taken[static_cast<std::size_t>(call)]); }
void count_failed(Call call) { increment(failed[static_cast<std::size_t>(call)]); }
void count_passed_on(Call call, Why why) {
  increment(passed_on[static_cast<std::size_t>(call)][static_cast<std::size_t>(why)]);
}

void note(const std::string& sentence) noexcept {
  try {
    const std::lock_guard lock(notes().mutex);
    std::vector<std::string>& all = notes().sentences;
    if (std::find(all.begin(), all.end(), sentence) == all.end()) all.push_back(sentence);
  } catch (const std::exception&) {
    return;
  }
}

std::string counters_as_json(int rank) {
  std::string calls;
  for (std::size_t call = 0; call < kCalls; ++call) {
    calls += fmt::format("{}{}: {}", call == 0 ? "" : ", ", quoted(kCallNames[call]),
                         as_json(passed_on[call], kWhyNames));
  }
  std::string sentences;
  const std::lock_guard lock(notes().mutex);
  for (const std::string& sentence : notes().sentences)
    sentences += (sentences.empty() ? "" : ", ") + quoted(sentence);
  return fmt::format(
      "{{\"rank\": {}, \"taken\": {}, \"failed\": {}, \"passed_on\": {{{}}}, \"notes\": [{}]}}\n", rank,
      as_json(taken, kCallNames), as_json(failed, kCallNames), calls, sentences);
}

namespace {

void write_to(const std::string& file, int rank) {
  const std::string name = fmt::format("{}.{}", file, rank);
  const std::string text = counters_as_json(rank);
  std::FILE* const out = std::fopen(name.c_str(), "we");
  const bool whole = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool closed = out != nullptr && std::fclose(out) == 0;
  if (!whole || !closed)
    say(fmt::format("{} could not be written: {}; see POLYRING_MPI_COUNTERS", name, std::strerror(errno)));
}

}  // namespace

/// MPI calls it, and the end of the process: nobody is there to catch anything.
void write_counters(int rank) noexcept {
  try {
    const std::string& file = own_settings().counters;
    if (file.empty()) return;
    written = true;
    write_to(file, rank);
  } catch (const std::exception& error) {
    say("the file of POLYRING_MPI_COUNTERS could not be written:", error.what());
  }
}

}  // namespace polyring::interposer
