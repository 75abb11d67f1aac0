// The file of scripts/measure_step: what is read and refused, and that buckets are ready when it says so.
#include "bench/record/step_file.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/predict/compute.hpp"
#include "models/buckets.hpp"
#include "tests/bench/damaged_files.hpp"
#include "tests/folder.hpp"

namespace polyring {
namespace {

using testing::HasSubstr;

constexpr BucketPolicy kPerTensor{BucketPolicy::Kind::per_tensor, {}};

/// Gradient i of n is ready after (i + 1) / (n + 1) of the backward pass.
std::vector<MeasuredGradient> evenly(const std::vector<Tensor>& tensors) {
  std::vector<MeasuredGradient> gradients;
  for (const Tensor& tensor : tensors) {
    const double part = static_cast<double>(gradients.size() + 1) / (static_cast<double>(tensors.size()) + 1);
    gradients.push_back({tensor.name, tensor.elements(), part});
  }
  return gradients;
}

/// As the script writes it, without what is not read.
std::string text_of(const std::string& model, const std::vector<MeasuredGradient>& gradients,
                    bool own = false) {
  std::vector<std::string> rows;
  std::int64_t elements = 0;
  for (const MeasuredGradient& gradient : gradients) {
    rows.push_back(fmt::format(R"({{"name": "{}", "elements": {}, "ready": {}}})", gradient.name,
                               gradient.elements, gradient.ready));
    elements += gradient.elements;
  }
  return fmt::format(
      R"({{"schema": "polyring-step", "version": 1, "created": "2026-03-01T12:00:00Z", "model": "{}",
 "own_model": {}, "batch": 64, "precision": "mixed", "device_name": "Tesla V100", "parameters": {},
 "forward_ms": {{"median": 30}}, "backward_ms": {{"median": 60.5}}, "optimizer_ms": {{"median": 0}},
 "gradients": [{}]}})",
      model, own, elements, fmt::join(rows, ",\n"));
}

std::string small() {
  return text_of("net.py:make", {{"b", 10, 0.25}, {"a.weight", 200, 0.5}, {"a.bias", 20, 0.5}}, true);
}

std::string refused(const std::string& text) { return refusal_of(parse_step, text); }

TEST(StepFile, IsReadAsItWasWritten) {
  const MeasuredStep step = parse_step(small(), "a file");
  EXPECT_EQ(step.model, "net.py:make");
  EXPECT_TRUE(step.own_model);
  EXPECT_EQ(step.batch, 64);
  EXPECT_EQ(step.precision, Precision::mixed);
  EXPECT_DOUBLE_EQ(step.compute.forward.value, 0.03);
  EXPECT_DOUBLE_EQ(step.compute.backward.value, 0.0605);
  EXPECT_EQ(step.compute.optimizer.value, 0);
  ASSERT_EQ(step.gradients.size(), 3u);
  EXPECT_EQ(step.gradients[1].name, "a.weight");
  EXPECT_EQ(step.gradients[1].elements, 200);
  EXPECT_EQ(step.gradients[1].ready, 0.5);
  EXPECT_EQ(source_of(step),
            "measured with batch 64 in mixed precision on Tesla V100 (a file of 2026-03-01)");
}

TEST(StepFile, ThatIsNoneOrDamagedIsRefused) {
  for (const char* text : {"", "[]", "{}", R"({"schema": "polyring-result"})", "\xff\xfe"})
    EXPECT_THAT(refused(text), HasSubstr("is no measured step, or damaged"));
  EXPECT_THAT(refused(small().substr(0, small().size() - 2)), HasSubstr("damaged"));
  const auto damaged = [](const char* from, const char* to) { return refused(changed(small(), from, to)); };
  EXPECT_THAT(damaged("\"version\": 1", "\"version\": 2"), HasSubstr("of version 2"));
  EXPECT_THAT(damaged("\"batch\": 64", "\"batch\": 0"), HasSubstr("batch is 0"));
  EXPECT_THAT(damaged("\"batch\": 64", "\"batch\": 1.5"), HasSubstr("batch is 1.5"));
  EXPECT_THAT(damaged("\"batch\": 64", "\"batch\": 1e300"), HasSubstr("batch is 1e+300"));
  EXPECT_THAT(damaged("\"mixed\"", "\"half\""), HasSubstr("no precision 'half'"));
  EXPECT_THAT(damaged("{\"median\": 30}", "{\"median\": -30}"), HasSubstr("forward_ms is -30"));
  EXPECT_THAT(damaged("{\"median\": 60.5}", "{\"median\": 0}"), HasSubstr("backward_ms is 0"));
  EXPECT_THAT(damaged("{\"median\": 60.5}", "{\"median\": 1e9}"), HasSubstr("a day"));
  EXPECT_THAT(damaged("{\"median\": 60.5}", "60.5"), HasSubstr("damaged"));
  EXPECT_THAT(damaged("\"ready\": 0.25", "\"ready\": 0.75"), HasSubstr("a.weight is ready before"));
  EXPECT_THAT(damaged("\"ready\": 0.25", "\"ready\": -0.25"), HasSubstr("ready is -0.25"));
  EXPECT_THAT(damaged("\"ready\": 0.25", "\"ready\": 1.25"), HasSubstr("ready is 1.25"));
  EXPECT_THAT(damaged("\"ready\": 0.25", "\"ready\": null"), HasSubstr("damaged"));
  EXPECT_THAT(damaged("\"elements\": 200", "\"elements\": 199"),
              HasSubstr("have 229 elements, and it says 230"));
  EXPECT_THAT(damaged("\"elements\": 200", "\"elements\": 0"), HasSubstr("elements is 0"));
  EXPECT_THAT(damaged("\"a.bias\"", "\"a.weight\""), HasSubstr("a.weight is there twice"));
  EXPECT_THAT(damaged("\"net.py:make\"", "\"\""), HasSubstr("model has 0 characters"));
  EXPECT_THAT(refused(text_of("net.py:make", {}, true)), HasSubstr("it has no gradients"));
}

TEST(StepFile, OfAnotherModelIsRefused) {
  const Model model = make_model("vgg16");
  const auto refused_for = [&](const std::string& text) {
    const MeasuredStep step = parse_step(text, "a file");
    return refusal([&] { with_measured_times(model, step); });
  };
  std::vector<MeasuredGradient> gradients = evenly(model.gradients);
  EXPECT_EQ(refused_for(text_of("vgg16", gradients)), "");
  EXPECT_THAT(
      refused_for(text_of("bert-large", gradients)),
      HasSubstr("'a file' was measured for bert-large, and --model is vgg16; give --model bert-large"));
  EXPECT_THAT(refused_for(small()), HasSubstr("leave --model out"));
  std::swap(gradients.front().elements, gradients.back().elements);
  EXPECT_THAT(refused_for(text_of("vgg16", gradients)),
              HasSubstr("its classifier.6.bias has 1728 elements, not 1000"));
  gradients = evenly(model.gradients);
  gradients.front().name = "classifier.7.bias";
  EXPECT_THAT(refused_for(text_of("vgg16", gradients)), HasSubstr("it has classifier.7.bias"));
  gradients.erase(gradients.begin());
  EXPECT_THAT(refused_for(text_of("vgg16", gradients)), HasSubstr("it has 31 gradients, not 32"));
}

TEST(StepFile, SaysWhenBucketsAreReady) {
  const Model model = make_model("vgg16");
  // Measured in another order than the model's.
  std::vector<Tensor> measured = model.gradients;
  std::swap(measured[2], measured[5]);
  const std::vector<MeasuredGradient> gradients = evenly(measured);
  const Model timed = with_measured_times(model, parse_step(text_of("vgg16", gradients), "a file"));
  EXPECT_EQ(timed.total_elements(), model.total_elements());
  EXPECT_NEAR(timed.backward_flops_per_sample() / model.backward_flops_per_sample(), 1, 1e-12);

  const std::vector<Bucket> each = make_buckets(timed, kPerTensor, 4);
  ASSERT_EQ(each.size(), gradients.size());
  for (std::size_t i = 0; i + 1 < each.size(); ++i) {
    EXPECT_EQ(timed.gradients[i].name, gradients[i].name);
    EXPECT_EQ(each[i].elements, gradients[i].elements);
    EXPECT_NEAR(each[i].ready, gradients[i].ready, 1e-12) << gradients[i].name;
  }
  EXPECT_EQ(each.back().ready, 1);
  // By its FLOPs it would be ready much sooner.
  EXPECT_LT(make_buckets(model, kPerTensor, 4)[11].ready, 0.5 * each[11].ready);
  for (const Bucket& bucket : make_buckets(timed, {BucketPolicy::Kind::fused, {64 << 20}}, 4)) {
    const std::size_t last = bucket.first + bucket.count - 1;
    EXPECT_NEAR(bucket.ready, last + 1 == gradients.size() ? 1 : gradients[last].ready, 1e-12);
  }
}

TEST(StepFile, OfTheUsersModelIsAModel) {
  const MeasuredStep step = parse_step(small(), "a file");
  const Model model = model_of(step);
  EXPECT_EQ(refusal([&] { check_model(step, model); }), "");
  EXPECT_EQ(model.total_elements(), 230);
  EXPECT_EQ(model.sample.name, "samples");
  const std::vector<Bucket> buckets = make_buckets(model, kPerTensor, 4);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_DOUBLE_EQ(buckets[0].ready, 0.25);
  EXPECT_DOUBLE_EQ(buckets[1].ready, 0.5);
  EXPECT_EQ(buckets[2].ready, 1);
  ASSERT_EQ(model.blocks.size(), 1u);
  EXPECT_EQ(model.blocks[0].parameters, 230);
  EXPECT_DOUBLE_EQ(model.blocks[0].backward_flops, model.backward_flops_per_sample());
}

TEST(StepFile, IsTheComputingTime) {
  ComputeOptions options;
  options.model = "vgg16";
  options.step = (tests_folder() / "fuzz/seeds/step/vgg16.json").string();
  const Model model = options.trained();
  const Compute compute = options.resolve(model, {"an unknown GPU", {}});
  EXPECT_DOUBLE_EQ(compute.step.forward.value, 0.030);
  EXPECT_DOUBLE_EQ(compute.step.backward.value, 0.0615);
  EXPECT_DOUBLE_EQ(compute.step.optimizer.value, 0.0025);
  EXPECT_FALSE(compute.estimated);
  EXPECT_EQ(compute.batch, 64);
  EXPECT_EQ(compute.precision, Precision::mixed);
  EXPECT_THAT(compute.source, HasSubstr("measured with batch 64 in mixed precision on Tesla V100-SXM2-16GB"));
  EXPECT_THAT(compute.choice, HasSubstr("when its gradients are ready are measured with batch 64"));
  EXPECT_NEAR(make_buckets(model, kPerTensor, 4)[0].ready, 1 / 33.0, 1e-6);
  // The catalogue's model will do for the times.
  EXPECT_EQ(options.resolve(make_model("vgg16"), {}).step.total(), compute.step.total());

  options.batch = 64;
  EXPECT_EQ(options.resolve(model, {}).batch, 64);
  options.batch = 32;
  EXPECT_THAT(refusal([&] { options.resolve(model, {}); }), HasSubstr("batch 64, and --batch is 32"));
  options.batch.reset();
  options.precision = "single";
  EXPECT_THAT(refusal([&] { options.resolve(model, {}); }), HasSubstr("--precision is single"));
}

TEST(StepFile, OfTheUsersModelIsTheComputingTime) {
  ComputeOptions options;
  options.step = (tests_folder() / "fuzz/seeds/step/own.json").string();
  const Model model = options.trained();
  EXPECT_EQ(model.name, "train.py:make");
  EXPECT_DOUBLE_EQ(options.resolve(model, {}).step.total().value, 0.0013);
  options.model = "bert-large";
  EXPECT_THAT(refusal([&] { options.trained(); }),
              HasSubstr("leave --model out, or give a file of bert-large"));
  options.model = "resnet50";
  EXPECT_THAT(refusal([&] { options.resolve(make_model("resnet50"), {}); }), HasSubstr("was measured for"));
}

}  // namespace
}  // namespace polyring
