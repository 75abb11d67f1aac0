// usage: write_presets FOLDER: a probe of one host of each preset, as JSON in a file of its name.
#include <filesystem>
#include <fstream>

#include "topology/inventory/formats/probe_json.hpp"
#include "topology/presets.hpp"

int main(int count, char** words) {
  if (count != 2) return 2;
  using namespace polyring;
  for (const std::string_view name : preset_names()) {
    std::ofstream file(std::filesystem::path(words[1]) / (std::string(name) + ".json"));
    file << probe_json(preset(name, 1));
    if (!file.flush()) return 1;
  }
}
