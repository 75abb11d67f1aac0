// What scripts/emulate tells a process of the links of its host.
#include "bench/record/emulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/topology/support.hpp"
#include "topology/machine.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_machine;
using testing::usage_sentence;

class Emulation : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("POLYRING_SOURCE", "emulated", 1);
    setenv("POLYRING_EMULATED_RATE", "200Mb/s", 1);
  }
  void TearDown() override {
    for (const char* name : {"POLYRING_SOURCE", "POLYRING_EMULATED_RATE", "POLYRING_EMULATED_RAILS"})
      unsetenv(name);
  }
  /// The machine's links to NICs are the emulated ones alone.
  static std::vector<std::string> names_of_links() {
    Machine machine = small_machine();
    give_emulated_link(machine);
    machine.validate();
    std::vector<std::string> names;
    for (const Nic& nic : machine.nics) {
      names.push_back(nic.name);
      EXPECT_DOUBLE_EQ(nic.bandwidth().value, 25e6);
    }
    EXPECT_EQ(std::ranges::count_if(machine.links,
                                    [](const Link& link) { return link.to.kind == DeviceKind::nic; }),
              static_cast<std::ptrdiff_t>(names.size()));
    return names;
  }
};

TEST_F(Emulation, GivesAHostAsManyLinksAsItHasRails) {
  EXPECT_THAT(names_of_links(), ElementsAre("eth0"));
  setenv("POLYRING_EMULATED_RAILS", "2", 1);
  EXPECT_THAT(names_of_links(), ElementsAre("eth0", "eth1"));
  for (const char* wrong : {"0", "two", "2x"}) {
    setenv("POLYRING_EMULATED_RAILS", wrong, 1);
    EXPECT_THAT(usage_sentence(names_of_links),
                HasSubstr("is not a number of rails; scripts/emulate sets it"));
  }
}

}  // namespace
}  // namespace polyring
