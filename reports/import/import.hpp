// Reads what other benchmarks printed: nccl-tests, rccl-tests, OSU, Intel MPI Benchmarks, Gloo, PARAM,
// mpiBench.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/result.hpp"

namespace polyring {

struct ImportOptions {
  std::optional<int> ranks;  // of logs that do not say how many
};

/// A result for each run of a collective in a log: of `source` imported. Rows have samples where the log has
/// several times of them. What the log lacks and what is not comparable is in the results' notes; one that
/// ends too early is `partial`. A result or a journal of Polyring's own is read as it is.
///
/// Throws a usage Error that names the line where it can, and says what to do: for what is none of these
/// logs, an aborted run, tables printed into each other, and a log without a number of ranks where `options`
/// have none.
std::vector<ResultFile> import_log(const std::filesystem::path& path, const ImportOptions& options = {});
/// The same of text; `name` is the file's in errors.
std::vector<ResultFile> parse_log(const std::string& text, const std::string& name,
                                  const ImportOptions& options = {});

}  // namespace polyring
