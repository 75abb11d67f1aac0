// The words of nvidia-smi's matrices, and what they can be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/inventory/formats/nvidia_smi.hpp"

namespace polyring::nvidia_smi {

using Words = std::vector<std::string>;

/// Without the escapes with which nvidia-smi underlines the head.
std::vector<std::string> lines_of(std::string_view text);

Words words_of(std::string_view line);

/// The whole of the text as a number of 0 and above; nothing for other text.
std::optional<int> number_in(std::string_view text);

bool is_gpu(std::string_view name);

/// Nothing for what the legend does not have.
std::optional<Cell> cell_of(std::string_view word);

/// The head names the columns: a GPU, then a word that is no cell. In front of it, no row can be.
bool is_head(const Words& words);

/// "0-13,28-41"
bool is_cpu_list(std::string_view text);

/// Whether a line has nothing but what stands in rows behind the name: a terminal has wrapped it.
bool is_rest_of_row(const Words& words);

/// "NODENODE": cells without a blank between them.
bool is_glued(std::string_view word);

/// A device's name and cells, under whichever head.
bool is_named_row(const Words& words);

}  // namespace polyring::nvidia_smi
