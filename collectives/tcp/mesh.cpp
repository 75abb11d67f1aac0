#include "collectives/tcp/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "collectives/tcp/introduction.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

using asio::ip::tcp;
using Code = asio::error_code;

class Mesh {
 public:
  Mesh(asio::io_context& io, const TcpGroup& group) : io_(io), group_(group), acceptor_(io) {}

  /// Throws std::system_error, when there is no listening at the group's address.
  Introduction listen();
  /// The reason when not all peers are there in time, else nothing.
  std::string connect(const std::vector<Introduction>& introductions);
  std::vector<TcpPeer> take_peers() { return std::move(peers_); }

 private:
  /// A connection of which it is not known yet where it leads.
  struct Candidate {
    tcp::socket socket;
    Greeting said{};   // by this rank
    Greeting heard{};  // from the other side
  };
  using Shared = std::shared_ptr<Candidate>;

  void dial(Rank rank);
  void accept();
  void hear_stranger(const Shared& candidate);
  void introduce_to(Rank rank, const Shared& candidate);
  void adopt(Rank rank, Candidate& candidate);
  void close();
  /// What comes of the first failure is none.
  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }

  const Introduction& of(Rank rank) const { return introductions_[static_cast<std::size_t>(rank)]; }
  std::string name(Rank rank) const { return fmt::format("rank {} ({})", rank, of(rank).host.data()); }
  std::string place(Rank rank) const {
    return fmt::format("{}:{}", asio::ip::address_v4(of(rank).address).to_string(), of(rank).port);
  }
  /// What `from` says to `to`.
  Greeting greeting(Rank from, Rank to) const {
    return {static_cast<std::uint64_t>(from), of(from).token, of(to).token};
  }

  asio::io_context& io_;
  const TcpGroup& group_;
  tcp::acceptor acceptor_;
  std::vector<Introduction> introductions_;
  std::set<Rank> missing_;
  std::list<Shared> candidates_;
  std::vector<TcpPeer> peers_;
  std::string failure_;
};

Introduction Mesh::listen() {
  const tcp::endpoint endpoint(asio::ip::make_address_v4(group_.address), 0);
  acceptor_.open(endpoint.protocol());
  acceptor_.bind(endpoint);
  acceptor_.listen();
  Introduction introduction;
  std::random_device random;
  for (std::uint64_t& word : introduction.token) word = std::uint64_t{random()} << 32 | random();
  group_.host.copy(introduction.host.data(), introduction.host.size() - 1);
  introduction.address = acceptor_.local_endpoint().address().to_v4().to_bytes();
  introduction.port = acceptor_.local_endpoint().port();
  return introduction;
}

std::string Mesh::connect(const std::vector<Introduction>& introductions) {
  introductions_ = introductions;
  for (Rank rank = 0; rank < group_.size; ++rank) {
    if (std::find(group_.members.begin(), group_.members.end(), rank) == group_.members.end()) {
      missing_.insert(rank);
    }
  }
  for (const Rank rank : missing_) {
    if (rank < group_.rank) dial(rank);
  }
  accept();
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(group_.limit.value));
  while (!missing_.empty() && failure_.empty() && std::chrono::steady_clock::now() < deadline) {
    io_.run_one_until(deadline);
  }
  if (failure_.empty() && !missing_.empty()) {
    const Rank rank = *missing_.begin();
    fail(fmt::format("{} had no connection with {}, which is to be at {}, within {}", name(group_.rank),
                     name(rank), place(rank), to_text(group_.limit)));
  }
  close();
  return failure_;
}

void Mesh::dial(Rank rank) {
  const Shared& candidate =
      candidates_.emplace_back(std::make_shared<Candidate>(Candidate{tcp::socket(io_)}));
  const tcp::endpoint endpoint(asio::ip::address_v4(of(rank).address),
                               static_cast<std::uint16_t>(of(rank).port));
  candidate->socket.async_connect(endpoint, [this, rank, candidate](Code error) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      fail(fmt::format("{} cannot reach {} at {}: {}", name(group_.rank), name(rank), place(rank),
                       error.message()));
    } else {
      introduce_to(rank, candidate);
    }
  });
}

/// The side that has connected speaks first.
void Mesh::introduce_to(Rank rank, const Shared& candidate) {
  candidate->said = greeting(group_.rank, rank);
  const auto heard = [this, rank, candidate](Code error, std::size_t) {
    if (error == asio::error::operation_aborted) return;
    if (error || candidate->heard != greeting(rank, group_.rank)) {
      fail(fmt::format("{} finds another program than {} at {}", name(group_.rank), name(rank), place(rank)));
    } else {
      adopt(rank, *candidate);
    }
  };
  const auto said = [candidate, heard](Code error, std::size_t bytes) {
    if (error) return heard(error, bytes);
    asio::async_read(candidate->socket, asio::buffer(&candidate->heard, sizeof(Greeting)), heard);
  };
  asio::async_write(candidate->socket, asio::buffer(&candidate->said, sizeof(Greeting)), said);
}

void Mesh::accept() {
  acceptor_.async_accept([this](Code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error)
      hear_stranger(candidates_.emplace_back(std::make_shared<Candidate>(Candidate{std::move(socket)})));
    accept();
  });
}

/// Whoever is not a rank that is missing is dropped without a word.
void Mesh::hear_stranger(const Shared& candidate) {
  const auto heard = [this, candidate](Code error, std::size_t) {
    if (error == asio::error::operation_aborted) return;
    const auto from = std::find_if(missing_.begin(), missing_.end(), [&](Rank rank) {
      return rank > group_.rank && candidate->heard == greeting(rank, group_.rank);
    });
    if (error || from == missing_.end()) {
      candidates_.remove(candidate);
      return;
    }
    candidate->said = greeting(group_.rank, *from);
    asio::async_write(candidate->socket, asio::buffer(&candidate->said, sizeof(Greeting)),
                      [this, rank = *from, candidate](Code failed, std::size_t) {
                        if (!failed) adopt(rank, *candidate);
                      });
  };
  asio::async_read(candidate->socket, asio::buffer(&candidate->heard, sizeof(Greeting)), heard);
}

void Mesh::adopt(Rank rank, Candidate& candidate) {
  missing_.erase(rank);
  peers_.push_back({rank, name(rank), std::move(candidate.socket)});
}

/// Nothing that refers to this object may be left with the event loop.
void Mesh::close() {
  Code ignored;
  acceptor_.close(ignored);
  for (const Shared& candidate : candidates_) candidate->socket.close(ignored);
  io_.restart();
  io_.run();
  io_.restart();
}

}  // namespace

std::vector<TcpPeer> connect_mesh(asio::io_context& io, const TcpGroup& group) {
  Mesh mesh(io, group);
  Introduction own;
  std::string why;
  try {
    own = mesh.listen();
  } catch (const std::system_error& error) {
    why = fmt::format("rank {} ({}) cannot listen at {}: {}", group.rank, group.host, group.address,
                      error.code().message());
  }
  std::vector<Introduction> introductions;
  bool all_listen = true;
  for (const std::vector<std::byte>& bytes : group.allgather(bytes_of(own))) {
    std::memcpy(&introductions.emplace_back(), bytes.data(), sizeof(Introduction));
    all_listen = all_listen && introductions.back().port != 0;
  }
  if (all_listen) why = mesh.connect(introductions);
  std::string reason;
  // The last one's: those who connect know more than those who are connected to, who are the lower ranks.
  for (const std::vector<std::byte>& bytes : group.allgather(std::as_bytes(std::span(why)))) {
    if (!bytes.empty()) reason.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  if (reason.empty()) return mesh.take_peers();
  throw Error(
      ExitCode::not_available,
      fmt::format("TCP connections cannot be had: {}; name another network with --tcp-interface, or use "
                  "--transport auto",
                  reason));
}

}  // namespace polyring
