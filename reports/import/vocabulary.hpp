// What benchmarks, launchers and shells call things.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "reports/import/log_text.hpp"

namespace polyring {

inline constexpr int kMostRanks = 10'000'000;

/// A printed number of ranks; one that cannot be is nothing.
std::optional<int> as_ranks(std::optional<std::uint64_t> printed);

/// That of kCollectives that any of the benchmarks calls so, as "all_reduce_perf", "AllReduce" or
/// "Allreduce"; nothing for others.
std::optional<std::string> collective_named(std::string_view name);
/// nccl-tests' name of a type, which is also Polyring's, for that of MPI or of PyTorch: "float" for
/// "MPI_FLOAT".
std::string type_named(std::string_view name);
/// The bytes of an element; nothing of an unknown type.
std::optional<std::uint64_t> bytes_of(std::string_view dtype);

/// "all_reduce" of a line with "…/all_reduce_perf -b 8 …"; empty for none.
std::string nccl_test_in(std::string_view line);
/// NCCL's version as it counts: "2.29.3" of 22903, and "2.8.4" of 2804.
std::string nccl_version(std::uint64_t code);

/// The count in a command line such as "mpirun -np 8 osu_allreduce" or "srun --ntasks=8 …".
std::optional<int> ranks_in_command(std::string_view command);

/// Adds the settings in a line that may be recorded: as "NCCL_ALGO=Ring", and as NCCL says them.
void add_settings(std::string_view line, std::map<std::string, std::string>& settings);
/// Adds the version of NCCL, RCCL, HIP or ROCm in a line that says it.
void add_versions(std::string_view line, std::map<std::string, std::string>& versions);
/// Whether a shell's line sets variables for all that follows: "export NCCL_ALGO=Ring".
bool is_export(std::string_view line);
/// The algorithm of a library that was told to take one: "nccl:ring" of "nccl" and NCCL_ALGO=Ring.
std::string told_algorithm(const std::string& library, const std::map<std::string, std::string>& settings);

/// The sentence with which programs and launchers say that a run failed, where the line is one.
bool says_failure(std::string_view line);
/// Refuses the run that a failure ended before its end.
[[noreturn]] void refuse_aborted(const LogText& log, const LogLine& failure);

}  // namespace polyring
