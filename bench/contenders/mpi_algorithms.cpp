// What Open MPI and MPICH let their users choose, through the settings of MPI_T.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "bench/contenders/mpi.hpp"
#include "bench/contenders/mpi_call.hpp"

namespace polyring {

class MpiAlgorithms::Library {
 public:
  virtual ~Library() = default;
  virtual std::vector<MpiControl::Choice> choices() const = 0;
  /// Why none of choices() would be taken; empty otherwise.
  virtual std::string obstacle() const { return {}; }
  virtual MpiCall call(int choice) = 0;
};

/// Its component coll/tuned looks at these settings when a communicator is made, provided that it was told
/// at the start to do so (allow()). A communicator of its own for each algorithm keeps them in force.
class MpiAlgorithms::OpenMpi final : public Library {
 public:
  static std::unique_ptr<OpenMpi> find(const MpiWorld& world) {
    auto dynamic = MpiControl::find("coll_tuned_use_dynamic_rules");
    auto algorithm = MpiControl::find("coll_tuned_allreduce_algorithm");
    auto segment = MpiControl::find("coll_tuned_allreduce_algorithm_segmentsize");
    if (!dynamic || !algorithm || !segment) return nullptr;
    return std::unique_ptr<OpenMpi>(
        new OpenMpi(world, std::move(*dynamic), std::move(*algorithm), std::move(*segment)));
  }

  ~OpenMpi() override {
    for (auto& [choice, comm] : comms_) MPI_Comm_free(&comm);
  }
  OpenMpi(const OpenMpi&) = delete;
  OpenMpi& operator=(const OpenMpi&) = delete;

  std::vector<MpiControl::Choice> choices() const override {
    std::vector<MpiControl::Choice> choices = algorithm_.choices();
    std::erase_if(choices, [](const MpiControl::Choice& choice) { return choice.value == 0; });  // "ignore"
    return choices;
  }

  std::string obstacle() const override {
    if (dynamic_.read() == 0) {
      return "coll_tuned_use_dynamic_rules is off, so that Open MPI chooses its algorithm alone; leave that "
             "setting out, or set it to 1";
    }
    const auto own = MpiControl::find("coll_tuned_priority");
    // Of the other components that have an allreduce, sm is for one host and han for several.
    const std::array others{world_.nodes() > 1 ? "han" : "sm", "hcoll", "ucc"};
    for (const char* other : others) {
      const auto priority = MpiControl::find(fmt::format("coll_{}_priority", other).c_str());
      if (own && priority && priority->read() > own->read()) {
        return fmt::format(
            "Open MPI's coll/{} goes before coll/tuned, which has the algorithms; set coll_{}_priority to 0",
            other, other);
      }
    }
    return {};
  }

  MpiCall call(int choice) override {
    auto found = comms_.find(choice);
    if (found == comms_.end()) found = comms_.emplace(choice, comm_with(choice)).first;
    return {{}, found->second, {}};
  }

 private:
  /// For the segmented ring, unless the user has set a size: by default it takes no segments, which leaves it
  /// without what it is for. 64 KiB to 4 MiB were measured, see docs/performance.md.
  static constexpr int kSegment = 256 << 10;

  OpenMpi(const MpiWorld& world, MpiControl dynamic, MpiControl algorithm, MpiControl segment)
      : world_(world),
        dynamic_(std::move(dynamic)),
        algorithm_(std::move(algorithm)),
        segment_(std::move(segment)) {}

  MPI_Comm comm_with(int choice) const {
    const int algorithm_before = algorithm_.read();
    const int segment_before = segment_.read();
    algorithm_.write(choice);
    if (segment_before == 0) segment_.write(kSegment);
    MPI_Comm comm = MpiWorld::Handle::duplicate(world_);
    algorithm_.write(algorithm_before);
    segment_.write(segment_before);
    return comm;
  }

  const MpiWorld& world_;
  MpiControl dynamic_;
  MpiControl algorithm_;
  MpiControl segment_;
  std::map<int, MPI_Comm> comms_;
};

/// It looks at its settings in every call. Its devices' own collectives come first unless they are told not
/// to.
class MpiAlgorithms::Mpich final : public Library {
 public:
  static std::unique_ptr<Mpich> find(const MpiWorld& world) {
    auto algorithm = MpiControl::find("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM");
    auto device = MpiControl::find("MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE");
    if (!algorithm || !device) return nullptr;
    return std::unique_ptr<Mpich>(new Mpich(world, std::move(*algorithm), std::move(*device)));
  }

  std::vector<MpiControl::Choice> choices() const override {
    std::vector<MpiControl::Choice> choices = algorithm_.choices();
    if (choices.empty()) choices = described();
    std::erase_if(choices, [](const MpiControl::Choice& choice) { return choice.name == "auto"; });
    return choices;
  }

  MpiCall call(int choice) override {
    return {
        {},
        world_.handle().comm,
        {MpiSetting{&algorithm_, choice, algorithm_.read()}, MpiSetting{&device_, 0, device_.read()}},
    };
  }

 private:
  Mpich(const MpiWorld& world, MpiControl algorithm, MpiControl device)
      : world_(world), algorithm_(std::move(algorithm)), device_(std::move(device)) {}

  /// MPICH lists "NAME - what it is" in its description, counted from 0, and has no line ends between them:
  /// "…allreduce algorithmauto - Internal algorithm selection (…)nb - Force nonblocking algorithmsmp - …".
  std::vector<MpiControl::Choice> described() const {
    constexpr std::string_view kDash = " - ";
    constexpr std::string_view kLastWord = "algorithm";
    const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    const std::string_view text = algorithm_.description();
    std::vector<MpiControl::Choice> choices;
    for (std::size_t dash = text.find(kDash); dash != text.npos; dash = text.find(kDash, dash + 1)) {
      const std::size_t end = text.find_last_not_of(' ', dash) + 1;
      std::size_t begin = end;
      while (begin > 0 && in_name(text[begin - 1])) --begin;
      std::string_view name = text.substr(begin, end - begin);
      if (name.starts_with(kLastWord)) name.remove_prefix(kLastWord.size());
      choices.push_back({static_cast<int>(choices.size()), std::string(name)});
    }
    return choices;
  }

  const MpiWorld& world_;
  MpiControl algorithm_;
  MpiControl device_;
};

void MpiAlgorithms::allow() { setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0); }

MpiAlgorithms::MpiAlgorithms(const MpiWorld& world)
    : world_(world), tools_(std::make_unique<MpiTools>()), library_(OpenMpi::find(world)) {
  if (!library_) library_ = Mpich::find(world);
  why_none_ = library_ ? library_->obstacle()
                       : fmt::format("{} has no setting for it that is known here", MpiWorld::library());
  if (!why_none_.empty()) return;
  for (const MpiControl::Choice& choice : library_->choices()) names_.push_back(choice.name);
}

MpiAlgorithms::~MpiAlgorithms() = default;

std::unique_ptr<CollectiveCall> MpiAlgorithms::make(const std::string& name, ElementKind kind, ReduceOp op,
                                                    Count count) {
  const std::vector<MpiControl::Choice> choices = library_->choices();
  const auto found = std::find_if(choices.begin(), choices.end(),
                                  [&](const MpiControl::Choice& choice) { return choice.name == name; });
  MpiCall call = library_->call(found->value);
  call.algorithm = "mpi:" + name;
  return make_mpi_allreduce(world_, std::move(call), kind, op, count);
}

}  // namespace polyring
