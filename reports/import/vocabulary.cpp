#include "reports/import/vocabulary.hpp"

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "reports/environment.hpp"

namespace polyring {
namespace {

constexpr std::string_view kOfNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/// Small letters and digits of a name, without "_perf" and what is behind it.
std::string bare(std::string_view name) {
  std::string text;
  for (const char c : lower(name))
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) text += c;
  return text.substr(0, text.find("perf"));
}

struct TypeName {
  std::string_view name;
  std::string_view others;  // with blanks around
  std::uint64_t bytes;
};

constexpr std::array kTypes{
    TypeName{"float", " float32 mpi_float float ", 4},
    TypeName{"double", " float64 mpi_double double ", 8},
    TypeName{"half", " float16 half ", 2},
    TypeName{"bfloat16", " bf16 bfloat16 ", 2},
    TypeName{"int8", " mpi_char mpi_byte char int8 ", 1},
    TypeName{"uint8", " uint8 ", 1},
    TypeName{"int32", " mpi_int int int32 ", 4},
    TypeName{"uint32", " uint32 ", 4},
    TypeName{"int64", " mpi_long long int64 ", 8},
    TypeName{"uint64", " uint64 ", 8},
    TypeName{"f8e4m3", " fp8_e4m3 f8e4m3 ", 1},
    TypeName{"f8e5m2", " fp8_e5m2 f8e5m2 ", 1},
};

const TypeName* find_type(std::string_view name) {
  const std::string wanted = " " + lower(name) + " ";
  const auto found = std::ranges::find_if(
      kTypes, [&](const TypeName& type) { return type.others.find(wanted) != std::string_view::npos; });
  return found == kTypes.end() ? nullptr : &*found;
}

/// Where a value ends: at a blank or a quotation mark, and in a list of settings at the next one's name.
std::string_view value_at(std::string_view text) {
  if (text.starts_with('"') || text.starts_with('\'')) text.remove_prefix(1);
  std::string_view value = text.substr(0, text.find_first_of(" \t'\";"));
  for (std::size_t comma = value.find(','); comma != std::string_view::npos;
       comma = value.find(',', comma + 1)) {
    const std::size_t end = value.find_first_not_of(kOfNames, comma + 1);
    if (end != std::string_view::npos && end > comma + 1 && value[end] == '=') return value.substr(0, comma);
  }
  return value;
}

void add_setting(std::string_view name, std::string_view value,
                 std::map<std::string, std::string>& settings) {
  if (is_recorded(name) && !value.empty()) settings[std::string(name)] = printable_line(value, 200);
}

}  // namespace

std::optional<int> as_ranks(std::optional<std::uint64_t> printed) {
  return printed && *printed >= 1 && *printed <= kMostRanks ? std::optional(static_cast<int>(*printed))
                                                            : std::nullopt;
}

std::optional<std::string> collective_named(std::string_view name) {
  const std::string wanted = bare(name);
  if (wanted == "allreduce") return "allreduce";
  if (wanted == "allgather") return "allgather";
  if (wanted == "alltoall" || wanted == "alltoallpersonalizedexchange") return "alltoall";
  if (wanted == "reducescatter" || wanted == "reducescatterblock") return "reduce-scatter";
  return std::nullopt;
}

std::string type_named(std::string_view name) {
  while (name.ends_with('.')) name.remove_suffix(1);
  const TypeName* const type = find_type(name);
  return type != nullptr ? std::string(type->name) : printable_line(name, 20);
}

std::optional<std::uint64_t> bytes_of(std::string_view dtype) {
  const TypeName* const type = find_type(dtype);
  return type != nullptr ? std::optional(type->bytes) : std::nullopt;
}

std::string nccl_test_in(std::string_view line) {
  constexpr std::string_view kTests =
      " all_reduce all_reduce_bias all_gather reduce_scatter alltoall alltoallv broadcast reduce gather "
      "scatter sendrecv hypercube ";
  for (std::size_t end = line.find("_perf"); end != std::string_view::npos;
       end = line.find("_perf", end + 1)) {
    const std::size_t before = line.substr(0, end).find_last_not_of("abcdefghijklmnopqrstuvwxyz_");
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const std::string test(line.substr(begin, end - begin));
    if (!test.empty() && kTests.find(" " + test + " ") != std::string_view::npos) return test;
  }
  return "";
}

std::string nccl_version(std::uint64_t code) {
  const std::uint64_t major = code < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

std::optional<int> ranks_in_command(std::string_view command) {
  const auto parts = words(command);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const std::string_view option : {"-np", "-n", "--ntasks", "--np"}) {
      std::optional<std::uint64_t> count;
      if (parts[i] == option && i + 1 < parts.size()) count = whole_in(parts[i + 1]);
      const std::string joined = std::string(option) + "=";
      if (parts[i].starts_with(joined)) count = whole_in(parts[i].substr(joined.size()));
      if (const auto ranks = as_ranks(count)) return ranks;
    }
    if (parts[i].find("osu_") != std::string_view::npos) break;  // what follows are the benchmark's options
  }
  return std::nullopt;
}

void add_settings(std::string_view line, std::map<std::string, std::string>& settings) {
  constexpr std::string_view kTold = " set by environment to ";
  if (const std::size_t told = line.find(kTold); told != std::string_view::npos) {
    const std::size_t before = line.substr(0, told).find_last_not_of(kOfNames);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string_view value = line.substr(told + kTold.size());
    while (value.ends_with('.') || value.ends_with(' ')) value.remove_suffix(1);
    add_setting(line.substr(begin, told - begin), value, settings);
    return;
  }
  for (std::size_t at = line.find('='); at != std::string_view::npos; at = line.find('=', at + 1)) {
    const std::size_t before = line.substr(0, at).find_last_not_of(kOfNames);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    add_setting(line.substr(begin, at - begin), value_at(line.substr(at + 1)), settings);
  }
  // MPICH's and Intel MPI's: -genv NCCL_ALGO Ring
  const auto parts = words(line);
  for (std::size_t i = 0; i + 2 < parts.size(); ++i)
    if (parts[i] == "-env" || parts[i] == "-genv")
      add_setting(parts[i + 1], value_at(parts[i + 2]), settings);
}

void add_versions(std::string_view line, std::map<std::string, std::string>& versions) {
  for (const char* library : {"NCCL", "RCCL", "HIP", "ROCm"})
    if (const std::string version = word_after(line, fmt::format("{} version ", library)); !version.empty())
      versions[library] = printable_line(version, 60);
}

bool is_export(std::string_view line) {
  while (line.starts_with('+') || line.starts_with(' ')) line.remove_prefix(1);  // as a shell echoes it
  return line.starts_with("export ") || line.starts_with("declare -x ") || words(line).size() == 1;
}

std::string told_algorithm(const std::string& library, const std::map<std::string, std::string>& settings) {
  const auto told = settings.find("NCCL_ALGO");
  const bool takes_it = library == "nccl" || library == "rccl";
  return told == settings.end() || !takes_it ? library : library + ":" + lower(told->second);
}

bool says_failure(std::string_view line) {
  for (const std::string_view sign : {"Test NCCL failure",
                                      "Test CUDA failure",
                                      "Test failure",
                                      "Test timeout",
                                      "MPI_ABORT was invoked",
                                      "MPI_Abort",
                                      "Segmentation fault",
                                      "core dumped",
                                      "noticed that process rank",
                                      "job terminated normally, but",
                                      "job  terminated normally, but",
                                      "BAD TERMINATION",
                                      "terminate called after",
                                      "slurmstepd: error:",
                                      "srun: error:",
                                      "Traceback (most recent",
                                      "Signal: ",
                                      "ncclUnhandledCudaError",
                                      "ncclSystemError",
                                      "ncclRemoteError"})
    if (line.find(sign) != std::string_view::npos) return true;
  return false;
}

void refuse_aborted(const LogText& log, const LogLine& failure) {
  refuse(log, failure.number, "the run was aborted: '{}'; run it again, or cut the whole runs out of the log",
         printable_line(failure.text, 120));
}

}  // namespace polyring
