// The plug-in has machine code of each kernel for each architecture that it was compiled for, and PTX for
// others.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/cuda/kernel_table.hpp"

namespace polyring {
namespace {

constexpr Elf64_Half kCuda = 190;  // EM_CUDA

std::string plugin() {
  std::ifstream file(POLYRING_CUDA_PLUGIN_FILE, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T at(std::string_view bytes, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Of the ELF file that begins here: the kernels whose code has a section.
std::set<std::string> kernels_of(std::string_view image) {
  const auto header = at<Elf64_Ehdr>(image, 0);
  const auto section = [&](std::size_t number) {
    return at<Elf64_Shdr>(image, header.e_shoff + number * sizeof(Elf64_Shdr));
  };
  const std::size_t names = section(header.e_shstrndx).sh_offset;
  std::set<std::string> kernels;
  for (std::size_t number = 0; number < header.e_shnum; ++number) {
    constexpr std::string_view kText = ".text.";
    const Elf64_Shdr each = section(number);
    const std::string_view name = image.data() + names + each.sh_name;
    if (name.starts_with(kText) && each.sh_size > 0) kernels.emplace(name.substr(kText.size()));
  }
  return kernels;
}

std::set<std::string> expected() {
  std::set<std::string> names;
  for (const HostKernel& kernel : host_kernels()) names.emplace(kernel.name);
  return names;
}

TEST(PluginCode, HasEachKernelForEachArchitecture) {
  const std::string bytes = plugin();
  std::size_t images = 0;
  for (std::size_t found = bytes.find(ELFMAG); found != std::string::npos;
       found = bytes.find(ELFMAG, found + 1)) {
    const std::string_view image = std::string_view(bytes).substr(found);
    if (at<Elf64_Ehdr>(image, 0).e_machine != kCuda) continue;
    ++images;
    EXPECT_EQ(kernels_of(image), expected());
  }
  EXPECT_EQ(images, std::size_t{POLYRING_CUDA_ARCHITECTURE_COUNT});
}

TEST(PluginCode, HasPtxOfEachKernel) {
  const std::string bytes = plugin();
  for (const std::string& name : expected())
    EXPECT_NE(bytes.find(".visible .entry " + name + "("), std::string::npos) << name;
}

}  // namespace
}  // namespace polyring
