// SPDX-License-Identifier: MIT
// Several cores and several contexts: jobs of 10 ms and more on two cores against one, and whether contexts
// that share a core get equal shares of it.
#include <algorithm>
#include <memory>
#include <thread>

#include "operands.h"

namespace enpu::bench {
namespace {

Command matmul_command(const Stand& stand, uint32_t size) {
    const Tensor a = make_tensor(stand, ENPU_DTYPE_F32, {size, size}),
                 b = make_tensor(stand, ENPU_DTYPE_F32, {size, size}),
                 y = make_tensor(stand, ENPU_DTYPE_F32, {size, size});
    const enpu_matmul_params params{ENPU_UNARY_IDENTITY, 0, 0, 1};
    Builder builder(stand.device(), ENPU_ENGINE_KIND_COMPUTE);
    check([&](enpu_error* e) {
        return enpu_build_matmul(builder.get(), &params, &a.operand, &b.operand, nullptr, nullptr,
                                 nullptr, &y.operand, e);
    });
    return builder.finish();
}

// A context with a timeline of its own.
struct Client {
    explicit Client(const Device& device)
        : context(Context::create(device)), timeline(Timeline::create(device)) {}
    void submit(uint32_t engine, const Command& command) {
        context.submit(engine, command, {}, {timeline.at(++submitted)});
    }
    void submit_behind(const enpu_point& gate, const Command& command) {
        context.submit(0, command, {gate}, {timeline.at(++submitted)});
    }
    void finish() const { context.wait(timeline, submitted, enpu_deadline_after(kDeadlineNs)); }

    Context context;
    Timeline timeline;
    uint64_t submitted = 0;
};

// Jain's index of equal shares: 1 when all are equal, 1/n when one has all.
double fairness_of(const std::vector<double>& shares) {
    double sum = 0, squares = 0;
    for (const double share : shares) {
        sum += share;
        squares += share * share;
    }
    return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

std::vector<double> completed(const std::vector<Client>& clients) {
    std::vector<double> counts;
    for (const Client& client : clients)
        counts.push_back(static_cast<double>(client.context.status().completed));
    return counts;
}

// A point that is reached when open() says so: a job on a copy engine waits for a word that a job of the core writes.
class Gate {
  public:
    explicit Gate(Stand& stand)
        : stand_(stand), word_(stand.buffer(64, ENPU_BUFFER_HOST)), client_(stand.device()) {
        Builder wait(stand.device(), ENPU_ENGINE_KIND_COPY),
            signal(stand.device(), ENPU_ENGINE_KIND_COMPUTE);
        check([&](enpu_error* e) {
            return enpu_build_wait(wait.get(), word_.get(), 0, 1, 60'000'000, e);
        });
        check([&](enpu_error* e) { return enpu_build_signal(signal.get(), word_.get(), 0, 1, e); });
        opener_ = signal.finish();
        client_.submit(stand.copy_engine(), wait.finish());
    }
    enpu_point point() const { return client_.timeline.at(1); }
    void open() { stand_.run(0, opener_); }

  private:
    Stand& stand_;
    Buffer word_;
    Client client_;
    Command opener_;
};

// `count` clients have `jobs` queued each, the first `hog` if that is more: what each gets while all have work,
// as this thread saw it last.
double shared_core(Stand& stand, const Command& command, unsigned count, unsigned jobs,
                   unsigned hog) {
    std::vector<Client> clients;
    for (unsigned i = 0; i < count; ++i) clients.emplace_back(stand.device());
    Gate gate(stand);
    for (unsigned i = 0; i < count; ++i)
        for (unsigned n = 0; n < (i == 0 && hog ? hog : jobs); ++n)
            clients[i].submit_behind(gate.point(), command);
    gate.open();
    const std::vector<double> begin = completed(clients);
    std::vector<double> shares(count);
    for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::vector<double> now = completed(clients);
        bool all = true;
        for (unsigned i = 0; i < count; ++i)
            all = all && now[i] < static_cast<double>(clients[i].submitted);
        if (!all) break;
        for (unsigned i = 0; i < count; ++i) shares[i] = now[i] - begin[i];
    }
    // Letting go of a context cancels what it has left.
    for (unsigned i = hog ? 1 : 0; i < count; ++i) clients[i].finish();
    if (count > 1 && *std::max_element(shares.begin(), shares.end()) == 0)
        throw std::runtime_error(
            "the shares of a core could not be seen: the jobs were over at once");
    return count == 1 ? 1 : fairness_of(shares);
}

}  // namespace

std::vector<Result> bench_cores(const Options& options) {
    const auto stand = std::make_shared<Stand>(options.device);
    if (stand->device().info().compute_engines < 2)
        throw std::runtime_error("a device with two cores is needed, " + options.device +
                                 " has one");
    constexpr unsigned kJobs = 4;
    std::vector<Case> cases;
    for (const uint32_t size : {1024u}) {
        const Command command = matmul_command(*stand, size);
        const auto clients = std::make_shared<std::vector<Client>>();
        for (unsigned i = 0; i < 2; ++i) clients->emplace_back(stand->device());
        const auto run = [=](unsigned cores) {
            return [=] {
                const double begin = now_ns();
                for (unsigned i = 0; i < kJobs; ++i) (*clients)[i % 2].submit(i % cores, command);
                for (const Client& client : *clients) client.finish();
                return (now_ns() - begin) / kJobs;
            };
        };
        cases.push_back(
            {{"two cores against one, a job", "ns", double(size), {}, {}}, run(2), run(1)});
    }
    return measure(std::move(cases), options.runs);
}

std::vector<Result> bench_fairness(const Options& options) {
    const auto stand = std::make_shared<Stand>(options.device);
    // Long enough that this thread can look on while they run, where its processor is emulated too.
    const bool simulator = stand->device().info().simulator != 0;
    const Command command = matmul_command(*stand, simulator ? 192 : 512);
    const unsigned jobs = (options.quick ? 300 : 1000) / (simulator ? 1 : 5);
    const std::vector<unsigned> counts =
        options.quick ? std::vector<unsigned>{2, 16} : std::vector<unsigned>{1, 2, 4, 8, 16};
    std::vector<Result> results;
    for (const unsigned count : counts) {
        for (const unsigned hog : {0u, 10'000u}) {
            if (count == 1 && hog) continue;
            if (options.quick && count == 2 && hog) continue;
            Result r{hog ? "Jain fairness, one context has 10,000 jobs queued" : "Jain fairness",
                     "index",
                     double(count),
                     {},
                     {}};
            const unsigned runs = options.quick ? 1 : 3;
            for (unsigned run = 0; run < runs; ++run)
                r.ours.push_back(shared_core(*stand, command, count, jobs, hog));
            results.push_back(std::move(r));
        }
    }
    return results;
}

}  // namespace enpu::bench
