// What a process has from the one that started it, and would run into.
#pragma once

namespace polyring {

/// To be called first of all:
/// - standard input, output and error that are closed are opened, or the next file would become one of
///   them; what is written to such a standard output still fails;
/// - ends of child processes are remembered, and signals that were blocked come again, so that time limits
///   and interrupts work;
/// - a pipe that nobody reads and a file that may not grow are errors, not the end of the program: its
///   result may go elsewhere.
/// Signals to end that are ignored, as under nohup, stay so.
void settle_inherited_state();

}  // namespace polyring
