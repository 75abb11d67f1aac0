#include "models/more_results.hpp"

namespace polyring {

namespace {

using enum Precision;

constexpr double kTera = 1e12;

/// A result that was published as samples per second of one GPU, of a model with so many TFLOP a sample,
/// forward and backward.
TrainingResult computed(Family family, std::string model, std::string gpu, Precision precision, double rate,
                        double tflop, std::string source) {
  const double peak = peak_of(*find_gpu_peak(gpu), precision);
  return {family,           std::move(model), std::move(gpu), precision, rate * tflop * kTera / peak,
          std::move(source)};
}

/// One that was published as a part of the peak.
TrainingResult stated(Family family, std::string model, std::string gpu, double utilisation,
                      std::string source) {
  return {family, std::move(model), std::move(gpu), mixed, utilisation, std::move(source)};
}

using Results = std::vector<TrainingResult>;

void add(Results& to, Results more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// ResNet and VGG at the FLOPs of the catalogue's.
Results cnns() {
  const std::string tensorflow =
      "NVIDIA DeepLearningExamples, TensorFlow/Classification/ConvNets/resnet50v1.5/README.md, 1 GPU, XLA, "
      "container tensorflow-20.06";
  const std::string pytorch =
      "NVIDIA DeepLearningExamples, PyTorch/Classification/ConvNets/resnet50v1.5/README.md, 1 GPU, container "
      "pytorch-21.03";
  const std::string a100 =
      "SuperBench results v0.4.0, Azure-NDmv4-A100/baseline.json, one of 8 GPUs, PyTorch";
  const std::string mi100 =
      "SuperBench results v0.2.1, HPE-MI100/results-summary-mi100.json, one of 8 GPUs, PyTorch";
  constexpr double kResNet50 = 0.0243;
  constexpr double kResNet101 = 0.0466;
  constexpr double kResNet152 = 0.0688;
  constexpr double kVgg16 = 0.0926;
  const auto result = [](const char* model, double tflop, const char* gpu, Precision precision, double rate,
                         const std::string& source) {
    return computed(Family::cnn, model, gpu, precision, rate, tflop, source);
  };
  return {
      result("resnet50", kResNet50, "V100", single, 412, tensorflow),
      result("resnet50", kResNet50, "V100", mixed, 1270, tensorflow),
      result("resnet50", kResNet50, "A100", single, 909, tensorflow),
      result("resnet50", kResNet50, "A100", mixed, 2375, tensorflow),
      result("resnet50", kResNet50, "V100", single, 367, pytorch),
      result("resnet50", kResNet50, "V100", mixed, 1200, pytorch),
      result("resnet50", kResNet50, "A100", single, 938, pytorch),
      result("resnet50", kResNet50, "A100", mixed, 2470, pytorch),
      result("resnet50", kResNet50, "A100", single, 856.9, a100),
      result("resnet50", kResNet50, "A100", mixed, 1031.3, a100),
      result("resnet101", kResNet101, "A100", single, 557.7, a100),
      result("resnet101", kResNet101, "A100", mixed, 664.4, a100),
      result("resnet152", kResNet152, "A100", single, 395.9, a100),
      result("resnet152", kResNet152, "A100", mixed, 482.3, a100),
      result("vgg16", kVgg16, "A100", single, 522.9, a100),
      result("vgg16", kVgg16, "A100", mixed, 864.4, a100),
      result("resnet50", kResNet50, "MI100", single, 379.8, mi100),
      result("resnet50", kResNet50, "MI100", mixed, 479.2, mi100),
      result("resnet101", kResNet101, "MI100", single, 208.1, mi100),
      result("resnet101", kResNet101, "MI100", mixed, 280.5, mi100),
      result("resnet152", kResNet152, "MI100", single, 148.2, mi100),
      result("resnet152", kResNet152, "MI100", mixed, 199.0, mi100),
      result("vgg16", kVgg16, "MI100", single, 179.1, mi100),
      result("vgg16", kVgg16, "MI100", mixed, 336.5, mi100),
  };
}

/// BERT-large with other sequences than the catalogue's: 24·(24·d²·s + 4·s²·d) FLOPs forward for s tokens and
/// d = 1024, three times that for both passes.
Results encoders() {
  const std::string lambda =
      "Lambda, deeplearning-benchmark, pytorch/pytorch-train-throughput-*.csv, BERT-large, fine-tuning with "
      "sequences of 384 tokens, 1 GPU";
  const std::string superbench =
      "SuperBench results, v0.4.0 Azure-NDmv4-A100 and v0.2.1 HPE-MI100, BERT-large with sequences of 224 "
      "tokens, one of 8 GPUs, PyTorch";
  const std::string deepspeed =
      "DeepSpeed, The Fastest and Most Efficient BERT Training through Optimized Transformer Kernels, 1 GPU";
  constexpr double k384 = 0.739;
  constexpr double k224 = 0.421;
  const auto result = [](const char* gpu, Precision precision, double rate, double tflop,
                         const std::string& source) {
    return computed(Family::encoder, "BERT-large", gpu, precision, rate, tflop, source);
  };
  return {
      stated(Family::encoder, "BERT-large", "V100", 0.52, deepspeed),
      result("V100", single, 12, k384, lambda),
      result("V100", mixed, 57, k384, lambda),
      result("RTX 8000", single, 12, k384, lambda),
      result("RTX 8000", mixed, 50, k384, lambda),
      result("A10", single, 19, k384, lambda),
      result("A10", mixed, 42, k384, lambda),
      result("A6000", single, 33, k384, lambda),
      result("A6000", mixed, 68, k384, lambda),
      result("RTX 3090", single, 24, k384, lambda),
      result("RTX 3090", mixed, 52, k384, lambda),
      result("A100", single, 75, k384, lambda),
      result("A100", mixed, 152, k384, lambda),
      result("RTX 4090", single, 44, k384, lambda),
      result("RTX 4090", mixed, 93, k384, lambda),
      result("H100 PCIe", single, 97, k384, lambda),
      result("H100 PCIe", mixed, 203, k384, lambda),
      result("H100", single, 147, k384, lambda),
      result("H100", mixed, 307, k384, lambda),
      result("GH200", single, 131, k384, lambda),
      result("GH200", mixed, 296, k384, lambda),
      result("H200", single, 181, k384, lambda),
      result("H200", mixed, 351, k384, lambda),
      result("A100", single, 108.9, k224, superbench),
      result("A100", mixed, 159.1, k224, superbench),
      result("MI100", single, 43.8, k224, superbench),
      result("MI100", mixed, 98.8, k224, superbench),
  };
}

Results dense_decoders() {
  const std::string korthikanti =
      "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198, "
      "table 5; GPT-3's layers, 8 to 512 GPUs";
  const std::string foundry =
      "MosaicML llm-foundry, scripts/train/benchmarking/README.md, MPT, 8 GPUs, bfloat16, 2,048 tokens";
  const std::string megatron = "NVIDIA Megatron-LM, README.md, weak scaling of GPT on H100, bfloat16";
  const std::string llama = "Dubey et al., The Llama 3 Herd of Models, arXiv 2407.21783, table 4";
  const std::string megascale = "Jiang et al., MegaScale, arXiv 2402.15627, 12,288 GPUs";
  const std::string titan =
      "torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, 8 GPUs, FSDP, bfloat16, 500 W";
  const std::string bekman =
      "Machine Learning Engineering (stas00/ml-engineering), insights/when-to-upgrade-gpus/README.md, 8 "
      "GPUs, bfloat16";
  const std::string frontier =
      "Dash et al., Optimizing Distributed Training on Frontier for Large Language Models, arXiv 2312.12705";
  const auto decoder = [](const char* model, const char* gpu, double utilisation, const std::string& source) {
    return stated(Family::decoder, model, gpu, utilisation, source);
  };
  return {
      decoder("GPT-2 1.2B", "V100", 0.30, "Shoeybi et al., Megatron-LM, arXiv 1909.08053, 1 GPU"),
      decoder("GPT 22B", "A100", 0.415, korthikanti),
      decoder("gpt3-175b", "A100", 0.514, korthikanti),
      decoder("GPT 530B", "A100", 0.560, korthikanti),
      decoder("GPT 1T", "A100", 0.563, korthikanti),
      decoder("GPT 175B", "A100", 0.552, megascale),
      decoder("MPT-1B", "A100", 0.5986, foundry),
      decoder("MPT-7B", "A100", 0.6423, foundry),
      decoder("MPT-13B", "A100", 0.5957, foundry),
      decoder("MPT-30B", "A100", 0.553, foundry),
      decoder("MPT-1B", "H100", 0.4182, foundry),
      decoder("MPT-7B", "H100", 0.4644, foundry),
      decoder("MPT-13B", "H100", 0.3979, foundry),
      decoder("MPT-30B", "H100", 0.3811, foundry),
      decoder("GPT 2.1B", "H100", 0.41, megatron),
      decoder("GPT 462B", "H100", 0.48, megatron),
      decoder("Llama 3 405B", "H100", 0.38, llama),
      decoder("Llama 3 405B", "H100", 0.43, llama),
      decoder("llama3-8b", "H100", 0.33, titan),
      decoder("llama3-8b", "H100", 0.39, titan),
      decoder("llama3-8b", "H200", 0.47, bekman),
      decoder("llama3-8b", "B200", 0.35, bekman),
      decoder("llama3-70b", "B200", 0.3821, "NewMind AI Journal 18, 8 B200"),
      decoder("GPT 22B", "MI250X", 0.3838, frontier),
      decoder("gpt3-175b", "MI250X", 0.3614, frontier),
      decoder("GPT 1T", "MI250X", 0.3196, frontier),
  };
}

Results mixtures() {
  const std::string folding = "MoE Parallel Folding, arXiv 2504.14960, up to 1,024 GPUs";
  const std::string upcycling = "Vavre et al., Llama 3 Meets MoE: Efficient Upcycling, arXiv 2412.09952";
  const std::string automodel = "NVIDIA NeMo AutoModel, performance summary, bfloat16, 8 and 64 GPUs";
  const std::string bridge =
      "NVIDIA Megatron Bridge, docs/performance-summary-archive.md, bfloat16, 64 to 256 GPUs";
  const auto mixture = [](const char* model, const char* gpu, double utilisation, const std::string& source) {
    return stated(Family::mixture, model, gpu, utilisation, source);
  };
  return {
      mixture("Mixtral 8x22B", "H100", 0.493, folding),
      mixture("Qwen2-57B-A14B", "H100", 0.390, folding),
      mixture("Llama 3 8B x 8", "H100", 0.468, upcycling),
      mixture("Nemotron 3 Nano 30B", "H100", 0.332, automodel),
      mixture("Nemotron 3 Super 120B", "H100", 0.338, automodel),
      mixture("GPT OSS 120B", "H100", 163e12 / 989.5e12, bridge),
      mixture("GPT OSS 120B", "B200", 223e12 / 2250e12, bridge),
      mixture("GPT OSS 120B", "B200", 373e12 / 2250e12, bridge),
      mixture("GPT OSS 120B", "GB200", 488e12 / 2500e12, bridge),
      mixture("Qwen3 235B-A22B", "GB200", 728e12 / 2500e12, bridge),
      mixture("DeepSeek-V3", "GB200", 782e12 / 2500e12, bridge),
  };
}

/// ViT-g/14 has 1.60 TFLOP an image (40 layers of 1,408 features, 6,144 in the feed-forward layers, 257
/// tokens). The U-Net of Stable Diffusion 2 has 2.41 and, at a quarter of the latents, 0.53 TFLOP as that of
/// version 1, whose layers it has; its text has 1,024 features.
Results images() {
  const std::string nemo =
      "NVIDIA NeMo framework user guide, Vision Transformer, Performance: ViT-g/14, 8 GPUs, bfloat16";
  const std::string mosaic =
      "MosaicML diffusion, README.md: U-Net of Stable Diffusion 2, 8 A100, latents made before";
  constexpr Family vit = Family::vision_transformer;
  return {
      computed(vit, "ViT-g/14", "A100", mixed, 693.0 / 8, 1.60, nemo),
      computed(vit, "ViT-g/14", "H100", mixed, 1428.0 / 8, 1.60, nemo),
      stated(vit, "ViT-5-Small", "H100", 0.229, "NVIDIA nvSubquadratic, benchmarks, 1 GPU, bfloat16"),
      computed(Family::diffusion, "Stable Diffusion 2", "A100", mixed, 290.0 / 8, 2.41, mosaic),
      computed(Family::diffusion, "Stable Diffusion 2", "A100", mixed, 1100.0 / 8, 0.53, mosaic),
  };
}

}  // namespace

std::vector<TrainingResult> more_results() {
  Results all = cnns();
  add(all, encoders());
  add(all, dense_decoders());
  add(all, mixtures());
  add(all, images());
  return all;
}

}  // namespace polyring
