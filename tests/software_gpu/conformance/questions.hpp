// The conformance suite: questions whose answers are the same on a GPU and on the software GPU.
//
// A question uses CUDA's runtime API and nothing else. Its answer is one line of text that depends on no time
// and no address. answers.txt has the recorded answers.
#pragma once

#include <span>
#include <string>

namespace polyring::software_gpu {

struct Question {
  const char* name;
  std::string (*answer)();
  int devices = 1;     // that it needs, all of them peers
  bool alone = false;  // it gets a process of its own, as no call works after it
};

std::span<const Question> device_questions();
std::span<const Question> error_questions();
std::span<const Question> memory_questions();
std::span<const Question> copy_questions();
std::span<const Question> stream_questions();
std::span<const Question> event_questions();
std::span<const Question> capture_questions();
std::span<const Question> ipc_questions();

/// What the other process of a question does: it reads handles from standard input, and prints its answer.
std::string answer_of_child(const std::string& role);

}  // namespace polyring::software_gpu
