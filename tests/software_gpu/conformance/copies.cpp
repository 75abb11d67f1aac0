// Questions on copies and memsets: which wait, and when they read.
#include <cuda_runtime_api.h>

#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

constexpr unsigned kWords = 64;
constexpr std::size_t kBytes = kWords * sizeof(unsigned);

/// A host-to-device copy of words that change after the call and before the stream does it.
std::string host_words_change(unsigned* host) {
  const OwnStream stream;
  const DeviceWords words(kWords);
  for (unsigned index = 0; index < kWords; ++index) host[index] = 1;
  {
    Hold hold(stream);
    NEED(cudaMemcpyAsync(words.get(), host, kBytes, cudaMemcpyHostToDevice, stream));
    for (unsigned index = 0; index < kWords; ++index) host[index] = 2;
  }
  return words.first() == 1 ? "as they were" : "as they are later";
}

std::string copy_waits(cudaStream_t held, void* to, const void* from, cudaMemcpyKind kind) {
  return waits_for(held, [&] { NEED(cudaMemcpy(to, from, kBytes, kind)); });
}

std::string async_copy_waits(void* to, const void* from, cudaMemcpyKind kind) {
  const OwnStream stream;
  return waits_for(stream, [&] { NEED(cudaMemcpyAsync(to, from, kBytes, kind, stream)); });
}

std::string wrong_kind(cudaMemcpyKind kind) {
  const DeviceWords words(1);
  unsigned host = 0;
  return named(cudaMemcpy(words.get(), &host, sizeof host, kind));
}

std::string by_default_kind() {
  const DeviceWords first(1), second(1);
  unsigned host = 9, back = 0;
  NEED(cudaMemcpy(first.get(), &host, sizeof host, cudaMemcpyDefault));
  NEED(cudaMemcpy(second.get(), first.get(), sizeof host, cudaMemcpyDefault));
  NEED(cudaMemcpy(&back, second.get(), sizeof host, cudaMemcpyDefault));
  return std::to_string(back);
}

std::string over_the_end() {
  const DeviceWords words(1);
  const std::vector<char> host(std::size_t{64} << 20);
  return named(cudaMemcpy(words.get(), host.data(), host.size(), cudaMemcpyHostToDevice));
}

std::string between_devices_without_peer_access() {
  const DeviceWords here(1);
  here.add(6, nullptr);
  NEED(cudaDeviceSynchronize());
  NEED(cudaSetDevice(1));
  const DeviceWords there(1);
  NEED(cudaMemcpyPeerAsync(there.get(), 1, here.get(), 0, sizeof(unsigned), nullptr));
  const unsigned first = there.first();
  NEED(cudaSetDevice(0));
  return std::to_string(first);
}

std::string peer_copy_with_wrong_device() {
  const DeviceWords first(1), second(1);
  return named(cudaMemcpyPeerAsync(first.get(), 1, second.get(), 0, sizeof(unsigned), nullptr));
}

std::string set_bytes() {
  const DeviceWords words(1);
  NEED(cudaMemset(words.get(), 0x101, sizeof(unsigned)));
  return std::to_string(words.first());
}

const Question kQuestions[] = {
    {"copy.async_from_pinned_reads",
     [] {
       const PinnedWords host(kWords);
       return host_words_change(host.get());
     }},
    {"copy.async_from_pageable_reads",
     [] {
       std::vector<unsigned> host(kWords);
       return host_words_change(host.data());
     }},
    {"copy.to_pinned",
     [] {
       const DeviceWords words(kWords);
       const PinnedWords host(kWords);
       return copy_waits(nullptr, host.get(), words.get(), cudaMemcpyDeviceToHost);
     }},
    {"copy.from_pinned",
     [] {
       const DeviceWords words(kWords);
       const PinnedWords host(kWords);
       return copy_waits(nullptr, words.get(), host.get(), cudaMemcpyHostToDevice);
     }},
    {"copy.on_device",
     [] {
       const DeviceWords from(kWords), to(kWords);
       return copy_waits(nullptr, to.get(), from.get(), cudaMemcpyDeviceToDevice);
     }},
    {"copy.to_pinned_beside_held_non_blocking_stream",
     [] {
       const OwnStream stream(cudaStreamNonBlocking);
       const DeviceWords words(kWords);
       const PinnedWords host(kWords);
       return copy_waits(stream, host.get(), words.get(), cudaMemcpyDeviceToHost);
     }},
    {"copy.to_pinned_after_held_blocking_stream",
     [] {
       const OwnStream stream(cudaStreamDefault);
       const DeviceWords words(kWords);
       const PinnedWords host(kWords);
       return copy_waits(stream, host.get(), words.get(), cudaMemcpyDeviceToHost);
     }},
    {"copy.async_to_pinned",
     [] {
       const DeviceWords words(kWords);
       const PinnedWords host(kWords);
       return async_copy_waits(host.get(), words.get(), cudaMemcpyDeviceToHost);
     }},
    {"copy.async_from_pinned",
     [] {
       const DeviceWords words(kWords);
       const PinnedWords host(kWords);
       return async_copy_waits(words.get(), host.get(), cudaMemcpyHostToDevice);
     }},
    {"copy.async_to_pageable",
     [] {
       const DeviceWords words(kWords);
       std::vector<unsigned> host(kWords);
       return async_copy_waits(host.data(), words.get(), cudaMemcpyDeviceToHost);
     }},
    {"copy.async_on_device",
     [] {
       const DeviceWords from(kWords), to(kWords);
       return async_copy_waits(to.get(), from.get(), cudaMemcpyDeviceToDevice);
     }},
    {"copy.async_from_pinned_to_pinned",
     [] {
       const PinnedWords from(kWords), to(kWords);
       return async_copy_waits(to.get(), from.get(), cudaMemcpyHostToHost);
     }},
    {"copy.memset",
     [] {
       const DeviceWords words(kWords);
       return waits_for(nullptr, [&] { NEED(cudaMemset(words.get(), 1, kBytes)); });
     }},
    {"copy.memset_takes_low_byte", set_bytes},
    {"copy.of_nothing", [] { return named(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault)); }},
    {"copy.by_default_kind", by_default_kind},
    {"copy.by_no_kind", [] { return wrong_kind(static_cast<cudaMemcpyKind>(7)); }},
    {"copy.of_pageable_said_to_be_on_device", [] { return wrong_kind(cudaMemcpyDeviceToDevice); }},
    {"copy.over_the_end", over_the_end},
    {"copy.between_devices_without_peer_access", between_devices_without_peer_access, 2},
    {"copy.peer_with_wrong_device", peer_copy_with_wrong_device, 2},
};

}  // namespace

std::span<const Question> copy_questions() { return kQuestions; }

}  // namespace polyring::software_gpu
