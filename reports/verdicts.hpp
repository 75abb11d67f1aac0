// What the checks of `polyring accept` come to: one verdict, and what people and other programs read of it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "reports/result.hpp"

namespace polyring {

/// The name of a result's inputs that are checks which were to run.
inline constexpr std::string_view kPlannedCheck = "check";

/// The check of whether all ranks live, which every run makes: it has a row where one has died.
inline constexpr std::string_view kRanksAlive = "ranks.alive";

/// That row.
CheckRow row_of_dead_rank(int rank, const std::string& host);

/// Whether a row is of a pair of hosts, and another one says what makes it so: one of the two, the uplinks of
/// a leaf, or what all hosts share.
bool is_explained(const CheckRow& row, std::span<const CheckRow> rows);

/// The rows of each check together, in the order in which checks came first.
std::vector<std::vector<CheckRow>> by_check(std::span<const CheckRow> rows);

/// Fails closed: of a result that is partial, the first check that was to run and has no rows was running
/// when the job ended, for which it has a row with an error, and those behind it have one that says they are
/// missing. Where all have rows, and passed, the job has one with an error. `why`: how it ended, if that is
/// known.
void complete(ResultFile& result, const std::string& why = "");

/// The worst of them; errors stand behind failures, as a failure says more. Missing where there are no rows,
/// or only such as are no judgement.
Verdict overall(std::span<const CheckRow> rows);

/// ok; below_threshold for a failure; inconclusive for what is inconclusive or missing. `of_errors` for an
/// error: the code of the check that broke.
ExitCode exit_code(std::span<const CheckRow> rows, ExitCode of_errors = ExitCode::not_available);

/// "FAIL"; in small letters where nothing is wrong.
std::string verdict_text(Verdict verdict);

/// Failures first, what passed last; otherwise in their order.
std::vector<CheckRow> worst_first(std::span<const CheckRow> rows);

/// "FAIL: 2 of 31 checks failed: links of node03; pairs.allreduce of node01 and node02.", one sentence.
std::string summary(std::span<const CheckRow> rows);

/// "FAIL  pairs.allreduce, node01 and node02: busbw is 1.2 GB/s, … Exchange the cable …", a line for each row
/// that did not pass, the worst first, and at last what is only shown; of a check a few, and how many more
/// there are. Without pairs of hosts where one of these was found to be the cause.
std::vector<std::string> findings(std::span<const CheckRow> rows);

/// JUnit XML as Jenkins' junit-plugin reads it: a test suite for each check, a test case for each row. What
/// is inconclusive, missing or broken is an error there, so that nothing passes by mistake.
std::string junit_xml(std::span<const CheckRow> rows);

/// For the textfile collector of Prometheus' node exporter.
std::string prometheus_text(std::span<const CheckRow> rows, const std::string& created);

/// Hosts that failed, each as a command for Slurm with its reason; never run by us. Empty where none did.
std::string slurm_drain_list(std::span<const CheckRow> rows);

/// One line, as Nagios' plug-ins print it, and their exit codes: 0 OK, 2 CRITICAL, 3 UNKNOWN.
struct NagiosStatus {
  std::string line;
  int code = 0;
};
NagiosStatus nagios_status(std::span<const CheckRow> rows);

}  // namespace polyring
