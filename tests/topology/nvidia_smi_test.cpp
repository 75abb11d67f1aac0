// The matrix of `nvidia-smi topo -m`: the machine that has its paths, and what is refused.
#include "topology/inventory/formats/nvidia_smi.hpp"

#include "tests/topology/support.hpp"
#include "topology/pairs.hpp"
#include "topology/path.hpp"

namespace polyring {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using testing::links_of;
using ::testing::Not;
using ::testing::SizeIs;
using testing::usage_sentence;

Machine parse(const std::string& text) { return parse_topo_matrix(text, "dir/node7.txt"); }

std::string sentence_about(const std::string& text) {
  const std::string sentence = usage_sentence([&] { parse(text); });
  EXPECT_THAT(sentence, HasSubstr("node7.txt"));
  return sentence;
}

/// A matrix of `GPU0 GPU1 ...` with these rows of cells, without the columns behind them.
std::string gpus(const std::vector<std::string>& rows) {
  std::string head;
  std::string body;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    head += fmt::format("\tGPU{}", i);
    body += fmt::format("GPU{}\t{}\n", i, rows[i]);
  }
  return head + "\n" + body;
}

// As the driver prints it: escapes around the head, blanks around X, empty columns of NICs, legends.
const std::string kServer =
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n"
    "GPU 2: NVIDIA H100 80GB HBM3 (UUID: GPU-3)\n"
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\r\n"
    "GPU0\t X \tNV18\tNV18\tPIX\tPXB\tSYS\t0-55,112-167\t0\t\tN/A\r\n"
    "GPU1\tNV18\t X \tNV18\tPXB\tPHB\tSYS\t0-55,112-167\t0\t\tN/A\r\n"
    "GPU2\tNV18\tNV18\t X \tSYS\tSYS\tNODE\t56-111,168-223\t1\t\tN/A\r\n"
    "NIC0\tPIX\tPXB\tSYS\t X \tPXB\tSYS\t\t\t\t\r\n"
    "NIC1\tPXB\tPHB\tSYS\tPXB\t X \tSYS\t\t\t\t\r\n"
    "NIC2\tSYS\tSYS\tNODE\tSYS\tSYS\t X \t\t\t\t\r\n"
    "\r\nLegend:\r\n\r\n  X    = Self\r\n  NV#  = Connection traversing a bonded set of # NVLinks\r\n"
    "\r\nNIC Legend:\r\n\r\n  NIC0: mlx5_0\r\n  NIC1: mlx5_1\r\n  NIC2: roceP2s1\r\n";

TEST(NvidiaSmi, FindsDevicesWithTheirNamesAndPlaces) {
  ASSERT_TRUE(is_topo_matrix(kServer));
  std::string text = kServer;
  // Make its tree a possible one: GPU1 and NIC1 under PXB.
  for (const char* cell : {"PXB\tPHB\tSYS\t0-55", "PXB\tPHB\tSYS\tPXB\t X"}) {
    const auto at = text.find(cell);
    ASSERT_NE(at, std::string::npos);
    text.replace(at + 4, 3, "PXB");
  }
  const Machine machine = parse(text);
  EXPECT_EQ(machine.name, "node7");
  ASSERT_THAT(machine.gpus, SizeIs(3));
  EXPECT_EQ(machine.gpus[2].name, "gpu2");
  EXPECT_EQ(machine.gpus[2].model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(machine.gpus[2].numa, 1);
  ASSERT_THAT(machine.nics, SizeIs(3));
  EXPECT_EQ(machine.nics[0].name, "mlx5_0");
  EXPECT_EQ(machine.nics[0].kind, NicKind::unknown);
  EXPECT_EQ(machine.nics[0].numa, 0);
  EXPECT_EQ(machine.nics[2].kind, NicKind::ethernet);
  EXPECT_THAT(machine.nics[0].ports, IsEmpty());
  ASSERT_THAT(machine.packages, SizeIs(2));
  EXPECT_EQ(machine.packages[1].model, "CPUs 56-111,168-223");
  EXPECT_THAT(machine.packages[1].numa_nodes, ElementsAre(1));
  EXPECT_THAT(machine.remarks, IsEmpty());
}

TEST(NvidiaSmi, SaysThatAllNvlinksOfModulesAreMissing) {
  const std::string names = "GPU 0: NVIDIA A100-SXM4-40GB\nGPU 1: NVIDIA A100-SXM4-40GB\n";
  const Machine machine = parse(names + gpus({"X PXB", "PXB X"}));
  EXPECT_FALSE(machine.gpu_links_known);
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("the matrix has none: they were inactive")));
  EXPECT_TRUE(parse(gpus({"X PXB", "PXB X"})).gpu_links_known);
  EXPECT_THAT(parse(names + gpus({"X NV12", "NV12 X"})).remarks, IsEmpty());
}

TEST(NvidiaSmi, SaysThatTheMatrixLeavesNvlinksOut) {
  const Machine machine = parse("# nvidia-smi topo -mp\n" + gpus({"X PXB", "PXB X"}));
  EXPECT_FALSE(machine.gpu_links_known);
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("topo -mp, which leaves NVLinks out")));
}

TEST(NvidiaSmi, SaysThatNvlinksBetweenHostsAreNotModelled) {
  const std::string names = "GPU 0: NVIDIA GB200\nGPU 1: NVIDIA GB200\nGPU 2: NVIDIA GB200\n";
  EXPECT_THAT(parse(names + gpus({"X NV18 NV18", "NV18 X NV18", "NV18 NV18 X"})).remarks,
              ElementsAre(HasSubstr("until hosts_per_nvlink_domain")));
}

TEST(NvidiaSmi, SaysWhichPathsNoTreeHas) {
  EXPECT_THAT(parse(kServer).remarks,
              ElementsAre(HasSubstr("not those of GPU1 and mlx5_1 (PHB, here PXB) and 0 other")));
}

TEST(NvidiaSmi, HasThePathsOfTheMatrix) {
  const char* rows[] = {"X PIX PXB PHB NODE SYS", "PIX X PXB PHB NODE SYS",    "PXB PXB X PHB NODE SYS",
                        "PHB PHB PHB X NODE SYS", "NODE NODE NODE NODE X SYS", "SYS SYS SYS SYS SYS X"};
  const Machine machine = parse(gpus({std::begin(rows), std::end(rows)}));
  EXPECT_THAT(machine.packages, SizeIs(2));
  EXPECT_THAT(machine.switches, SizeIs(3));
  EXPECT_THAT(machine.remarks, IsEmpty());
  for (int a = 0; a < 6; ++a) {
    std::string row;
    for (int b = 0; b < 6; ++b) {
      row += (b == 0 ? "" : " ") +
             std::string(to_text(find_path(machine, {DeviceKind::gpu, a}, {DeviceKind::gpu, b})->type));
    }
    EXPECT_EQ(row, rows[a]);
  }
}

TEST(NvidiaSmi, TellsTheNearestNics) {
  std::vector<std::string> nearest;
  for (const Pair& pair : nic_pairs(parse(kServer))) {
    if (pair.nearest) nearest.push_back(fmt::format("{} {}", pair.from.index, pair.to.index));
  }
  // GPU1 is equally near to two. That roceP2s1 is of Ethernet is no reason against it, since mlx5_0 and
  // mlx5_1 may be, too.
  EXPECT_THAT(nearest, ElementsAre("0 0", "1 0", "1 1", "2 2"));
}

TEST(NvidiaSmi, KnowsTheOldWordForSys) {
  const Machine machine = parse(gpus({"X SOC", "SOC X"}));
  EXPECT_EQ(find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 1})->type, PathType::sys);
}

TEST(NvidiaSmi, GivesNvlinksTheBandwidthOfTheModel) {
  const std::string matrix = gpus({"X NV2", "NV2 X"});
  EXPECT_EQ(parse(matrix).links.back().count, 2);
  const Machine unknown = parse(matrix);
  EXPECT_THAT(links_of(unknown), Contains("gpu0-gpu1 nvlink ?"));
  EXPECT_THAT(unknown.remarks, ElementsAre(HasSubstr("nvidia-smi -L")));
  const Machine named =
      parse("GPU 0: Tesla P100-SXM2-16GB (UUID: GPU-1)\nGPU 1: Tesla P100-SXM2-16GB\n" + matrix);
  EXPECT_THAT(links_of(named), Contains("gpu0-gpu1 nvlink 40.0 GB/s"));
  EXPECT_THAT(named.remarks, IsEmpty());
  EXPECT_THAT(named.citations.back().source, HasSubstr("P100"));
}

TEST(NvidiaSmi, FindsNvswitchesWhereAGpuHasNotSoManyLinks) {
  const Machine direct = parse(gpus({"X NV6 NV6 NV6", "NV6 X NV6 NV6", "NV6 NV6 X NV6", "NV6 NV6 NV6 X"}));
  EXPECT_EQ(direct.nvswitches, 0);  // 4 H100 of 18 links
  const Machine switched = parse(gpus({"X NV12 NV12", "NV12 X NV12", "NV12 NV12 X"}));
  EXPECT_EQ(switched.nvswitches, 1);  // part of a machine with NVSwitches
  EXPECT_EQ(find_path(switched, {DeviceKind::gpu, 0}, {DeviceKind::gpu, 2})->type, PathType::nvl);
  std::string of_dgx2;  // 4 of its 16 GPUs
  for (int gpu = 0; gpu < 4; ++gpu) of_dgx2 += fmt::format("GPU {}: Tesla V100-SXM3-32GB\n", gpu);
  of_dgx2 += gpus({"X NV6 NV6 NV6", "NV6 X NV6 NV6", "NV6 NV6 X NV6", "NV6 NV6 NV6 X"});
  EXPECT_EQ(parse(of_dgx2).nvswitches, 1);  // a V100 has 6 links
  EXPECT_THAT(links_of(parse(of_dgx2)), Contains("gpu3-nvswitch0 nvlink 150 GB/s"));
}

TEST(NvidiaSmi, SaysWhichGpuHasLostNvlinks) {
  const Machine machine =
      parse(gpus({"X NV18 NODE NV18 NV17", "NV18 X NODE NV18 NV17", "NODE NODE X NODE NODE",
                  "NV18 NV18 NODE X NV17", "NV17 NV17 NODE NV17 X"}));
  EXPECT_EQ(machine.nvswitches, 1);
  EXPECT_THAT(machine.remarks, Contains("3 of 5 GPUs have 18 NVLinks, but gpu2 with 0, gpu4 with 17: see "
                                        "nvidia-smi nvlink --status"));
  std::string named;
  for (int gpu = 0; gpu < 5; ++gpu) named += fmt::format("GPU {}: NVIDIA H100 80GB HBM3\n", gpu);
  const Machine known =
      parse(named + gpus({"X NV18 NODE NV18 NV17", "NV18 X NODE NV18 NV17", "NODE NODE X NODE NODE",
                          "NV18 NV18 NODE X NV17", "NV17 NV17 NODE NV17 X"}));
  EXPECT_THAT(links_of(known),
              IsSupersetOf({"gpu0-nvswitch0 nvlink 450 GB/s", "gpu4-nvswitch0 nvlink 425 GB/s"}));
  EXPECT_THAT(links_of(known), Not(Contains(HasSubstr("gpu2-nvswitch0"))));
}

// GPUs of one affinity may still be SYS from each other's NICs, as where NUMA is emulated.
TEST(NvidiaSmi, BelievesTheMatrixMoreThanTheAffinity) {
  const Machine machine = parse(
      " GPU0 GPU1 NIC0 NIC1 CPU Affinity NUMA Affinity\nGPU0 X NV18 PIX SYS 0-55 0\nGPU1 NV18 X SYS PIX 0-55 "
      "0\n"
      "NIC0 PIX SYS X SYS\nNIC1 SYS PIX SYS X\n");
  EXPECT_THAT(machine.packages, SizeIs(2));
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("nvidia-smi -L")));
  EXPECT_EQ(find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::nic, 1})->type, PathType::sys);
}

TEST(NvidiaSmi, ReadsMoreThanTheMatrixAround) {
  EXPECT_THAT(parse("$ nvidia-smi topo -m\n# of node7\n" + gpus({"X SYS", "SYS X"}) + "$ ").gpus, SizeIs(2));
  EXPECT_THAT(parse(" GPU0 CPU Affinity NUMA Affinity\nGPU0 X N/A N/A\n").gpus, SizeIs(1));
  EXPECT_FALSE(is_topo_matrix("GPU0 X NV1"));
  EXPECT_FALSE(is_topo_matrix("GPU 0: Tesla P100\n"));
  EXPECT_FALSE(is_topo_matrix(""));
}

// As a terminal shows it, or `cat -v`; also colours, and several numbers in one escape.
TEST(NvidiaSmi, ReadsTextThatLostItsEscapes) {
  for (const char* escape : {"[4m", "^[[4m", "[1;4m", "\x1b[4m\x1b[?25h", "\x1b[1m[4m", ""}) {
    const char* end = std::string(escape).starts_with('[') ? "[0m"
                      : std::string(escape).empty()        ? ""
                                                           : "\x1b[0m";
    const std::string text = fmt::format(
        "\t{}GPU0\tGPU1\tCPU Affinity\tNUMA Affinity{}\nGPU0\tX\tSYS\t0-3\t0\nGPU1\tSYS\tX\t4-7\t1\n", escape,
        end);
    ASSERT_TRUE(is_topo_matrix(text)) << escape;
    EXPECT_EQ(parse(text).gpus.at(1).numa, 1) << escape;
  }
  EXPECT_FALSE(is_topo_matrix("\t[4xGPU0\tGPU1\nGPU0\tX\tSYS\n"));
}

TEST(NvidiaSmi, RefusesWhatIsCutOffOrContradictsItself) {
  const std::string good = gpus({"X NV1", "NV1 X"});
  EXPECT_THAT(sentence_about(good.substr(0, good.find("GPU1\tNV1"))), HasSubstr("no row for GPU1"));
  EXPECT_THAT(sentence_about(good.substr(0, good.size() - 3)), HasSubstr("1 cells in the row GPU1, not 2"));
  EXPECT_THAT(sentence_about(gpus({"X NV1", "NV2 X"})), HasSubstr("another of"));
  EXPECT_THAT(sentence_about(gpus({"X X", "X X"})), HasSubstr("says 'X' of GPU0 and GPU1"));
  EXPECT_THAT(sentence_about(gpus({"NV1 NV1", "NV1 X"})), HasSubstr("GPU0 and GPU0"));
  EXPECT_THAT(sentence_about(good + good), HasSubstr("a second matrix of nvidia-smi behind the first"));
  EXPECT_THAT(sentence_about(" GPU0 CPU Affinity\nGPU0 X 0-3\n GPU0 CPU Affinity\n"),
              HasSubstr("a second matrix"));
  // The first cell of a row, where a second head would have a name.
  EXPECT_THAT(sentence_about(gpus({"X NV1", "ERR! X"})), HasSubstr("says 'ERR!' of GPU1 and GPU0"));
  EXPECT_THAT(sentence_about(gpus({"X NV1", ""})), HasSubstr("0 cells in the row GPU1, not 2"));
  EXPECT_THAT(sentence_about(good + "GPU1\tNV1\tX\n"), HasSubstr("two rows GPU1"));
  EXPECT_THAT(sentence_about(" GPU0 GPU0\nGPU0 X X\n"), HasSubstr("two columns GPU0"));
  EXPECT_THAT(sentence_about("\n"), HasSubstr("names of the columns"));
  EXPECT_THAT(sentence_about("GPU0 GPU1 " + std::string(500, 'x')),
              HasSubstr("a column name of 500 characters"));
  for (const char* cell : {"NV", "NV0", "NV-1", "NV99999999999", "NVx", "PIP", "ERR!", "NaN"}) {
    EXPECT_THAT(sentence_about(gpus({fmt::format("X {}", cell), fmt::format("{} X", cell)})),
                HasSubstr("legend"))
        << cell;
  }
}

// A terminal of 60 or so columns: the head goes on below, and each row.
TEST(NvidiaSmi, RefusesWhatATerminalWrapped) {
  const char* by_a_gpu =
      " GPU0 GPU1\nGPU2 NIC0 CPU Affinity NUMA Affinity\nGPU0 X NV8\nNV8 PIX 0-47 0\nGPU1 NV8 X\nNV8 SYS "
      "0-47 0\n";
  EXPECT_THAT(sentence_about(by_a_gpu),
              HasSubstr("a terminal has wrapped, such as the one with 'GPU2 NIC0 CPU'"));
  EXPECT_THAT(sentence_about(by_a_gpu), HasSubstr("nvidia-smi topo -m > FILE"));
  EXPECT_THAT(sentence_about(" GPU0 GPU1\nNIC0 CPU Affinity\nGPU0 X SYS\nPIX 0-3\nGPU1 SYS X\nSYS 0-3\n"),
              HasSubstr("with 'NIC0 CPU Affinity'"));
  EXPECT_THAT(
      sentence_about(" GPU0 GPU1 CPU Affi\nnity NUMA Affinity\nGPU0 X SYS 6,14,\n22 3\nGPU1 SYS X 0-3 1\n"),
      HasSubstr("with 'nity NUMA Affinity'"));
  EXPECT_THAT(sentence_about(" GPU0 GPU1 CPU Affinity\nGPU0 X SYS 0-3,8-1\n1\nGPU1 SYS X 4-7,12-15\n"),
              HasSubstr("with '1'"));
  EXPECT_THAT(sentence_about(" GPU0 GPU1 CPU Affinity\nGPU0 X SYS 6,14,\nGPU1 SYS X 4-7\n"),
              HasSubstr("says '6,14,' where the CPUs near GPU0 stand"));
  EXPECT_THAT(sentence_about(" GPU0 GPU1 CPU\nGPU0 X NV1 PHB\nGPU1 NV1 X PHB\n"),
              HasSubstr("more cells in the row GPU0 than columns"));
  // A legend that is wrapped is none of the matrix.
  EXPECT_THAT(
      parse(gpus({"X SYS", "SYS X"}) + "\nLegend:\n\n  X = Self\n  SYS = Connection traversing PCIe\n NUMA\n")
          .gpus,
      SizeIs(2));
}

TEST(NvidiaSmi, SaysWhichBlankIsMissing) {
  EXPECT_THAT(sentence_about(" GPU0 NIC0NIC1 CPU Affinity\nGPU0 X NODE SYS 0-3\n"),
              HasSubstr("more cells in the row GPU0 than columns: blanks between the names"));
  EXPECT_THAT(sentence_about(" GPU0 mlx5_0 mlx5_1mlx5_2\nGPU0 X NODE SYS SYS\nmlx5_0 NODE X SYS SYS\n"
                             "mlx5_1 SYS SYS X PIX\nmlx5_2 SYS SYS PIX X\n"),
              HasSubstr("lacks a blank within the names of the columns, 'mlx5_1mlx5_2'"));
  EXPECT_THAT(sentence_about(gpus({"X NODE NODE", "NODENODE X NODE", "NODE NODE X"})),
              HasSubstr("lacks a blank within 'NODENODE' in the row GPU1"));
  EXPECT_THAT(sentence_about(" GPU0 GPU1\nGPU0 X NODE\nGPU1 NODE X\nNIC0 NODE SYS\n"),
              HasSubstr("a row NIC0, and no column of that name"));
}

TEST(NvidiaSmi, TakesNoBreakSpacesForBlanks) {
  std::string text = gpus({"X SYS", "SYS X"});
  for (auto at = text.find(' '); at != std::string::npos; at = text.find(' ', at))
    text.replace(at, 1, "\xc2\xa0");
  EXPECT_EQ(links_of(parse(text)), links_of(parse(gpus({"X SYS", "SYS X"}))));
}

TEST(NvidiaSmi, KnowsC2cByTheNumaNodesOfGpus) {
  const std::string matrix =
      " GPU0 GPU1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
      "GPU0 X NV18 0-71 0,3-9 2\nGPU1 NV18 X 72-143 1,19-25 N/A\n";
  EXPECT_THAT(links_of(parse(matrix)), IsSupersetOf({"gpu0-package0 c2c ?", "gpu1-package1 pcie ?"}));
  EXPECT_THAT(links_of(parse("GPU 0: Tesla V100-SXM2-16GB\n" + matrix)), Contains("gpu0-package0 pcie ?"));
}

TEST(NvidiaSmi, SaysWhoseNvlinksItDoesNotKnow) {
  const std::string matrix = gpus({"X NV12", "NV12 X"});
  EXPECT_THAT(parse("GPU 0: NVIDIA PG506-230\n" + matrix).remarks,
              ElementsAre("how fast the NVLinks of this product are is not known here: NVIDIA PG506-230"));
  const Machine summed = parse("GPU 0,1: NVIDIA A100-SXM4-40GB\nGPU 0,1 Compute Capability: 8.0\n" + matrix);
  EXPECT_EQ(summed.gpus[1].model, "NVIDIA A100-SXM4-40GB");
}

TEST(NvidiaSmi, SaysWhichGpusAreSliced) {
  const Machine machine = parse(
      "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)\n"
      "  MIG 3g.20gb     Device  0: (UUID: MIG-3)\n" +
      gpus({"X NV12", "NV12 X"}));
  EXPECT_THAT(machine.remarks, ElementsAre(HasSubstr("gpu1 is in MIG mode")));
}

TEST(NvidiaSmi, SaysWhereTheMatrixContradictsItsAffinities) {
  const auto matrix = [](const char* second) {
    return fmt::format(" GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X SYS 0-3 0\nGPU1 SYS X {}\n", second);
  };
  EXPECT_THAT(parse(matrix("0-3 0")).remarks,
              ElementsAre(HasSubstr("SYS between GPU0 and GPU1, which are near")));
  EXPECT_THAT(parse(matrix("4-7 1")).remarks, IsEmpty());
}

/// What `nvidia-smi topo -p2p` prints.
std::string peers(const std::vector<std::string>& rows) {
  std::string text = " ";
  for (std::size_t i = 0; i < rows.size(); ++i) text += fmt::format("\tGPU{}", i);
  text += "\t\n";
  for (std::size_t i = 0; i < rows.size(); ++i) text += fmt::format(" GPU{}\t{}\t\n", i, rows[i]);
  return text + "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n";
}

TEST(NvidiaSmi, ReadsWhichGpusReachEachOther) {
  const std::string paths =
      "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tPHB\tPHB\t0-63\t0\t\tN/A\nGPU1\tPHB\t X \tPHB\t0-63\t0\t\tN/A\n"
      "NIC0\tPHB\tPHB\t X \n\nLegend:\n\n  X    = Self\n";
  const Machine alone = parse(paths);
  const Machine good = parse(paths + peers({"X\tOK", "OK\tX"}));
  EXPECT_EQ(links_of(good), links_of(alone));
  EXPECT_THAT(good.remarks, IsEmpty());
  EXPECT_THAT(good.citations,
              Contains(::testing::Field(&Citation::source, "nvidia-smi topo -p2p 'node7.txt'")));
  const std::string bad = peers({"X\tGNS", "GNS\tX"});
  const char* sentence =
      "nvidia-smi topo -p2p: 1 of 1 pairs of GPUs is not OK (GPU0 and GPU1: GPU not supported)";
  EXPECT_THAT(parse(paths + bad).remarks, ElementsAre(sentence));
  EXPECT_THAT(parse(bad + paths).remarks, ElementsAre(sentence));
  const Machine asked = parse("$ nvidia-smi topo -p2p r\n" + bad + "$ nvidia-smi topo -m\n" + paths +
                              "$ nvidia-smi topo -p2p a\n" + peers({"X\tOK", "NS\tX"}));
  EXPECT_THAT(asked.remarks,
              ElementsAre(HasSubstr("topo -p2p r: 1 of 1 pairs of GPUs is not OK (GPU0 and GPU1: GPU "
                                    "not supported); data between them go"),
                          HasSubstr("topo -p2p a: 1 of 1 pairs of GPUs is not OK (GPU0 and GPU1: not "
                                    "supported)")));
  EXPECT_EQ(links_of(asked), links_of(alone));
}

TEST(NvidiaSmi, ExpectsNvlinkOnlyWhereTheMatrixHasSome) {
  const std::string asked = gpus({"X NV4 SYS", "NV4 X SYS", "SYS SYS X"}) + "$ nvidia-smi topo -p2p n\n";
  EXPECT_THAT(parse(asked + peers({"X OK NS", "OK X NS", "NS NS X"})).remarks, Each(Not(HasSubstr("p2p"))));
  EXPECT_THAT(
      parse(asked + peers({"X NS NS", "NS X NS", "NS NS X"})).remarks,
      Contains(HasSubstr("1 of 1 pairs of GPUs with NVLinks is not OK (GPU0 and GPU1: not supported)")));
}

TEST(NvidiaSmi, RefusesPeersThatAreCutOffOrOfOthers) {
  const std::string paths = gpus({"X SYS", "SYS X"});
  EXPECT_THAT(sentence_about(peers({"X OK", "OK X"})), HasSubstr("but none of paths"));
  EXPECT_THAT(sentence_about(paths + peers({"X OK OK", "OK X OK", "OK OK X"})), HasSubstr("other GPUs"));
  EXPECT_THAT(sentence_about(paths + " GPU0 GPU1\n GPU0 X OK\n"), HasSubstr("no row for GPU1 in the matrix"));
  EXPECT_THAT(sentence_about(paths + peers({"X OK", "SYS X"})), HasSubstr("says 'SYS' of GPU1 and GPU0"));
  EXPECT_THAT(sentence_about(paths + peers({"X OK", "OK OK"})), HasSubstr("says 'OK' of GPU1 and GPU1"));
  EXPECT_THAT(sentence_about(paths + " GPU0 GPU1\n"), HasSubstr("a second matrix"));
  std::string many = paths;
  for (int i = 0; i < 17; ++i) many += peers({"X OK", "OK X"});
  EXPECT_THAT(sentence_about(many), HasSubstr("more than 16"));
}

TEST(NvidiaSmi, RefusesCrowds) {
  std::string head;
  for (int i = 0; i < 100; ++i) head += fmt::format(" GPU{}", i);
  EXPECT_THAT(sentence_about(head + "\n"), HasSubstr("more than 96 devices"));
  EXPECT_THAT(sentence_about("GPU0 GPU1\n" + std::string(2u << 20, 'x')), HasSubstr("more than the 1MiB"));
}

/// Of GPUs beside their CPU by C2C, nvidia-smi says SYS to every NIC: none has a processor of its own.
TEST(NvidiaSmi, NicsThatAreFarFromAllHaveNoPackageOfTheirOwn) {
  const std::string text =
      "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tNV18\tSYS\tSYS\tSYS\t0-71\t0\t\t2\n"
      "GPU1\tNV18\t X \tSYS\tSYS\tSYS\t72-143\t1\t\t10\n"
      "NIC0\tSYS\tSYS\t X \tPIX\tSYS\n"
      "NIC1\tSYS\tSYS\tPIX\t X \tSYS\n"
      "NIC2\tSYS\tSYS\tSYS\tSYS\t X \n";
  const Machine machine = parse(text);
  ASSERT_THAT(machine.packages, SizeIs(2));
  EXPECT_EQ(machine.packages[0].model, "CPUs 0-71");
  EXPECT_EQ(machine.packages[1].model, "CPUs 72-143");
  for (const Nic& nic : machine.nics) {
    EXPECT_FALSE(nic.package_known);
    EXPECT_EQ(nic.numa, -1);
  }
  EXPECT_THAT(machine.remarks, Contains(HasSubstr("nothing tells which package NIC0, NIC1, NIC2 are near")));
  EXPECT_THAT(machine.remarks, Each(Not(HasSubstr("no tree of PCIe switches"))));
  const DeviceId first{DeviceKind::nic, 0};
  EXPECT_EQ(find_path(machine, first, {DeviceKind::nic, 1})->type, PathType::pix);
  EXPECT_EQ(find_path(machine, first, {DeviceKind::nic, 2})->type, PathType::unknown);
  EXPECT_EQ(find_path(machine, first, {DeviceKind::gpu, 0})->type, PathType::unknown);
}

/// GPUs at one socket, and a NIC at the other: it is where it was.
TEST(NvidiaSmi, ANicAloneMayHaveThePackageWithoutGpus) {
  const Machine machine = parse(
      "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNODE\tSYS\t0-15\t0\n"
      "GPU1\tNODE\t X \tSYS\t0-15\t0\n"
      "NIC0\tSYS\tSYS\t X \n");
  ASSERT_THAT(machine.packages, SizeIs(2));
  EXPECT_TRUE(machine.nics[0].package_known);
  EXPECT_EQ(find_path(machine, {DeviceKind::gpu, 0}, {DeviceKind::nic, 0})->type, PathType::sys);
}

}  // namespace
}  // namespace polyring
