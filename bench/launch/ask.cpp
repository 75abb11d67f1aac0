#include "bench/launch/ask.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/launch/launcher.hpp"
#include "bench/launch/shell.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {
namespace {

/// What a login shell prints stands before the first mark.
constexpr std::string_view kBegin = "@polyring:begin@\n";
constexpr std::string_view kMark = "\n@polyring:";  // then the exit code of what stands before, and @

std::vector<std::string> commands(const Questions& questions) {
  const std::string polyring = shell_quoted(questions.polyring);
  const std::string launcher =
      questions.launcher.empty() ? ":" : shell_quoted(questions.launcher) + " --version";
  // One kernel can carry hosts of several names, and machines can have one name: together they tell.
  const std::string system = "cat /proc/sys/kernel/random/boot_id && uname -n";
  // The loader's cache has the library's name, behind which stands a file with the whole version. The
  // library itself is not loaded: that may start drivers.
  const std::string nccl =
      "(PATH=$PATH:/sbin:/usr/sbin; readlink -f \"$(ldconfig -p | sed -n 's/.*libnccl[.]so[.]2 .*=> //p' | "
      "head "
      "-n 1)\")";
  return {polyring + " --version", launcher, system, nccl, polyring + " probe --format json"};
}

/// What one of the commands printed.
struct Section {
  int exit_code = 0;
  std::string text;
};

std::vector<Section> sections_of(std::string_view output) {
  std::vector<Section> sections;
  const std::size_t begin = output.find(kBegin);
  if (begin == std::string_view::npos) return sections;
  output.remove_prefix(begin + kBegin.size());
  while (true) {
    const std::size_t mark = output.find(kMark);
    if (mark == std::string_view::npos) return sections;
    Section section{0, std::string(output.substr(0, mark))};
    output.remove_prefix(mark + kMark.size());
    std::from_chars(output.data(), output.data() + output.size(), section.exit_code);
    output.remove_prefix(std::min(output.find('\n'), output.size()));
    sections.push_back(std::move(section));
  }
}

std::string why(const Section& section) {
  const std::string words = last_line(section.text);
  return words.empty() ? fmt::format("exit code {}", section.exit_code) : words;
}

/// The version stands in a line by itself; below it is what the build has, and above it may be warnings.
void read_polyring(const Section& section, HostAnswer& answer) {
  for (const std::string& line : split(section.text, '\n')) {
    if (section.exit_code == 0 && line.starts_with("polyring ")) answer.polyring = line;
  }
  if (answer.polyring.empty()) answer.no_polyring = why(section);
}

void read_launcher(const Section& section, const Questions& questions, HostAnswer& answer) {
  if (questions.launcher.empty()) return;
  if (section.exit_code == 0) answer.mpi = identify_launcher(questions.launcher, section.text).name;
  if (answer.mpi.empty()) answer.no_mpi = why(section);
}

/// Of `/usr/lib64/libnccl.so.2.21.5`.
void read_nccl(const Section& section, HostAnswer& answer) {
  constexpr std::string_view kName = "libnccl.so.";
  const std::string line = last_line(section.text);
  const std::size_t at = line.rfind(kName);
  if (section.exit_code != 0 || at == std::string::npos) return;
  const std::string version = line.substr(at + kName.size());
  const bool is_whole =
      version.find('.') != std::string::npos && version.find_first_not_of("0123456789.") == std::string::npos;
  if (is_whole) answer.nccl = version;
}

void read_machine(const Section& section, const std::string& errors, HostAnswer& answer) {
  if (section.exit_code != 0) {
    const std::string words = last_line(errors);
    answer.no_machine = words.empty() ? why(section) : words;
    return;
  }
  try {
    const Inventory inventory = parse_inventory_json(section.text, answer.host);
    answer.machine = inventory.cluster.host(0);
    if (!inventory.members[0].empty()) answer.allowed = inventory.members[0][0].allowed;
  } catch (const Error& error) {
    answer.no_machine = error.what();
  }
}

}  // namespace

bool is_this_host(std::string_view name) {
  if (name == "localhost" || name == "127.0.0.1") return true;
  std::array<char, 256> own{};
  if (gethostname(own.data(), own.size() - 1) != 0) return false;
  const std::string_view full(own.data());
  return name == full || name == full.substr(0, full.find('.'));
}

std::string question_script(const Questions& questions) {
  const auto asked = commands(questions);
  std::string script = "printf '@polyring:begin@\\n'";
  for (const std::string& command : asked) {
    // Only the JSON must not be mixed with warnings.
    const bool merged = &command != &asked.back();
    script += fmt::format("; {}{}; printf '\\n@polyring:%d@\\n' $?", command, merged ? " 2>&1" : "");
  }
  return script;
}

HostAnswer read_answer(const std::string& host, const Questions& questions, const ProcessResult& result) {
  HostAnswer answer;
  answer.host = host;
  answer.timed_out = result.timed_out;
  const auto asked = commands(questions);
  const std::vector<Section> sections = sections_of(result.output);
  const bool began = result.output.find(kBegin) != std::string::npos;
  if (result.too_long) {
    answer.unreachable = fmt::format("it printed more than {}, and went on", to_text(Bytes{kMostPrinted}));
    return answer;
  }
  if (answer.timed_out && sections.size() < asked.size()) {
    if (began) answer.busy_with = asked[sections.size()];
    return answer;
  }
  answer.timed_out = false;
  if (sections.size() < asked.size()) {
    answer.unreachable = last_line(result.errors);
    if (answer.unreachable.empty()) answer.unreachable = last_line(result.output);
    if (answer.unreachable.empty()) answer.unreachable = fmt::format("exit code {}", result.exit_code);
    return answer;
  }
  read_polyring(sections[0], answer);
  read_launcher(sections[1], questions, answer);
  if (sections[2].exit_code == 0) answer.system = sections[2].text;
  read_nccl(sections[3], answer);
  if (!answer.polyring.empty()) read_machine(sections[4], result.errors, answer);
  return answer;
}

std::vector<HostAnswer> ask_hosts(std::span<const std::string> hosts, const Questions& questions) {
  const std::string script = question_script(questions);
  std::vector<std::vector<std::string>> programs;
  for (const std::string& host : hosts) {
    programs.push_back(is_this_host(host) ? std::vector<std::string>{"sh", "-c", script}
                                          : questions.shell.command(host, script, questions.limit));
  }
  const std::vector<ProcessResult> results = run_processes(programs, questions.limit);
  std::vector<HostAnswer> answers;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    answers.push_back(read_answer(hosts[i], questions, results[i]));
  return answers;
}

Inventory inventory_of(std::span<const HostAnswer> answers) {
  std::vector<Inventory> hosts;
  for (const HostAnswer& answer : answers) {
    if (!answer.machine) continue;
    Machine machine = *answer.machine;
    machine.name = answer.host;
    hosts.push_back(inventory_of(std::move(machine)));
    hosts.back().members[0][0].allowed = answer.allowed;
  }
  Inventory all = merged(std::move(hosts));
  all.notes.clear();  // on what is too little to keep a job from starting
  return all;
}

}  // namespace polyring
