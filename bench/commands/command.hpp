// The subcommands, each in a file of its own under commands/. add_…() declares its options; main() runs the
// action of the one that was chosen.
#pragma once

#include "bench/cli/command_line.hpp"

namespace polyring {

void add_probe(CommandLine& line);
void add_plan(CommandLine& line);
void add_verify(CommandLine& line);
void add_collectives(CommandLine& line);  // allreduce, reduce-scatter, allgather, alltoall
void add_train(CommandLine& line);
void add_scale(CommandLine& line);
void add_calibrate(CommandLine& line);
void add_tune(CommandLine& line);
void add_compare(CommandLine& line);
void add_launch(CommandLine& line);
void add_accept(CommandLine& line);
void add_report(CommandLine& line);
void add_completion(CommandLine& line);

}  // namespace polyring
