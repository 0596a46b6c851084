// SPDX-License-Identifier: MIT
#include "stand.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace enpu::bench {

std::vector<Result> measure(std::vector<Case> cases, unsigned runs) {
    for (Case& c : cases) {
        c.ours();
        if (c.peer) c.peer();
    }
    for (unsigned run = 0; run < runs; ++run) {
        for (Case& c : cases) {
            // Who comes first changes, so that neither always finds the other's data in the cache.
            if (c.peer && run % 2) c.result.peer.push_back(c.peer());
            c.result.ours.push_back(c.ours());
            if (c.peer && run % 2 == 0) c.result.peer.push_back(c.peer());
        }
    }
    std::vector<Result> results;
    for (Case& c : cases) results.push_back(std::move(c.result));
    return results;
}

void print(const std::vector<Result>& results) {
    nlohmann::ordered_json list = nlohmann::json::array();
    for (const Result& r : results)
        list.push_back({{"name", r.name},
                        {"unit", r.unit},
                        {"x", r.x},
                        {"ours", r.ours},
                        {"peer", r.peer},
                        {"note", r.note}});
    std::printf("%s\n", list.dump(1).c_str());
}

Stand::Stand(const std::string& spec)
    : device_(Device::open(spec.c_str())),
      context_(Context::create(device_)),
      timeline_(Timeline::create(device_)),
      words_(Buffer::create(device_, 64, ENPU_BUFFER_HOST)) {}

Command Stand::timed(uint32_t engine_kind, unsigned count,
                     const std::function<void(enpu_builder*)>& build) const {
    Builder builder(device_, engine_kind);
    const auto stamp = [&](uint64_t offset) {
        check([&](enpu_error* e) {
            return enpu_build_timestamp(builder.get(), words_.get(), offset, e);
        });
    };
    stamp(0);
    for (unsigned i = 0; i < count; ++i) build(builder.get());
    stamp(8);
    return builder.finish();
}

double Stand::run(uint32_t engine, const Command& command) {
    const double begin = now_ns();
    context_.submit(engine, command, {}, {timeline_.at(++point_)});
    context_.wait(timeline_, point_, enpu_deadline_after(kDeadlineNs));
    return now_ns() - begin;
}

double Stand::device_ns() const {
    const auto words = words_.map<uint64_t>();
    return static_cast<double>(std::max<uint64_t>(words[1] - words[0], 1));
}

}  // namespace enpu::bench
