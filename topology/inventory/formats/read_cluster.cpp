#include "topology/inventory/formats/read_cluster.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "topology/inventory/formats/ibnetdiscover.hpp"
#include "topology/inventory/formats/machine_toml.hpp"
#include "topology/inventory/formats/nccl_xml.hpp"
#include "topology/inventory/formats/nvidia_smi.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// Cuts off what ends with `end`; everything where it does not occur.
void skip_past(std::string_view& text, std::string_view end) {
  const auto at = text.find(end);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
}

/// The name of XML's outermost element, past declarations and comments; empty for text that is no XML.
std::string_view outermost_element(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (!text.starts_with('<')) return {};
    if (text.starts_with("<!--")) {
      skip_past(text, "-->");
    } else if (text.starts_with("<?")) {
      skip_past(text, "?>");
    } else if (text.starts_with("<!")) {
      // A document type may have declarations of its own, in brackets.
      const bool inner = text.substr(0, text.find('>')).find('[') != std::string_view::npos;
      skip_past(text, inner ? "]" : ">");
      if (inner) skip_past(text, ">");
    } else {
      text.remove_prefix(1);
      return text.substr(0, text.find_first_of(" \t\r\n/>"));
    }
  }
}

/// What rocm-smi --showtopo or amd-smi topology prints.
bool is_amd_table(std::string_view text) {
  constexpr std::array kHeads{"Weight between two GPUs", "Hops between two GPUs",
                              "Link Type between two GPUs", "LINK TYPE TABLE", "ACCESS TABLE"};
  return std::ranges::any_of(kHeads,
                             [&](const char* head) { return text.find(head) != std::string_view::npos; });
}

bool is_mangled_matrix(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return has("GPU0") && (has("CPU Affinity") || has("topo -m"));
}

}  // namespace

Cluster parse_cluster(std::string_view text, std::string_view origin) {
  std::string_view content = without_byte_order_mark(text);
  content.remove_prefix(std::min(content.find_first_not_of(kBlanks), content.size()));
  if (content.starts_with('{')) return parse_probe_json(content, origin);
  if (content.starts_with('<')) {
    const std::string_view element = outermost_element(content);
    if (element == "system") return parse_nccl_xml(content, origin);
    if (element == "graphs") {
      usage_error(
          "'{}' is a dump of NCCL's graphs (NCCL_GRAPH_DUMP_FILE), which has its rings and no links; give "
          "what NCCL_TOPO_DUMP_FILE=FILE writes, the topology",
          origin);
    }
    return cluster_of(parse_hwloc_xml(text, origin), 1);
  }
  if (is_amd_table(content)) {
    usage_error(
        "'{}' is a table of AMD's tools (rocm-smi --showtopo or amd-smi topology), which has neither "
        "speeds nor NICs; copy that host's /sys with scripts/record_sysfs and give it with --sysfs, or run "
        "polyring probe there",
        origin);
  }
  if (is_topo_matrix(content)) return cluster_of(parse_topo_matrix(content, origin), 1);
  if (is_ibnetdiscover(content))
    usage_error("'{}' is a fabric, not a host; give it with: --fabric {}", origin, origin);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    usage_error(
        "'{}' is text in UTF-16, as some shells of Windows write it; convert it with: iconv -f UTF-16 -t "
        "UTF-8",
        origin);
  }
  if (is_mangled_matrix(text)) {
    usage_error(
        "'{}' has words of what nvidia-smi topo -m prints, but not its lines: blanks or line ends are lost, "
        "or other characters stand between the columns; write it again with: nvidia-smi topo -m > FILE",
        origin);
  }
  usage_error(
      "'{}' is neither XML of hwloc, NCCL or RCCL, nor what nvidia-smi topo -m prints, nor the JSON of "
      "polyring probe; "
      "make one with: lstopo FILE.xml",
      origin);
}

Cluster read_cluster(const std::filesystem::path& path) {
  if (lower_case(path.extension().string()) == ".toml") return read_machine_toml(path);
  return parse_cluster(read_text_file(path), path.string());
}

}  // namespace polyring
