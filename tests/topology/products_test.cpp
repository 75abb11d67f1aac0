// The catalogue of GPUs and NICs: names, links, and what agrees with the rest of the project.
#include "topology/presets/products.hpp"

#include <set>

#include "tests/topology/support.hpp"
#include "topology/device_identity.hpp"
#include "topology/gpu_links.hpp"

namespace polyring::presets {
namespace {

using polyring::testing::usage_sentence;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Products, OfEachGpuAllIsKnown) {
  std::set<std::string> models;
  for (const std::string& name : gpu_products()) {
    SCOPED_TRACE(name);
    const GpuKind kind = gpu_product(name);
    EXPECT_EQ(kind.product, name);
    EXPECT_TRUE(models.insert(kind.model).second);
    EXPECT_GE(kind.memory, gibibytes(12));
    EXPECT_GE(kind.memory_bandwidth, gigabytes_per_second(300));
    EXPECT_THAT(kind.citation.source, AnyOf(HasSubstr("NVIDIA"), HasSubstr("AMD")));
    EXPECT_EQ(kind.links.count > 0, kind.links.each.known());
    EXPECT_EQ(kind.links.count > 0, !kind.links.source.empty());
    EXPECT_EQ(kind.links.count > 0 && kind.links.kind == LinkKind::nvlink, kind.links.version > 0);
    EXPECT_EQ(gpu_product(kind.model).product, name) << "the driver's name is another product's";
  }
}

TEST(Products, LinksAreThoseOfTheDataSheets) {
  struct Facts {
    const char* name;
    LinkKind kind;
    int version;
    int count;
    double gigabytes;  // out of one GPU
  };
  for (const Facts& facts :
       {Facts{"P100-SXM2", LinkKind::nvlink, 1, 4, 80}, Facts{"V100-SXM2-32GB", LinkKind::nvlink, 2, 6, 150},
        Facts{"A100-SXM4-80GB", LinkKind::nvlink, 3, 12, 300},
        Facts{"H100-SXM", LinkKind::nvlink, 4, 18, 450}, Facts{"H100-NVL", LinkKind::nvlink, 4, 12, 300},
        Facts{"B200-SXM", LinkKind::nvlink, 5, 18, 900}, Facts{"MI300X", LinkKind::xgmi, 0, 7, 448},
        Facts{"L40S", LinkKind::nvlink, 0, 0, 0}, Facts{"P100-PCIE-16GB", LinkKind::nvlink, 0, 0, 0}}) {
    SCOPED_TRACE(facts.name);
    const GpuLinks links = gpu_product(facts.name).links;
    EXPECT_EQ(links.kind, facts.kind);
    EXPECT_EQ(links.version, facts.version);
    EXPECT_EQ(links.count, facts.count);
    EXPECT_DOUBLE_EQ(links.count * links.each.gigabytes_per_second(), facts.gigabytes);
  }
}

TEST(Products, AreNamedAsPeopleNameThem) {
  const auto product = [](std::string_view name) { return gpu_product(name).product; };
  EXPECT_EQ(product("h100"), "H100-SXM");
  EXPECT_EQ(product("NVIDIA H100 80GB HBM3"), "H100-SXM");
  EXPECT_EQ(product("nvidia a100 80gb"), "A100-SXM4-80GB");
  EXPECT_EQ(product("v100_sxm2_32gb"), "V100-SXM2-32GB");
  EXPECT_EQ(product("AMD Instinct MI300X"), "MI300X");
  EXPECT_EQ(product("RTX A6000"), "RTX-A6000");
  EXPECT_THAT(usage_sentence([] { gpu_product("H10"); }),
              AllOf(HasSubstr("unknown GPU 'H10'; did you mean"), HasSubstr("P100-SXM2, ")));
  for (const char* none : {"", "nvidia", "H1000", "-"})
    EXPECT_THAT(usage_sentence([&] { gpu_product(none); }), HasSubstr("unknown GPU"));
}

TEST(Nics, CarryWhatTheirRatesSay) {
  const auto part = [](NicProtocol protocol, const std::string& rate) {
    return nic_by_rate(protocol, rate, "nics", "as stated");
  };
  EXPECT_EQ(part(NicProtocol::infiniband, "NDR").port, ndr("").port);
  EXPECT_EQ(part(NicProtocol::infiniband, "400Gb/s").port, ndr("").port);
  EXPECT_EQ(part(NicProtocol::infiniband, "edr").port, gigabytes_per_second(12.1));
  EXPECT_EQ(part(NicProtocol::infiniband, "hdr").port, gigabytes_per_second(24.2));
  EXPECT_EQ(part(NicProtocol::infiniband, "300Gb/s").port, gigabytes_per_second(37.5));
  EXPECT_EQ(part(NicProtocol::infiniband, "ndr").kind, NicKind::infiniband);
  EXPECT_EQ(part(NicProtocol::infiniband, "ndr").model, "NDR InfiniBand");
  EXPECT_EQ(part(NicProtocol::roce, "400Gb/s").port, gigabytes_per_second(50));
  EXPECT_EQ(part(NicProtocol::roce, "100GbE").kind, NicKind::ethernet);
  EXPECT_EQ(part(NicProtocol::efa, "100Gb/s").device, "efa");
  EXPECT_EQ(part(NicProtocol::ethernet, "25gbe").citation.source, "as stated");
}

TEST(Nics, RefuseOtherRates) {
  const auto sentence = [](NicProtocol protocol, const std::string& rate) {
    return usage_sentence([&] { nic_by_rate(protocol, rate, "nics", ""); });
  };
  EXPECT_THAT(sentence(NicProtocol::infiniband, "nrd"), HasSubstr("did you mean ndr?"));
  EXPECT_THAT(sentence(NicProtocol::roce, "ndr"), HasSubstr("write 400Gb/s, or let them be infiniband"));
  EXPECT_THAT(sentence(NicProtocol::ethernet, "400GB/s"), HasSubstr("more than any NIC port carries"));
  EXPECT_THAT(sentence(NicProtocol::ethernet, "-1Gb/s"), HasSubstr("nics"));
  EXPECT_THAT(sentence(NicProtocol::infiniband, ""), HasSubstr("nics"));
  EXPECT_THAT(usage_sentence([] { parse_nic_protocol("Infinyband"); }),
              HasSubstr("did you mean infiniband?"));
}

}  // namespace
}  // namespace polyring::presets
