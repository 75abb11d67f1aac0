// The catalogue of machines that Polyring knows by name, each with its usual fabric and a citation for each
// number.
//
// To add a machine: a function that builds it in presets/, its declaration in presets/catalogue.hpp, and a
// row in presets.cpp.
#pragma once

#include <string_view>
#include <vector>

#include "topology/cluster.hpp"

namespace polyring {

/// The names that preset() knows, in the order of the catalogue.
std::vector<std::string_view> preset_names();

/// `hosts` equal hosts of the named machine with the fabric that such machines were built with.
/// Throws a usage Error that lists the known names for an unknown name, and for fewer than 1 host.
Cluster preset(std::string_view name, int hosts);

}  // namespace polyring
