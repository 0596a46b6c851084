// SPDX-License-Identifier: MIT
// What happens to operators without a kernel here: they run on the CPU, counted, unless forbidden.
#ifndef ENPU_PYTORCH_FALLBACK_H
#define ENPU_PYTORCH_FALLBACK_H

#include <cstdint>
#include <map>
#include <string>

namespace enpu::pytorch {

enum class Fallback { kAllow, kWarn, kForbid };

// "allow", "warn" (once an operator) or "forbid"; at first what ENPU_TORCH_FALLBACK says, else warn.
void set_fallback(const std::string& mode);
std::string fallback_mode();
// Calls by operator since the start or the last reset.
std::map<std::string, uint64_t> fallback_counts();
void reset_fallback_counts();

}  // namespace enpu::pytorch
#endif
