// Strategies as text, their product, stages of every model, and what fits a GPU.
#include "models/strategy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/models/catalogue_names.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using testing::HasSubstr;

TEST(Strategy, IsReadInAnyOrder) {
  const Strategy strategy = parse_strategy("pipeline=4,data=16,intra-model=2");
  EXPECT_EQ(strategy.replicas, 16);
  EXPECT_EQ(strategy.pipeline, 4);
  EXPECT_EQ(strategy.intra, 2);
  EXPECT_FALSE(strategy.independent);
  EXPECT_EQ(to_text(strategy), "data=16,pipeline=4,tensor=2");
  EXPECT_TRUE(parse_strategy("inter-model=8").independent);
  EXPECT_EQ(to_text(parse_strategy("inter-model=8")), "inter-model=8");
  EXPECT_EQ(to_text(for_gpus(parse_strategy("pipeline=4"), 4)), "pipeline=4");
  EXPECT_EQ(to_text(for_gpus(Strategy{}, 1)), "data=1");
}

TEST(Strategy, IsWrittenAsItIsRead) {
  for (const char* text :
       {"data=64,zero=3", "data=8,zero=1,pipeline=4,schedule=1f1b,tensor=8,sequence-parallel,micro-batch=2",
        "data=2,pipeline=4,interleaved=5,recompute=selective,near=data", "data=16,expert=8,recompute=full"}) {
    EXPECT_EQ(to_text(parse_strategy(text)), text);
  }
  EXPECT_EQ(parse_strategy("fsdp").zero, 3);
  EXPECT_EQ(parse_strategy("tensor=4"), parse_strategy("intra-model=4"));
  EXPECT_EQ(parse_strategy("pipeline=4,interleaved=2").order, PipelineOrder::interleaved);
  EXPECT_FALSE(parse_strategy("zero=1").is_plain());
  EXPECT_TRUE(parse_strategy("data=8").is_plain());
}

TEST(Strategy, ThatContradictsItselfIsRefused) {
  const auto refused = [](const char* text) { return refusal([&] { parse_strategy(text); }); };
  EXPECT_THAT(refused("zero=4"), HasSubstr("'zero=4' needs a whole number from 0 to 3"));
  EXPECT_THAT(refused("pipeline=1048576,interleaved=1048576"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(refused("fsdp,zero=1"), HasSubstr("fsdp and zero"));
  EXPECT_THAT(refused("tensor=2,intra-model=2"), HasSubstr("tensor and intra-model"));
  EXPECT_THAT(refused("pipeline=2,schedule=1f1b,interleaved=2"), HasSubstr("schedule and interleaved"));
  EXPECT_THAT(refused("inter-model=4,zero=1"), HasSubstr("independent trials share nothing"));
  EXPECT_THAT(refused("sequence-parallel"), HasSubstr("nothing without tensor of 2 or more"));
  EXPECT_THAT(refused("schedule=1f1b"), HasSubstr("nothing without pipeline of 2 or more"));
  EXPECT_THAT(refused("pipeline=2,schedule=best"),
              HasSubstr("unknown schedule 'best'; choose from 1f1b, gpipe"));
  EXPECT_THAT(refused("recompute=some"),
              HasSubstr("unknown recompute 'some'; choose from full, none, selective"));
}

/// All ranks, each in one group: by group, its members.
std::vector<std::vector<int>> members(const RankGroups& groups, int ranks) {
  std::vector<std::vector<int>> result(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const int first = rank - rank / groups.stride % groups.members * groups.stride;
    result[static_cast<std::size_t>(first)].push_back(rank);
  }
  std::erase_if(result, [](const std::vector<int>& group) { return group.empty(); });
  return result;
}

TEST(Strategy, SaysWhereRanksLie) {
  const Strategy far = parse_strategy("data=2,pipeline=2,tensor=2");
  EXPECT_THAT(members(tensor_groups(far), 8)[1], testing::ElementsAre(2, 3));
  EXPECT_THAT(members(data_groups(far), 8)[0], testing::ElementsAre(0, 4));
  EXPECT_EQ(stage_stride(far), 2);
  const Strategy near = parse_strategy("data=2,pipeline=2,tensor=2,near=data");
  EXPECT_THAT(members(data_groups(near), 8)[0], testing::ElementsAre(0, 2));
  EXPECT_EQ(stage_stride(near), 4);
  const Strategy experts = parse_strategy("data=4,expert=2,tensor=2");
  EXPECT_THAT(members(expert_groups(experts), 8)[0], testing::ElementsAre(0, 2));
  EXPECT_THAT(members(expert_copies(experts), 8)[0], testing::ElementsAre(0, 4));
}

TEST(Strategy, MustDivideTheModel) {
  const auto refused = [](const char* model, const char* text) {
    return refusal([&] { check_division(make_model(model), parse_strategy(text)); });
  };
  EXPECT_THAT(refused("gpt2-xl", "tensor=2"), HasSubstr("25 attention heads"));
  EXPECT_EQ(refused("gpt2-xl", "tensor=5"), "");
  EXPECT_THAT(refused("resnet50", "tensor=2"), HasSubstr("not known"));
  EXPECT_THAT(refused("gpt2-xl", "expert=2"), HasSubstr("no experts"));
  EXPECT_THAT(refused("mixtral-8x7b", "expert=3"), HasSubstr("8 experts, which expert=3 does not divide"));
  EXPECT_THAT(refused("gpt2-xl", "pipeline=4,interleaved=5"), HasSubstr("48 layers, which do not divide"));
  EXPECT_EQ(refused("gpt2-xl", "pipeline=4,interleaved=6"), "");
  EXPECT_THAT(refused("gpt2-xl", "pipeline=5"),
              HasSubstr("48 layers, which pipeline=5 does not divide; choose a divisor of 48"));
  EXPECT_EQ(refused("gpt2-xl", "pipeline=48"), "");
  EXPECT_EQ(refused("resnet50", "pipeline=5"), "") << "its blocks are not equal";
  // Eight heads of keys and values on 16 ranks: two hold the same.
  EXPECT_EQ(refused("llama3-70b", "tensor=16"), "");
  EXPECT_THAT(refusal([] { for_gpus(parse_strategy("expert=3"), 8); }),
              HasSubstr("does not divide 8 replicas"));
}

TEST(Strategy, TextThatIsNoneIsRefused) {
  for (const char* bad :
       {"", "x", "data", "data=", "data=0", "data=-1", "data=1.5", "data=4,", ",data=4", "data=4x",
        "data=99999999999", "model=4", "data=4,data=4", "data=4,inter-model=2", "pipeline 4"}) {
    EXPECT_THAT(refusal([&] { parse_strategy(bad); }), HasSubstr(bad)) << bad;
  }
}

TEST(Strategy, MustMultiplyToTheGpus) {
  EXPECT_EQ(for_gpus(parse_strategy("data=64,pipeline=4"), 256).replicas, 64);
  EXPECT_EQ(for_gpus(parse_strategy("pipeline=4"), 256).replicas, 64);
  const auto refused = [](const char* text, int gpus) {
    return refusal([&] { for_gpus(parse_strategy(text), gpus); });
  };
  EXPECT_THAT(refused("data=64,pipeline=4", 128),
              HasSubstr("data 64 x pipeline 4 x tensor 1 = 256 GPUs and not for 128"));
  EXPECT_THAT(refused("pipeline=3,intra-model=2", 256), HasSubstr("= 6 GPUs does not divide 256"));
  EXPECT_THAT(refused("data=1048576,pipeline=1048576,intra-model=1048576", 256),
              HasSubstr("= 1152921504606846976 GPUs"));
}

/// The least of the largest parts, over all ways to cut: exponential, for small inputs.
double best_cut(const std::vector<Block>& blocks, std::size_t first, int stages) {
  const auto sum = [&](std::size_t from, std::size_t to) {
    double flops = 0;
    for (; from < to; ++from) flops += blocks[from].forward_flops + blocks[from].backward_flops;
    return flops;
  };
  if (stages == 1) return sum(first, blocks.size());
  double best = 1e300;
  for (std::size_t cut = first + 1; cut + static_cast<std::size_t>(stages) - 1 <= blocks.size(); ++cut)
    best = std::min(best, std::max(sum(first, cut), best_cut(blocks, cut, stages - 1)));
  return best;
}

class BlocksOf : public testing::TestWithParam<std::string> {
 protected:
  const Model model = make_model(GetParam());
};

TEST_P(BlocksOf, HoldTheWholeModel) {
  std::int64_t parameters = 0;
  double forward = 0;
  double backward = 0;
  for (const Block& block : model.blocks) {
    parameters += block.parameters;
    forward += block.forward_flops;
    backward += block.backward_flops;
    EXPECT_EQ(block.activations == 0, &block == &model.blocks.back()) << block.name;
  }
  EXPECT_EQ(parameters, model.total_elements());
  EXPECT_NEAR(forward / model.forward_flops_per_sample, 1, 1e-12);
  EXPECT_NEAR(backward / model.backward_flops_per_sample(), 1, 1e-12);
}

TEST_P(BlocksOf, AreCutIntoTheBestStages) {
  for (const int count : {1, 2, 3, 4}) {
    if (static_cast<std::size_t>(count) > model.blocks.size()) break;
    const auto stages = balanced_stages(model, count);
    ASSERT_EQ(stages.size(), static_cast<std::size_t>(count));
    std::size_t next = 0;
    double largest = 0;
    for (const StageBlocks& stage : stages) {
      EXPECT_EQ(stage.first, next);
      EXPECT_GT(stage.count, 0u);
      next += stage.count;
      EXPECT_EQ(stage.activations, model.blocks[next - 1].activations);
      largest = std::max(largest, stage.forward_flops + stage.backward_flops);
    }
    EXPECT_EQ(next, model.blocks.size());
    EXPECT_NEAR(largest / best_cut(model.blocks, 0, count), 1, 1e-9) << count;
  }
}

TEST_P(BlocksOf, CanEachBeAStageAndNoMore) {
  const int most = static_cast<int>(model.blocks.size());
  EXPECT_EQ(balanced_stages(model, most).size(), model.blocks.size());
  EXPECT_THAT(refusal([&] { balanced_stages(model, most + 1); }), HasSubstr("use fewer"));
}

INSTANTIATE_TEST_SUITE_P(Catalogue, BlocksOf, testing::ValuesIn(catalogue_names()), name_of_parameter);

TEST(Blocks, HandOnTheTensorsOfThePapers) {
  // He et al., table 1: outputs of 56×56, 28×28, 14×14 and 7×7 with 256 to 2048 channels.
  const Model resnet = make_model("resnet50");
  ASSERT_EQ(resnet.blocks.size(), 18u);
  EXPECT_EQ(resnet.blocks[0].activations, 64 * 56 * 56);
  EXPECT_EQ(resnet.blocks[3].activations, 256 * 56 * 56);
  EXPECT_EQ(resnet.blocks[16].activations, 2048 * 7 * 7);
  const Model gpt = make_model("gpt2-xl");
  ASSERT_EQ(gpt.blocks.size(), 50u);
  EXPECT_EQ(gpt.blocks[1].activations, 1024 * 1600);
  EXPECT_THAT(gpt.blocks[1].exchanges, testing::ElementsAre(1024 * 1600, 1024 * 1600));
  EXPECT_EQ(make_model("inception3").blocks[3].activations, 288 * 35 * 35);
  EXPECT_EQ(make_model("vgg16").blocks[12].activations, 512 * 7 * 7);
  EXPECT_EQ(make_model("bert-large").blocks[1].activations, 128 * 1024);
}

}  // namespace
}  // namespace polyring
