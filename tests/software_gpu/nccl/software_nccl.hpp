// What the fake NCCL offers to tests beside NCCL's functions. A program that also runs with NCCL finds it
// with dlsym().
#pragma once

extern "C" {

/// These lines, as plan.hpp describes them but without `nccl`, replace those of the software GPU's plan for
/// all communicators that start later, and for ncclGetVersion(). Null: those of the plan again.
void polyring_software_nccl_plan(const char* lines);

/// How many pieces of memory this process has registered, and not deregistered: windows, or others.
int polyring_software_nccl_registered(int windows);
}
