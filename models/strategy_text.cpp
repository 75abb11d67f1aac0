// Strategies as text.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/names.hpp"
#include "models/strategy.hpp"

namespace polyring {

namespace {

constexpr int kLargestFactor = 1 << 20;
constexpr int kMostChunks = 1024;  // of a stage
constexpr int kMostZero = 3;

struct Word {
  std::string_view name;
  std::string_view value;
  bool has_value = false;
};

Word split_word(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, {}, false};
  return {word.substr(0, equals), word.substr(equals + 1), true};
}

class Reader {
 public:
  explicit Reader(std::string_view whole) : whole_(whole) {}

  Strategy read() {
    for (std::size_t begin = 0; begin <= whole_.size();) {
      const std::size_t comma = std::min(whole_.find(',', begin), whole_.size());
      read_word(whole_.substr(begin, comma - begin));
      begin = comma + 1;
    }
    check();
    return strategy_;
  }

 private:
  void read_word(std::string_view text) {
    const Word word = split_word(text);
    if (!seen_.insert(word.name).second)
      usage_error("strategy '{}' has two factors {}; give one", whole_, word.name);
    if (word.name == "fsdp" && !word.has_value) {
      strategy_.zero = kMostZero;
    } else if (word.name == "sequence-parallel" && !word.has_value) {
      strategy_.sequence = true;
    } else if (word.name == "schedule") {
      strategy_.order = one_of<PipelineOrder>(
          word, {{"gpipe", PipelineOrder::gpipe}, {"1f1b", PipelineOrder::one_forward_one_backward}});
    } else if (word.name == "recompute") {
      strategy_.recompute = one_of<Recompute>(
          word, {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}});
    } else if (word.name == "near") {
      strategy_.data_near = one_of<bool>(word, {{"stages", false}, {"data", true}});
    } else {
      read_factor(text, word);
    }
  }

  void read_factor(std::string_view text, const Word& word) {
    if (word.name == "best")
      usage_error("strategy '{}': best stands alone; leave the rest out, or best", whole_);
    constexpr std::array<std::string_view, 9> kFactors{"zero",        "interleaved", "pipeline",
                                                       "tensor",      "intra-model", "data",
                                                       "inter-model", "expert",      "micro-batch"};
    if (std::find(kFactors.begin(), kFactors.end(), word.name) == kFactors.end()) {
      const std::vector<std::string> known{
          "data",      "zero",        "fsdp",        "expert", "pipeline",
          "schedule",  "interleaved", "micro-batch", "tensor", "sequence-parallel",
          "recompute", "near",        "inter-model"};
      usage_error("strategy '{}': {}", whole_, unknown_name("factor", word.name, known));
    }
    if (word.name == "zero") {
      strategy_.zero = number(text, word, 0, kMostZero);
      return;
    }
    if (word.name == "interleaved") {
      strategy_.chunks = number(text, word, 1, kMostChunks);
      strategy_.order = PipelineOrder::interleaved;
      return;
    }
    const int value = number(text, word, 1, kLargestFactor);
    if (word.name == "pipeline") {
      strategy_.pipeline = value;
    } else if (word.name == "tensor" || word.name == "intra-model") {
      strategy_.intra = value;
    } else if (word.name == "data" || word.name == "inter-model") {
      strategy_.replicas = value;
      strategy_.independent = word.name == "inter-model";
    } else if (word.name == "expert") {
      strategy_.expert = value;
    } else {
      strategy_.micro_batch = value;
    }
  }

  int number(std::string_view text, const Word& word, int least, int most) const {
    int value = -1;
    const char* end = word.value.data() + word.value.size();
    const auto [rest, error] = std::from_chars(word.value.data(), end, value);
    if (!word.has_value || error != std::errc{} || rest != end || value < least || value > most) {
      usage_error("strategy '{}': '{}' needs a whole number from {} to {}, as in {}={}", whole_, text, least,
                  most, word.name, std::min(2, most));
    }
    return value;
  }

  template <typename Choice>
  Choice one_of(const Word& word, const std::map<std::string_view, Choice>& choices) const {
    const auto found = choices.find(word.value);
    if (found != choices.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& choice : choices) names.emplace_back(choice.first);
    usage_error("strategy '{}': {}", whole_, unknown_name(word.name, word.value, names));
  }

  bool has(std::string_view name) const { return seen_.contains(name); }

  void only_one(std::string_view a, std::string_view b) const {
    if (has(a) && has(b)) usage_error("strategy '{}' has {} and {}; give one of them", whole_, a, b);
  }

  void needs(std::string_view name, std::string_view other, bool there) const {
    if (has(name) && !there)
      usage_error("strategy '{}': {} is nothing without {} of 2 or more; add it, or leave {} out", whole_,
                  name, other, name);
  }

  void check() const {
    only_one("data", "inter-model");
    only_one("tensor", "intra-model");
    only_one("fsdp", "zero");
    only_one("schedule", "interleaved");
    for (const std::string_view name : {"zero", "fsdp", "expert"}) {
      if (strategy_.independent && has(name))
        usage_error("strategy '{}': independent trials share nothing; use data with {}", whole_, name);
    }
    needs("sequence-parallel", "tensor", strategy_.intra > 1);
    needs("schedule", "pipeline", strategy_.pipeline > 1);
    needs("interleaved", "pipeline", strategy_.pipeline > 1);
    needs("near", "pipeline", strategy_.pipeline > 1);
  }

  std::string_view whole_;
  std::set<std::string_view> seen_;
  Strategy strategy_;
};

}  // namespace

Strategy parse_strategy(std::string_view text) { return Reader(text).read(); }

std::string to_text(const Strategy& strategy) {
  std::vector<std::string> words;
  if (strategy.replicas != 1 || strategy.replica_gpus() == 1)
    words.push_back(fmt::format("{}={}", strategy.independent ? "inter-model" : "data", strategy.replicas));
  const auto add = [&](const char* name, int value, int usual) {
    if (value != usual) words.push_back(fmt::format("{}={}", name, value));
  };
  add("zero", strategy.zero, 0);
  add("expert", strategy.expert, 1);
  add("pipeline", strategy.pipeline, 1);
  if (strategy.order == PipelineOrder::one_forward_one_backward) words.emplace_back("schedule=1f1b");
  if (strategy.order == PipelineOrder::interleaved)
    words.push_back(fmt::format("interleaved={}", strategy.chunks));
  add("tensor", strategy.intra, 1);
  if (strategy.sequence) words.emplace_back("sequence-parallel");
  add("micro-batch", strategy.micro_batch, 0);
  if (strategy.recompute != Recompute::none)
    words.push_back(fmt::format("recompute={}", to_text(strategy.recompute)));
  if (strategy.data_near) words.emplace_back("near=data");
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace polyring
