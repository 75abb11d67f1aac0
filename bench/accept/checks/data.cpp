// data: how fast hosts read the files of a data set, all at the same time.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/host_name.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/data_reads.hpp"
#include "bench/accept/groups.hpp"
#include "models/input_pipeline.hpp"
#include "models/throughput.hpp"

namespace polyring {
namespace {

using nlohmann::json;

constexpr std::string_view kName = "data";
const Quantity kSequential{"sequential", "GB/s"};
const Quantity kRandom{"random", "GB/s"};
constexpr Bytes kSequentialBlock{1 << 20};
constexpr Bytes kUsualSample{128 << 10};

std::string answer(const std::string& question) {
  const json asked = json::parse(question);
  const std::vector<DataFile> files = find_data_files(asked.at("folder").get<std::string>());
  const Seconds time{asked.at("seconds")};
  const std::uint64_t seed = std::hash<std::string>{}(own_host_name());
  const ReadRates sequential = read_data(files, ReadOrder::sequential, kSequentialBlock, time, seed);
  const ReadRates random = read_data(files, ReadOrder::random, {asked.at("sample")}, time, seed);
  return json{{"sequential", sequential.GBps}, {"random", random.GBps}, {"direct", sequential.direct}}.dump();
}

/// What the GPUs of this host use up, where it is known how fast they train the model.
Threshold needed(const Machine& machine, const std::string& model) {
  const auto sample = sample_size_of_model(model);
  if (!sample || machine.gpus.empty()) return {};
  const std::string& gpu = machine.gpus.front().model;
  double most = 0;
  for (const Throughput& known : known_throughputs()) {
    const auto found = find_throughput(gpu, model, known.batch, known.precision);
    if (found) most = std::max(most, found->samples_per_second);
  }
  if (most == 0) return {};
  const double rate =
      static_cast<double>(machine.gpus.size()) * most * static_cast<double>(sample->bytes.value) / 1e9;
  return {rate,
          {},
          fmt::format("{} x {} train {:.0f} samples/s of {} each, of {} bytes", machine.gpus.size(), gpu,
                      most, model, sample->bytes.value)};
}

CheckRow row_of_rates(const Checking& checking, int host, const json& said, const Quantity& quantity) {
  CheckRow row = row_of(checking, kName, {host});
  const Cluster& cluster = checking.site.inventory.cluster;
  const bool known = host < cluster.host_count() && checking.site.inventory.unprobed.empty();
  const Threshold otherwise = known ? needed(cluster.host(host), checking.options.model) : Threshold{};
  row.subject = fmt::format("{} reads of {}", quantity.name, row.subject);
  judge(row, quantity, said.at(quantity.name).get<std::vector<double>>(),
        checking.threshold({std::string(kName), quantity, 0, row.subject}, otherwise));
  row.attempts = 1;
  if (!said.value("direct", true))
    row.why += " Its file system refuses direct reads, so that some may have come from its cache.";
  if (row.verdict == Verdict::fail)
    row.remedy = "Check the file system and the network to it, or copy the data set to the hosts' own disks.";
  return row;
}

std::vector<CheckRow> run(const Checking& checking) {
  const CheckOptions& options = checking.options;
  if (options.data.empty()) {
    CheckRow row = row_of(checking, kName, {});
    row.verdict = Verdict::skipped;
    row.why = "No --data was given.";
    return {row};
  }
  checking.progress(options.data);
  const auto sample = sample_size_of_model(options.model);
  const json question{{"folder", options.data},
                      {"seconds", options.turn.value},
                      {"sample", (sample ? sample->bytes : kUsualSample).value}};
  const std::vector<HostReply> replies = checking.measurer.ask(std::string(kName), question.dump());
  std::vector<CheckRow> rows;
  for (std::size_t host = 0; host < replies.size(); ++host) {
    const int number = static_cast<int>(host);
    if (!replies[host].error.empty()) {
      CheckRow& row = rows.emplace_back(row_of(checking, kName, {number}));
      row.verdict = Verdict::error;
      row.why = fmt::format("The data cannot be read there: {}.", replies[host].error);
      row.remedy = "Mount the data set on this host, or correct --data.";
      continue;
    }
    const json said = json::parse(replies[host].text);
    for (const Quantity& quantity : {kSequential, kRandom})
      rows.push_back(row_of_rates(checking, number, said, quantity));
  }
  return rows;
}

int turns(const Site&, const CheckOptions& options) { return options.data.empty() ? 0 : 2; }

}  // namespace

const Check kData{kName, "how fast all hosts read a data set at once", turns, {kSequential, kRandom}, run,
                  answer};

}  // namespace polyring
