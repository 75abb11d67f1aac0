#include "topology/formats/read_cluster.hpp"

#include "topology/error.hpp"
#include "topology/formats/probe_json.hpp"
#include "topology/probe.hpp"
#include "topology/text_file.hpp"

namespace polyring {

Cluster read_cluster(const std::filesystem::path& path) {
  const std::string text = read_text_file(path);
  const auto first = text.find_first_not_of(" \t\r\n");
  const char start = first == std::string::npos ? ' ' : text[first];
  if (start == '<') return cluster_of(parse_hwloc_xml(text, path.string()), 1);
  if (start == '{') return parse_probe_json(text, path.string());
  usage_error("'{}' is neither hwloc's XML nor the JSON of polyring probe; make one with: lstopo FILE.xml",
              path.string());
}

}  // namespace polyring
