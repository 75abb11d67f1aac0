#include "collectives/cuda/products.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/cuda/check.hpp"
#include "collectives/cuda/cublas.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/known_product.hpp"
#include "collectives/cuda/memory.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/cuda/poll.hpp"

namespace polyring::cuda {
namespace {

using Clock = std::chrono::steady_clock;
using Matrix = KnownProduct::Matrix;

constexpr std::size_t kUploaded = 16 << 20;  // bytes at a time, at least a column
constexpr int kTried = 3;                    // products, to know how long one takes
constexpr int kMostOfBatch = 201;            // two batches are less than CUDA takes before the host must wait
constexpr int kBlocks = 8;                   // of a comparison, for each multiprocessor

void use(int device) { check(cudaSetDevice(device), "use a GPU (cudaSetDevice)"); }

void record(const Event& event, const Stream& stream) {
  check(cudaEventRecord(event.get(), stream.get()), "record an event (cudaEventRecord)");
}

/// What a GPU that hangs may still use. It is never freed: CUDA and cuBLAS would wait for the GPU.
void keep(std::unique_ptr<Cublas> cublas, Memory memory) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::pair<std::unique_ptr<Cublas>, Memory>>;
  const std::lock_guard lock(mutex);
  kept.push_back({std::move(cublas), std::move(memory)});
}

/// Products that follow each other: one sample.
struct Batch {
  Event begin = make_timed_event();
  Event end = make_timed_event();
  Event compared = make_event();
  int products = 0;
};

/// What one GPU does. Batches are enqueued before those before them are over, so that it never rests.
class Multiplier {
 public:
  Multiplier(int gpu, const GpuProductWork& work, std::unique_ptr<Cublas> cublas)
      : gpu_(gpu), work_(work), cublas_(std::move(cublas)) {
    const std::size_t elements = index(work.side) * index(work.side);
    DeviceHeap& heap = DeviceHeap::of(gpu);
    left_ = heap.allocate(Bytes{elements * sizeof(std::uint16_t)});
    right_ = heap.allocate(Bytes{elements * sizeof(std::uint16_t)});
    result_ = heap.allocate(Bytes{elements * sizeof(float)});
    expected_ = heap.allocate(Bytes{elements * sizeof(float)});
    differing_ = heap.allocate(Bytes{sizeof(std::uint64_t)});
    use(gpu);
    count_ = pinned_memory(Bytes{sizeof(std::uint64_t)});
    stream_ = make_stream();
    uploaded_ = make_event();
    batches_ = std::make_unique<std::array<Batch, 2>>();
    check(cudaMemsetAsync(differing_.get(), 0, sizeof(std::uint64_t), stream_.get()),
          "clear memory (cudaMemsetAsync)");
  }
  ~Multiplier() {
    cudaSetDevice(gpu_);
    if (cudaStreamQuery(stream_.get()) == cudaSuccess) return;
    cudaGetLastError();
    keep(std::move(cublas_), std::move(count_));
    DeviceHeap::of(gpu_).keep_all();
  }
  Multiplier(const Multiplier&) = delete;
  Multiplier& operator=(const Multiplier&) = delete;

  void upload(Matrix matrix, std::size_t at, const std::byte* from, std::size_t bytes) {
    use(gpu_);
    check(cudaMemcpyAsync(place_of(matrix) + at, from, bytes, cudaMemcpyHostToDevice, stream_.get()),
          "copy to it (cudaMemcpyAsync)");
    record(uploaded_, stream_);
  }
  void finish_upload() { wait(uploaded_, "copies to it"); }

  /// The product is added and taken away in turn, an odd number of times: one comparison finds an error of
  /// any of them.
  void enqueue(int products) {
    use(gpu_);
    if (under_way_ == 0) progress_ = Clock::now();
    Batch& batch = (*batches_)[next_];
    const std::int64_t elements = std::int64_t{work_.side} * work_.side;
    check(cudaMemsetAsync(result_.get(), 0, index(elements) * sizeof(float), stream_.get()),
          "clear memory (cudaMemsetAsync)");
    record(batch.begin, stream_);
    for (int product = 0; product < products; ++product)
      cublas_->multiply(
          {.side = work_.side, .in_float32 = true, .factor = product % 2 == 0 ? 1.0F : -1.0F, .kept = 1},
          left_.get(), right_.get(), result_.get(), stream_.get());
    record(batch.end, stream_);
    launch_compare(result_.get(), expected_.get(), elements, sizeof(float),
                   reinterpret_cast<std::uint64_t*>(differing_.get()), kBlocks * multiprocessors(gpu_),
                   stream_.get());
    record(batch.compared, stream_);
    batch.products = products;
    rates_.products += products;
    next_ = (next_ + 1) % batches_->size();
    ++under_way_;
  }
  /// Waits for the only batch, and returns how long each of its products took, in microseconds.
  double finish() {
    wait(oldest().compared, "matrix products");
    const int products = oldest().products;
    return take() / products;
  }
  /// So many products, about, that they take this long.
  void set_batch(double us_of_batch, double us_of_product) {
    const double products = us_of_product > 0 ? us_of_batch / us_of_product : 1;
    of_batch_ = static_cast<int>(std::clamp(products, 1.0, static_cast<double>(kMostOfBatch))) | 1;
  }

  void fill() {
    while (under_way_ < batches_->size()) enqueue(of_batch_);
  }
  /// Takes the oldest batch if it is over. A sample counts if `counts`.
  bool poll(bool counts) {
    if (under_way_ == 0) return false;
    use(gpu_);
    if (!is_over(cudaEventQuery(oldest().compared.get()), "finish matrix products (cudaEventQuery)")) {
      if (Clock::now() > progress_ + std::chrono::duration<double>(work_.limit.value))
        hangs("matrix products");
      return false;
    }
    const int products = oldest().products;
    const double us = std::max(take(), 1e-3);
    const auto side = static_cast<double>(work_.side);
    if (counts) rates_.TFLOPs.push_back(products * 2 * side * side * side / us / 1e6);
    return true;
  }
  bool rests() const { return under_way_ == 0; }
  bool lacks_samples() const { return rates_.TFLOPs.size() < index(work_.fewest); }

  GpuProductRates rates() {
    use(gpu_);
    check(cudaMemcpyAsync(count_.get(), differing_.get(), sizeof(std::uint64_t), cudaMemcpyDeviceToHost,
                          stream_.get()),
          "copy from it (cudaMemcpyAsync)");
    record(uploaded_, stream_);
    wait(uploaded_, "a copy from it");
    std::memcpy(&rates_.wrong_elements, count_.get(), sizeof(std::uint64_t));
    return std::move(rates_);
  }

 private:
  std::byte* place_of(Matrix matrix) const {
    return matrix == Matrix::left ? left_.get() : matrix == Matrix::right ? right_.get() : expected_.get();
  }
  Batch& oldest() { return (*batches_)[(next_ + batches_->size() - under_way_) % batches_->size()]; }

  /// How long the oldest batch took, in microseconds. It is over.
  double take() {
    const Batch& batch = oldest();
    --under_way_;
    progress_ = Clock::now();
    return microseconds_between(batch.begin.get(), batch.end.get());
  }

  void wait(const Event& event, const std::string& what) {
    use(gpu_);
    const auto over = [&] {
      return is_over(cudaEventQuery(event.get()), "finish what it was given (cudaEventQuery)");
    };
    if (!over_within(work_.limit, true, over)) hangs(what);
  }
  [[noreturn]] void hangs(const std::string& what) const {
    throw Error(ExitCode::timeout,
                fmt::format("GPU {} has not finished {} within {}", gpu_, what, to_text(work_.limit)));
  }

  int gpu_;
  GpuProductWork work_;
  std::unique_ptr<Cublas> cublas_;
  Memory left_, right_, result_, expected_, differing_, count_;
  Stream stream_;
  Event uploaded_;
  std::unique_ptr<std::array<Batch, 2>> batches_;
  std::size_t next_ = 0;       // of the batches
  std::size_t under_way_ = 0;  // batches
  int of_batch_ = 1;           // products; an odd number
  Clock::time_point progress_;
  GpuProductRates rates_;
};

using Multipliers = std::vector<std::unique_ptr<Multiplier>>;

void upload(const Multipliers& all, int side) {
  const KnownProduct known(side);
  for (const Matrix matrix : {Matrix::left, Matrix::right, Matrix::product}) {
    const std::size_t of_column = known.column_bytes(matrix);
    const int columns = static_cast<int>(std::clamp<std::size_t>(kUploaded / of_column, 1, index(side)));
    Memory some = pinned_memory(Bytes{of_column * index(columns)});
    try {
      for (int first = 0; first < side; first += columns) {
        const int now = std::min(columns, side - first);
        known.write_columns(matrix, first, now, some.get());
        for (const auto& one : all)
          one->upload(matrix, of_column * index(first), some.get(), of_column * index(now));
        for (const auto& one : all) one->finish_upload();
      }
    } catch (const Error&) {
      keep(nullptr, std::move(some));
      throw;
    }
  }
}

/// All at the same time, until each has its samples: one that rests would leave the others more power.
void multiply_at_once(const Multipliers& all, const GpuProductWork& work) {
  constexpr int kSamples = 24;
  // The first product takes the time of loading its kernel.
  for (const int products : {1, kTried}) {
    for (const auto& one : all) one->enqueue(products);
    for (const auto& one : all) one->set_batch(1e6 * work.time.value / kSamples, one->finish());
  }
  const auto seconds = [](Seconds time) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.value));
  };
  const auto warm = Clock::now() + seconds(work.warm_up);
  const auto until = warm + seconds(work.time);
  for (const auto& one : all) one->fill();
  for (bool busy = true; busy;) {
    const auto now = Clock::now();
    const bool goes_on =
        now < until || std::ranges::any_of(all, [](const auto& one) { return one->lacks_samples(); });
    bool idle = true;
    busy = false;
    for (const auto& one : all) {
      if (one->poll(now >= warm)) {
        idle = false;
        if (goes_on) one->fill();
      }
      busy = busy || !one->rests();
    }
    if (idle) std::this_thread::yield();
  }
}

}  // namespace

GpuProducts multiply(std::span<const int> gpus, const GpuProductWork& work) {
  const CurrentDevice current;
  GpuProducts made;
  Multipliers all;
  for (const int gpu : gpus) {
    use(gpu);
    std::string why_not;
    std::unique_ptr<Cublas> cublas = Cublas::open(why_not);
    if (!cublas && !all.empty())
      throw Error(ExitCode::cuda, fmt::format("GPU {} cannot multiply matrices: {}", gpu, why_not));
    if (!cublas) return {.why_not = why_not, .way = "", .rates = {}};
    made.way =
        fmt::format("products of {0} x {0} matrices of float16 by cuBLAS {1}", work.side, cublas->version());
    all.push_back(std::make_unique<Multiplier>(gpu, work, std::move(cublas)));
  }
  upload(all, work.side);
  multiply_at_once(all, work);
  for (const auto& one : all) made.rates.push_back(one->rates());
  return made;
}

}  // namespace polyring::cuda
