// SPDX-License-Identifier: MIT
// The tool as a user runs it, on the simulator and on the real node in the guest.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <enpu/enpu.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "enpu_hw.h"
#include "lib/device_dump.h"
#include "lib/system.h"
#include "slower.h"

namespace enpu::tools {
namespace {

struct Run {
    int status = -1;
    std::string out;
    nlohmann::json json() const { return nlohmann::json::parse(out); }
};

// Both streams of `enpu ARGUMENTS`, which lies beside this program.
Run enpu(const std::string& arguments, unsigned seconds = 100) {
    const auto self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    FILE* pipe = popen(("timeout " + std::to_string(seconds) + " " + (self / "enpu").string() +
                        " " + arguments + " 2>&1")
                           .c_str(),
                       "r");
    REQUIRE(pipe != nullptr);
    Run run;
    char buffer[4096];
    while (const size_t bytes = fread(buffer, 1, sizeof(buffer), pipe))
        run.out.append(buffer, bytes);
    const int status = pclose(pipe);
    run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    UNSCOPED_INFO("enpu " << arguments << " ended with " << run.status << ":\n" << run.out);
    return run;
}

bool on_node() {
    const char* spec = std::getenv("ENPU_DEVICE");
    return spec != nullptr && std::string(spec).rfind("sim", 0) != 0;
}

// Registers do not outlive a sleep of the device. Off again at the end.
class Awake {
  public:
    Awake() { write("on"); }
    ~Awake() { write("auto"); }
    Awake(const Awake&) = delete;

  private:
    static void write(const char* control) {
        for (const auto& node : std::filesystem::directory_iterator("/sys/class/accel"))
            std::ofstream(node.path() / "device/power/control") << control;
    }
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Keeps core 0 busy with copies for about a second of its own time, one job at a time.
void work(const Device& device, double seconds) {
    const Context context = Context::create(device);
    const Timeline timeline = Timeline::create(device);
    const Buffer a = Buffer::create(device, 1 << 20, ENPU_BUFFER_LOCAL);
    const Buffer b = Buffer::create(device, 1 << 20, ENPU_BUFFER_LOCAL);
    Builder builder(device, ENPU_ENGINE_KIND_COMPUTE);
    for (unsigned i = 0; i < 40; ++i)
        check([&](enpu_error* e) {
            return enpu_build_copy(builder.get(), b.get(), 0, a.get(), 0, 1 << 20, e);
        });
    const Command command = builder.finish();
    uint64_t point = 0;
    for (const auto begin = std::chrono::steady_clock::now(); seconds_since(begin) < seconds;) {
        context.submit(0, command, {}, {timeline.at(++point)});
        context.wait(timeline, point, enpu_deadline_after(20'000'000'000));
    }
}

nlohmann::json own_client(const nlohmann::json& smi) {
    for (const auto& client : smi["devices"][0]["clients"])
        if (client["pid"] == getpid()) return client;
    return {};
}

}  // namespace

TEST_CASE("tool: info and usage errors") {
    const auto info = enpu("info --json").json();
    REQUIRE(info["schema"] == 1);
    REQUIRE(info["hardware_version"] == "1.0");
    REQUIRE(info["simulator"] == !on_node());
    REQUIRE(info["operators"].size() > 20);
    REQUIRE(enpu("info").out.find("CONV2D") != std::string::npos);
    REQUIRE(enpu("").status == 2);
    REQUIRE(enpu("reg read NOPE").status == 2);
    REQUIRE(enpu("reg write ID 1").status == 2);
    REQUIRE(enpu("reg read IRQ_TRIGGER").status == 2);
    REQUIRE(enpu("info -d /dev/accel/accel99").status == 3);
    REQUIRE(enpu("bringup --stage nonsense").status == 2);
    REQUIRE(enpu("dump /proc/self/comm").status == 2);
    REQUIRE(enpu("--help").out.find("doctor") != std::string::npos);
}

TEST_CASE("tool: registers") {
    const auto read = enpu("reg read ID CAP_ENGINES.CORES --json").json();
    REQUIRE(read["registers"][0]["value"] == ENPU_MAGIC);
    REQUIRE(read["registers"][1]["field_value"] == 2);
    const std::string file = std::filesystem::temp_directory_path() / "enpu-registers.json";
    REQUIRE(enpu("reg dump -o " + file).status == 0);
    const auto same = enpu("reg diff " + file + " " + file);
    REQUIRE(same.status == 0);
    REQUIRE(enpu("reg diff " + file + " sim:cores=4").status == 1);
    REQUIRE(enpu("reg read CAP_ENGINES.CORES -d " + file).out.find("2") != std::string::npos);
    REQUIRE(enpu("reg write SCRATCH 1 -d " + file).status == 6);
    REQUIRE(enpu("reg watch TIMESTAMP -i 20 -c 3").out.find("(+") != std::string::npos);
    if (!on_node()) return;  // a new simulator forgets
    const Awake awake;
    REQUIRE(enpu("reg write SCRATCH 0x1234567890").status == 0);
    REQUIRE(enpu("reg read SCRATCH").out.find("0x1234567890") != std::string::npos);
    REQUIRE(enpu("reg write IRQ_COALESCE.COUNT 70000").status == 2);
}

TEST_CASE("tool: validate passes in less than 10 s") {
    const Run run = enpu("validate --json");
    REQUIRE(run.status == 0);
    const auto tests = run.json()["tests"];
    REQUIRE(tests.size() == 10);
    double seconds = 0;
    for (const auto& test : tests) seconds += test["seconds"].get<double>();
    REQUIRE(seconds < 10 * test::slower());
    REQUIRE(enpu("validate -r nothing").status == 2);
}

TEST_CASE("tool: bench gives figures that are possible") {
    const auto bench = enpu("bench -n 3 -b 1M --json").json();
    REQUIRE(bench["results"].size() >= 12);
    for (const auto& result : bench["results"]) {
        INFO(result.dump());
        REQUIRE(result["median"] > 0);
        REQUIRE(result["lowest"] <= result["median"]);
        REQUIRE(result["median"] <= result["highest"]);
    }
}

// A guest test of its own: on a busy machine it takes as long as all others together.
TEST_CASE("tool: bringup through the driver", "[bringup]") {
    const std::string base = std::filesystem::temp_directory_path() / "enpu-bringup";
    const Run run = enpu("bringup --lane driver --output " + base + ".json --tap " + base +
                             ".tap --junit " + base + ".xml --html " + base + ".html",
                         280);
    REQUIRE(run.status == 0);
    const auto results = nlohmann::json::parse(*read_bytes(base + ".json"));
    unsigned passed = 0;
    for (const auto& stage : results["stages"]) {
        passed += stage["verdict"] == "passed";
        if (stage["verdict"] == "skipped") REQUIRE(stage["reason"] != "");
    }
    // 'resets' needs a device that can be made to hang, 'suspend' a real one.
    REQUIRE(passed == (on_node() ? 12 : 11));
    REQUIRE(read_bytes(base + ".tap")->find("not ok") == std::string::npos);
    const Run bare = enpu("bringup --lane bare -s identity --no-results");
    REQUIRE(bare.status == (on_node() ? 6 : 0));
}

TEST_CASE("tool: doctor finds everything well, or the device missing") {
    const auto doctor = enpu("doctor --json").json();
    for (const auto& check : doctor["checks"]) {
        const std::string name = check["check"];
        INFO(check.dump());
        if (on_node() && name != "hal backends" && name != "onnxruntime")
            REQUIRE(check["state"] == "ok");
        if (!on_node() && name == "pci device") REQUIRE(check["state"] != "skip");
    }
}

TEST_CASE("tool: smi agrees with fdinfo and with the device's counters") {
    if (!on_node()) SKIP("needs a kernel driver");
    const Device device = Device::open(nullptr);
    auto busy = [&] { return device.counters().at(ENPU_COUNTER_BUSY_COMPUTE_NS); };
    work(device, 0.1);
    const auto first = enpu("smi --json").json();
    const uint64_t counted_first = busy();
    work(device, 1);
    const auto second = enpu("smi --json -w 100").json();
    const uint64_t counted = busy() - counted_first;
    const uint64_t shown = own_client(second)["engine_ns"]["compute"].get<uint64_t>() -
                           own_client(first)["engine_ns"]["compute"].get<uint64_t>();
    INFO("fdinfo by smi " << shown << " ns, device " << counted << " ns");
    REQUIRE(counted > 100'000'000);
    REQUIRE(shown > counted * 9 / 10);
    REQUIRE(shown < counted * 11 / 10);
    // The device's own time is that of its only user.
    const uint64_t all = second["devices"][0]["busy_ns"].get<uint64_t>() -
                         first["devices"][0]["busy_ns"].get<uint64_t>();
    REQUIRE(all >= shown * 9 / 10);
    REQUIRE(all <= shown * 11 / 10);
    // Memory by placement is what this process holds.
    const Buffer held = Buffer::create(device, 8 << 20, ENPU_BUFFER_LOCAL);
    const auto third = enpu("smi --json").json();
    enpu_memory_info memory = {};
    check([&](enpu_error* e) { return enpu_device_get_memory(device.get(), &memory, e); });
    REQUIRE(own_client(third)["memory_bytes"]["local"] == memory.local_used);
    REQUIRE(own_client(third)["memory_bytes"]["host"] == memory.host_used);
    REQUIRE(third["devices"][0]["memory"]["local_used"] == memory.local_total - memory.local_free);
    REQUIRE(enpu("smi --csv -l 0.1 -c 2").out.find("monotonic_ns,device") == 0);
    REQUIRE(enpu("top -c 2 -i 0.1").out.find("/dev/accel/accel0") != std::string::npos);
}

TEST_CASE("tool: the dump of a fault names the job, the packet and the VA") {
    if (!on_node()) SKIP("needs a kernel driver");
    enpu("dump -s /dev/null");  // whatever waits
    const Device device = Device::open(nullptr);
    const Context context = Context::create(device);
    const Timeline timeline = Timeline::create(device);
    const Buffer commands = Buffer::create(device, 4096, ENPU_BUFFER_HOST);
    enpu_copy_packet copy{};
    copy.header = {ENPU_OPCODE_COPY, 0, sizeof(copy), 0x77};
    copy.dst = commands.va() + 2048;
    copy.src = 0x123456789000;
    copy.width = 64;
    copy.height = 1;
    const enpu_packet nop{ENPU_OPCODE_NOP, 0, 16, 0};
    memcpy(commands.map().data(), &nop, sizeof(nop));
    memcpy(commands.map().data() + 16, &copy, sizeof(copy));
    const enpu_point signal = timeline.at(1);
    enpu_error error = {};
    REQUIRE(enpu_submit_raw(context.get(), device.info().compute_engines, commands.va(), 80,
                            nullptr, 0, &signal, 1, 0xabcd, nullptr, &error) == 0);
    REQUIRE(enpu_context_wait(context.get(), timeline.get(), 1, enpu_deadline_after(20'000'000'000),
                              &error) == -EFAULT);
    const std::string file = std::filesystem::temp_directory_path() / "enpu-dump";
    const Run page = enpu("dump -s " + file);
    REQUIRE(page.status == 0);
    for (const char* word :
         {"MMU_FAULT", "id 0xabcd", "0x123456789000", "tag 0x77", "not mapped", "> +0x000010"})
        REQUIRE(page.out.find(word) != std::string::npos);
    REQUIRE(enpu("dump " + file + " --json").json()["context"]["pid"] == getpid());
    REQUIRE(enpu("reg read ID -d " + file).out.find("0x55504e45") != std::string::npos);
    REQUIRE(enpu("dump").status == 3);
}

TEST_CASE("tool: trace records a program of the runtime, and the report explains it") {
    const std::string base = std::filesystem::temp_directory_path() / "enpu-trace";
    const auto self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const char* spec = std::getenv("ENPU_DEVICE");
    const Run run = enpu("trace record -o " + base + ".pftrace --html " + base + ".html -- " +
                         (self / "rt-conv2d").string() + " " + (spec ? spec : "sim"));
    REQUIRE(run.status == 0);
    REQUIRE_FALSE(std::filesystem::exists(base + ".pftrace.runtime"));
    const auto report =
        enpu("trace report " + base + ".pftrace -o " + base + "2.html --json").json();
    bool kernel = false, call = false, busy = false, memory = false;
    for (const auto& row : report["kernels"]) kernel |= row["name"] == "kernel conv2d_fwd";
    for (const auto& row : report["calls"]) call |= row["name"] == "rt_stream_sync";
    for (const auto& lane : report["lanes"]) busy |= lane.contains("waited_ns_host");
    for (const auto& series : report["series"]) memory |= series["name"] == "memory used";
    INFO(report.dump(1));
    REQUIRE(kernel);
    REQUIRE(call);
    REQUIRE(busy);
    REQUIRE(memory);
    for (const char* page : {".html", "2.html"}) {
        const std::string text = read_bytes(base + page).value();
        REQUIRE(text.find("kernel conv2d_fwd") != std::string::npos);
        REQUIRE(text.find("http") == std::string::npos);
    }
    REQUIRE(enpu("trace report /proc/self/comm").status == 2);
}

TEST_CASE("tool: trace records the kernel's side of a program, and gives its exit status back") {
    if (!on_node()) SKIP("needs a kernel driver");
    const std::string base = std::filesystem::temp_directory_path() / "enpu-trace";
    const auto self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const Run run = enpu("trace record -o " + base + ".pftrace --html " + base + ".html -- " +
                         (self / "enpu").string() + " validate -r latency");
    REQUIRE(run.status == 0);
    const std::string page = read_bytes(base + ".html").value();
    // A kernel without CONFIG_FTRACE_SYSCALLS knows nothing of ioctls, and that is said.
    const bool ioctls =
        std::filesystem::exists("/sys/kernel/tracing/events/syscalls/sys_enter_ioctl");
    REQUIRE((run.out.find("no events syscalls/sys_enter_ioctl") == std::string::npos) == ioctls);
    for (const char* word : {"engine 0", "SUBMIT", "wait for the host", "enpu_irq",
                             "jobs in flight", "mapped for the device"}) {
        CAPTURE(word, run.out);
        if (std::string(word) != "SUBMIT" || ioctls) REQUIRE(page.find(word) != std::string::npos);
    }
    REQUIRE(page.find("http") == std::string::npos);
    const std::string trace = read_bytes(base + ".pftrace").value();
    // Jobs that wait for nothing leave no event of the scheduler.
    for (const char* word : {"engine 0", "ioctls of enpu", "dma_fence_signaled", "enpu_irq"}) {
        CAPTURE(word);
        if (std::string(word) != "ioctls of enpu" || ioctls)
            REQUIRE(trace.find(word) != std::string::npos);
    }
    REQUIRE(enpu("trace record -o " + base + " -- sh -c 'exit 7'").status == 7);
    REQUIRE(enpu("trace record -o /nonexistent/x -- true").status == 2);
}

TEST_CASE("tool: a recorded program is replayed") {
    const std::string file = std::filesystem::temp_directory_path() / "enpu-replay.rec";
    const auto self = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const char* spec = std::getenv("ENPU_DEVICE");
    const Run run = enpu("replay record -o " + file + " -- " + (self / "rt-conv2d").string() + " " +
                         (spec ? spec : "sim"));
    REQUIRE(run.status == 0);
    REQUIRE(run.out.find("right") != std::string::npos);
    const auto result = enpu("replay check " + file + " --json").json();
    REQUIRE(result["ok"] == true);
    REQUIRE(result["recording_stopped"] == "");
    REQUIRE(result["packets"] > 0);
    REQUIRE(enpu("replay check " + file + " -d sim").status == 0);
    REQUIRE(enpu("replay check /proc/self/comm -d sim").status == 2);
    REQUIRE(enpu("replay check " + file + " -d /dev/accel/accel99").status == 3);
}

// Its price in time of a core is checked natively, by tools-unit; here it is shown.
TEST_CASE("tool: smi in a loop lets a device sleep") {
    if (!on_node()) SKIP("needs a kernel driver");
    const std::string status = "/sys/class/accel/accel0/device/power/runtime_status";
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(15);
    while (read_text(status).value_or("") != "suspended") {
        REQUIRE(std::chrono::steady_clock::now() < until);
        usleep(100'000);
    }
    // The first round opens the node once, for the number of engines, which wakes the device.
    rusage before{}, after{};
    getrusage(RUSAGE_CHILDREN, &before);
    enpu("smi -l 1 -c 1");
    getrusage(RUSAGE_CHILDREN, &after);
    const auto used = [](const rusage& a, const rusage& b) {
        const auto seconds = [](const timeval& t) {
            return double(t.tv_sec) + double(t.tv_usec) / 1e6;
        };
        return seconds(b.ru_utime) + seconds(b.ru_stime) - seconds(a.ru_utime) -
               seconds(a.ru_stime);
    };
    const double start = used(before, after);
    constexpr unsigned kRounds = 8;
    getrusage(RUSAGE_CHILDREN, &before);
    const Run run = enpu("smi -l 1 -c " + std::to_string(kRounds + 1) + " --json");
    getrusage(RUSAGE_CHILDREN, &after);
    REQUIRE(run.status == 0);
    const double share = 100 * (used(before, after) - start) / kRounds;
    std::printf("enpu smi at 1 Hz: %.2f %% of a core a round, %.0f ms to start\n", share,
                1000 * start);
    // Eight seconds of looking: the device has gone back to sleep meanwhile.
    CHECK(read_text(status).value_or("") == "suspended");
}

}  // namespace enpu::tools
