#include "collectives/cuda/staging.hpp"

#include <algorithm>
#include <bit>

#include "collectives/cuda/memory.hpp"

namespace polyring::cuda {
Staging::Staging(HostMessages& host, EventPool& events, ActivityLog& activities, StagingOptions options)
    : host_(host), activities_(activities), options_(options), out_(events), in_(events) {}

/// The GPU may still copy from there.
Staging::~Staging() {
  cudaStreamSynchronize(out_.queue.stream());
  cudaStreamSynchronize(in_.queue.stream());
}

void Staging::send(Rank to, int tag, std::span<const std::byte> data, std::function<void()> done) {
  start(out_, {.peer = to,
               .tag = tag,
               .data = const_cast<std::byte*>(data.data()),
               .bytes = data.size(),
               .done = std::move(done)});
}

void Staging::receive(Rank from, int tag, std::span<std::byte> data, std::function<void()> done) {
  start(in_, {.peer = from, .tag = tag, .data = data.data(), .bytes = data.size(), .done = std::move(done)});
}

void Staging::start(Way& way, Message message) {
  const Key key{message.peer, message.tag};
  way.not_begun[key].push_back(std::make_shared<Message>(std::move(message)));
  advance(way, key);
}

/// Pieces of one peer and tag go in order, so only the first message begins some.
void Staging::advance(Way& way, const Key& key) {
  const auto messages = way.not_begun.find(key);
  while (messages != way.not_begun.end()) {
    const std::shared_ptr<Message> message = messages->second.front();
    // Each message has a piece under way, however few there are: none waits for another.
    while ((message->begun < message->bytes || message->bytes == 0) &&
           (message->under_way == 0 || way.used < options_.pieces)) {
      begin_piece(way, message);
      if (message->bytes == 0) break;
    }
    if (message->begun < message->bytes) return;
    messages->second.pop_front();
    if (messages->second.empty()) {
      way.not_begun.erase(messages);
      return;
    }
  }
}

void Staging::advance_all(Way& way) {
  std::vector<Key> keys;
  for (const auto& [key, messages] : way.not_begun) keys.push_back(key);
  for (const Key& key : keys) advance(way, key);
}

/// Short messages have short buffers.
std::size_t Staging::buffer_bytes(std::size_t bytes) const {
  constexpr std::size_t kLeast = 4096;
  return std::min<std::size_t>(options_.piece.value, std::bit_ceil(std::max(bytes, kLeast)));
}

std::byte* Staging::take_buffer(Way& way, std::size_t bytes) {
  ++way.used;
  const auto found = way.free.find(buffer_bytes(bytes));
  if (found == way.free.end()) {
    buffers_.push_back(pinned_memory(Bytes{buffer_bytes(bytes)}));
    return buffers_.back().get();
  }
  std::byte* const buffer = found->second;
  way.free.erase(found);
  return buffer;
}

/// Between the GPU and pinned memory.
void Staging::copy(std::byte* to, const std::byte* from, std::size_t bytes, Way& way) {
  if (bytes == 0) return;
  const cudaStream_t stream = way.queue.stream();
  activities_.add(&way == &in_ ? GpuActivity::Kind::to_gpu : GpuActivity::Kind::to_host, stream, [&] {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
          "copy between GPU and host (cudaMemcpyAsync)");
  });
}

void Staging::begin_piece(Way& way, const std::shared_ptr<Message>& message) {
  using Use = HostMessages::Use;
  const std::size_t bytes = std::min<std::size_t>(options_.piece.value, message->bytes - message->begun);
  std::byte* const buffer = take_buffer(way, bytes);
  std::byte* const data = message->data + message->begun;
  message->begun += bytes;
  ++message->under_way;
  const auto end = [this, &way, message, buffer, bytes] { end_piece(way, message, buffer, bytes); };
  if (&way == &in_) {
    host_.receive(message->peer, Use::piece, message->tag, {buffer, bytes}, [this, data, buffer, bytes, end] {
      copy(data, buffer, bytes, in_);
      in_.queue.then(end);
    });
  } else {
    copy(buffer, data, bytes, out_);
    out_.queue.then([this, message, buffer, bytes, end] {
      host_.send(message->peer, Use::piece, message->tag, {buffer, bytes}, end);
    });
  }
}

void Staging::end_piece(Way& way, const std::shared_ptr<Message>& message, std::byte* buffer,
                        std::size_t bytes) {
  way.free.emplace(buffer_bytes(bytes), buffer);
  --way.used;
  --message->under_way;
  message->through += bytes;
  if (message->through == message->bytes) message->done();
  advance_all(way);
}

bool Staging::poll() {
  const bool out = out_.queue.poll();
  const bool in = in_.queue.poll();
  return out || in;
}

void Staging::forget() {
  for (Way* way : {&out_, &in_}) {
    way->queue.forget();
    way->not_begun.clear();
  }
}

}  // namespace polyring::cuda
