// An allreduce between processes that no MPI has started. Each is told its place by the environment variables
// that torchrun and others set, and does the same work:
//
//     c++ -std=c++17 allreduce.cpp -lpolyring -o allreduce
//     for rank in 0 1 2 3; do
//       RANK=$rank WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=4711 ./allreduce &
//     done; wait
#include <polyring.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(std::string(name) + " is not set; see the head of this example");
  return value;
}

/// What a call of Polyring's returned.
struct Failure : std::runtime_error {
  explicit Failure(polyring_result failed) : std::runtime_error(polyring_error_text()), result(failed) {}
  polyring_result result;
};

void must(polyring_result result) {
  if (result != POLYRING_SUCCESS) throw Failure(result);
}

/// Freed in the end, whatever happens.
class Ranks {
 public:
  Ranks() {
    polyring_unique_id id;
    must(polyring_unique_id_at(&id, (variable("MASTER_ADDR") + ":" + variable("MASTER_PORT")).c_str(),
                               nullptr));
    polyring_options options = POLYRING_OPTIONS_DEFAULT;
    options.timeout = 20;
    must(polyring_comm_create(&comm_, &id, std::stoi(variable("RANK")), std::stoi(variable("WORLD_SIZE")),
                              &options));
  }
  ~Ranks() { polyring_comm_free(comm_); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  polyring_comm comm() const { return comm_; }

 private:
  polyring_comm comm_ = POLYRING_COMM_NULL;
};

int run() {
  const Ranks ranks;
  int rank = 0;
  int size = 0;
  int hosts = 0;
  const char* transport = nullptr;
  must(polyring_comm_rank(ranks.comm(), &rank));
  must(polyring_comm_size(ranks.comm(), &size));
  must(polyring_comm_hosts(ranks.comm(), &hosts));
  must(polyring_comm_transport(ranks.comm(), &transport));

  // In memory of the communicator the ranks of a host combine without copies; any other memory will do as
  // well.
  constexpr std::size_t kCount = 1'000'000;
  void* memory = nullptr;
  must(polyring_mem_alloc(ranks.comm(), kCount * sizeof(float), &memory));
  auto* const gradients = static_cast<float*>(memory);
  std::fill_n(gradients, kCount, static_cast<float>(rank + 1));

  polyring_request sum = POLYRING_REQUEST_NULL;
  must(polyring_start_allreduce(ranks.comm(), gradients, gradients, kCount, POLYRING_FLOAT32, POLYRING_SUM,
                                &sum));
  // … whatever else there is to compute …
  must(polyring_wait(&sum));

  const auto expected = static_cast<float>(size * (size + 1) / 2);
  const auto wrong =
      std::count_if(gradients, gradients + kCount, [&](float value) { return value != expected; });
  std::cout << "rank " + std::to_string(rank) + " of " + std::to_string(size) + ": " + std::to_string(hosts) +
                   " hosts over " + transport + ", " + std::to_string(wrong) + " of 1000000 sums wrong\n";
  return wrong == 0 ? 0 : 7;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const Failure& failure) {
    std::cerr << "allreduce: " << failure.what() << '\n';
    return failure.result;
  } catch (const std::exception& error) {
    std::cerr << "allreduce: " << error.what() << '\n';
    return 1;
  }
}
