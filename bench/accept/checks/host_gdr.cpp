// host.gdr: whether NICs of InfiniBand and RoCE can reach the memory of GPUs (GPUDirect RDMA).
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "bench/accept/checks/checks.hpp"
#include "bench/accept/gpu_direct.hpp"
#include "bench/accept/groups.hpp"

namespace polyring {
namespace {

constexpr std::string_view kName = "host.gdr";

std::string answer(const std::string&) {
  const GpuDirect found = read_gpu_direct("/");
  return nlohmann::json{{"gpus", found.gpus},
                        {"nics", found.nics},
                        {"module", found.module},
                        {"driver", found.driver},
                        {"kernel", found.kernel}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

GpuDirect read(const std::string& text) {
  if (text.empty()) return {};
  const nlohmann::json said = nlohmann::json::parse(text);
  GpuDirect found{said.at("gpus"), said.at("nics"), said.at("module"), said.at("driver"), said.at("kernel")};
  for (std::string& nic : found.nics) nic = printable_line(nic);
  found.kernel = printable_line(found.kernel);
  return found;
}

void judge_host(const GpuDirect& found, CheckRow& row) {
  const std::string has =
      fmt::format("{} and {} ({})", counted(found.gpus, "GPU"),
                  counted(static_cast<std::int64_t>(found.nics.size()), "NIC"), fmt::join(found.nics, ", "));
  if (found.driver.empty()) {
    row.verdict = Verdict::missing;
    row.why = fmt::format("It has {}, and NVIDIA's kernel module is not loaded.", has);
    row.remedy = "Load it with: modprobe nvidia (as root), and run this check again.";
  } else if (!found.module.empty() || found.has_dma_buf()) {
    row.verdict = Verdict::pass;
    row.why = fmt::format("{}: the NICs can reach the GPUs' memory by {}.", has,
                          found.module.empty() ? "DMA-BUF" : found.module);
  } else {
    row.verdict = Verdict::fail;
    row.why = fmt::format(
        "It has {}, and nothing lets the NICs reach the GPUs' memory: nvidia_peermem is not loaded, and with "
        "the "
        "{} kernel module of NVIDIA's on Linux {} there is no DMA-BUF.",
        has, found.driver, found.kernel);
    row.remedy =
        "Load it with: modprobe nvidia_peermem (as root), or install NVIDIA's open kernel module on Linux "
        "5.12 "
        "or later; otherwise messages of GPUs pass through host memory.";
  }
}

std::vector<CheckRow> run(const Checking& checking) {
  const std::vector<HostReply> replies = checking.measurer.ask(std::string(kName), "");
  std::vector<CheckRow> rows;
  for (std::size_t host = 0; host < replies.size(); ++host) {
    if (!replies[host].error.empty()) {
      CheckRow& row = rows.emplace_back(row_of(checking, kName, {static_cast<int>(host)}));
      row.verdict = Verdict::error;
      row.why = fmt::format("Its devices could not be read: {}.", replies[host].error);
      row.remedy = "Check /sys on this host.";
      continue;
    }
    const GpuDirect found = read(replies[host].text);
    if (found.gpus == 0 || found.nics.empty()) continue;
    judge_host(found, rows.emplace_back(row_of(checking, kName, {static_cast<int>(host)})));
  }
  if (!rows.empty()) return rows;
  CheckRow& row = rows.emplace_back(row_of(checking, kName, {}));
  row.subject.clear();
  row.verdict = Verdict::skipped;
  row.why = "No host has both GPUs of NVIDIA's and NICs of InfiniBand or RoCE.";
  return rows;
}

int turns(const Site&, const CheckOptions&) { return 0; }

}  // namespace

const Check kHostGdr{kName, "whether NICs can reach the memory of GPUs (GPUDirect RDMA)", turns, {}, run,
                     answer};

}  // namespace polyring
