// SPDX-License-Identifier: MIT
// enpu fault: arms injected faults and tells what has fired: on a live device through the driver's
// debugfs, or from the host through QEMU's monitor.
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.h"
#include "enpu_fault.h"
#include "enpu_hw_tables.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "lib/system.h"

namespace enpu::tools {
namespace {
namespace fs = std::filesystem;

struct Options {
    std::string file, socket, object = "/machine/peripheral/npu", faults;
    bool json = false;
};

struct Fired {
    std::string kind;
    uint64_t count = 0, last_ns = 0;
};

// Where faults are armed and counted. Texts are those of enpu_fault.h.
class Injector {
  public:
    virtual ~Injector() = default;
    virtual void arm(const std::string& faults) = 0;
    virtual std::string counts() = 0;  // lines: kind, count, time of the last
};

class Debugfs final : public Injector {
  public:
    explicit Debugfs(std::string file) : file_(file.empty() ? find() : std::move(file)) {}

    void arm(const std::string& faults) override {
        std::FILE* out = std::fopen(file_.c_str(), "we");
        if (out == nullptr) refuse();
        std::setvbuf(out, nullptr, _IONBF, 0);  // one write, whose errno is the driver's answer
        const bool written = std::fwrite(faults.data(), 1, faults.size(), out) == faults.size();
        const int code = errno;
        std::fclose(out);
        if (!written)
            throw Failure(code == ENODEV ? kDeviceLost : kUsage,
                          file_ + ": " + std::strerror(code) + " for '" + faults + "'");
    }
    std::string counts() override {
        const auto text = read_bytes(file_);
        if (!text) refuse();
        return *text;
    }

  private:
    static std::string find() {
        std::error_code code;
        const fs::path root = "/sys/kernel/debug/accel";
        for (const auto& entry : fs::directory_iterator(root, code)) {
            const fs::path file = entry.path() / "inject_fault";
            if (fs::exists(file, code)) return file;
        }
        if (code == std::errc::permission_denied)
            throw Failure(kNoPermission, root.string() + ": only root may look here");
        throw Failure(kUnsupported, "no device under " + root.string() +
                                        " takes faults; it needs debugfs mounted and a device "
                                        "with fault-injection=on");
    }
    [[noreturn]] void refuse() const {
        throw Failure(errno == EACCES || errno == EPERM ? kNoPermission : kNoDevice,
                      file_ + ": " + std::strerror(errno));
    }
    const std::string file_;
};

// QEMU's machine protocol, one command at a time; each answer has five seconds.
class Monitor final : public Injector {
  public:
    Monitor(const std::string& path, std::string object) : object_(std::move(object)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof(address.sun_path))
            throw Failure(kUsage, path + ": too long for the name of a socket");
        std::memcpy(address.sun_path, path.data(), path.size());
        fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const timeval limit{5, 0};
        setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
            const int code = errno;
            ::close(fd_);
            throw Failure(kNoDevice, path + ": " + std::strerror(code));
        }
        command({{"execute", "qmp_capabilities"}});
    }
    ~Monitor() override { ::close(fd_); }
    Monitor(const Monitor&) = delete;

    void arm(const std::string& faults) override {
        command(
            {{"execute", "qom-set"},
             {"arguments", {{"path", object_}, {"property", "inject-fault"}, {"value", faults}}}});
    }
    std::string counts() override {
        return command({{"execute", "qom-get"},
                        {"arguments", {{"path", object_}, {"property", "faults-fired"}}}});
    }

  private:
    std::string line() {
        for (;;) {
            const size_t end = pending_.find('\n');
            if (end != std::string::npos) {
                std::string line = pending_.substr(0, end);
                pending_.erase(0, end + 1);
                return line;
            }
            char buffer[4096];
            const ssize_t bytes = recv(fd_, buffer, sizeof(buffer), 0);
            if (bytes <= 0) throw Failure(kDeviceLost, "QEMU's monitor does not answer");
            pending_.append(buffer, static_cast<size_t>(bytes));
        }
    }
    // The answer when it is a text, else "". Events and the greeting are passed over.
    std::string command(const nlohmann::json& request) {
        const std::string text = request.dump() + "\n";
        if (send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
            throw Failure(kDeviceLost, "QEMU's monitor takes no commands");
        for (;;) {
            const auto answer = nlohmann::json::parse(line(), nullptr, false);
            if (!answer.is_object()) throw Failure(kUsage, "the socket is no monitor of QEMU");
            if (answer.contains("error"))
                throw Failure(kUsage, "QEMU: " + answer["error"].value("desc", "refused"));
            if (!answer.contains("return")) continue;
            const auto& value = answer["return"];
            return value.is_string() ? value.get<std::string>() : "";
        }
    }

    const std::string object_;
    std::string pending_;
    int fd_ = -1;
};

std::unique_ptr<Injector> injector(const Options& options) {
    if (!options.socket.empty()) return std::make_unique<Monitor>(options.socket, options.object);
    return std::make_unique<Debugfs>(options.file);
}

// What cannot be read is said here, with the place; a driver only says EINVAL.
void check(const std::string& faults) {
    const char* at = faults.c_str();
    do {
        enpu_fault fault;
        if (const char* wrong = enpu_fault_parse(&at, &fault))
            throw Failure(kUsage, "fault '" + faults + "': " + wrong + ", at '" + at + "'");
    } while (*at != '\0');
}

int list(const Options& options) {
    if (options.json) {
        auto kinds = nlohmann::ordered_json::array();
        for (const auto& fault : enpu_faults)
            kinds.push_back({{"kind", fault.name},
                             {"target", fault.target},
                             {"event", fault.event},
                             {"effect", fault.effect},
                             {"arg", fault.argument}});
        print_json("fault", {{"kinds", kinds}});
        return kOk;
    }
    Table table({"kind", "target", "event", "effect", "arg"});
    for (const auto& fault : enpu_faults)
        table.add({fault.name, fault.target, fault.event, fault.effect, fault.argument});
    table.print();
    return kOk;
}

std::vector<Fired> parse_counts(const std::string& text) {
    std::vector<Fired> all;
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        Fired fired;
        if (words >> fired.kind >> fired.count >> fired.last_ns && fired.count != 0)
            all.push_back(fired);
    }
    return all;
}

int show(const Options& options) {
    const auto all = parse_counts(injector(options)->counts());
    if (options.json) {
        auto fired = nlohmann::ordered_json::array();
        for (const Fired& one : all)
            fired.push_back({{"kind", one.kind}, {"count", one.count}, {"last_ns", one.last_ns}});
        print_json("fault", {{"fired", fired}});
        return kOk;
    }
    if (all.empty()) {
        std::puts("no fault has fired");
        return kOk;
    }
    Table table({"kind", ">fired", ">last (device ns)"});
    for (const Fired& one : all)
        table.add({one.kind, std::to_string(one.count), std::to_string(one.last_ns)});
    table.print();
    return kOk;
}

int arm(const Options& options) {
    check(options.faults);
    injector(options)->arm(options.faults);
    return kOk;
}

int clear(const Options& options) {
    injector(options)->arm("none");
    return kOk;
}

int validate(const Options& options) {
    check(options.faults);
    std::printf("%s: can be armed\n", options.faults.c_str());
    return kOk;
}

CLI::App* sub(CLI::App* parent, const char* name, const char* help, int (*body)(const Options&),
              const std::shared_ptr<Options>& options, int* status) {
    CLI::App* command = parent->add_subcommand(name, help);
    command->callback([options, status, body] { *status = body(*options); });
    return command;
}

void add_place(CLI::App* command, Options* options) {
    command->add_option("--file", options->file,
                        "the driver's inject_fault; default: the first under debugfs");
    command->add_option("--qmp", options->socket, "instead: the socket of QEMU's monitor (QMP)");
    command->add_option("--object", options->object, "the device in QEMU's tree")
        ->capture_default_str();
}

}  // namespace

void add_fault(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("fault", "arm injected faults, see what has fired");
    command->require_subcommand(1);
    const char* syntax = "KIND[:KEY=VALUE]...[;KIND...], e.g. engine-hang:engine=0:after=3";
    CLI::App* list_command =
        sub(command, "list", "the kinds of faults and their keys", list, options, status);
    list_command->add_flag("--json", options->json, "as JSON");
    CLI::App* arm_command = sub(command, "arm", "arm faults", arm, options, status);
    arm_command->add_option("faults", options->faults, syntax)->required();
    add_place(arm_command, options.get());
    add_place(sub(command, "clear", "clear all faults, hangs and removals", clear, options, status),
              options.get());
    CLI::App* show_command =
        sub(command, "show", "what has fired, how often and when", show, options, status);
    show_command->add_flag("--json", options->json, "as JSON");
    add_place(show_command, options.get());
    sub(command, "check", "is this a text of faults, as ENPU_SIM_FAULTS takes it?", validate,
        options, status)
        ->add_option("faults", options->faults, syntax)
        ->required();
}

}  // namespace enpu::tools
